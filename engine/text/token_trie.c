#include "engine/text/token_trie.h"

bool token_trie_open(struct token_trie *t, struct arena *arena, uint64_t bytes, struct status *st) {
    if (bytes >= UINT32_MAX)
        return status_fail(st, STATUS_LIMIT, "tokens are too large (%llu bytes)", (unsigned long long)bytes);
    *t = (struct token_trie){.nodes = arena_array(arena, bytes + 1, sizeof *t->nodes, st), .count = 1};
    return t->nodes;
}

static uint32_t add_node(struct token_trie *t, uint32_t sibling, char byte) {
    t->nodes[t->count] = (struct token_node){.sibling = sibling, .id = -1, .byte = (uint8_t)byte};
    return t->count++;
}

void token_trie_add(struct token_trie *t, struct span text, int32_t id) {
    if (text.size == 0 || text.size > TOKEN_TRIE_LONGEST) return;
    uint32_t *root = &t->roots[(uint8_t)text.data[0]];
    if (!*root) *root = add_node(t, 0, text.data[0]);
    uint32_t node = *root;
    for (size_t i = 1; i < text.size; i++) {
        uint32_t child = token_trie_next(t, node, text.data[i]);
        if (!child) child = t->nodes[node].child = add_node(t, t->nodes[node].child, text.data[i]);
        node = child;
    }
    t->nodes[node].id = id;
}

int32_t token_trie_longest(const struct token_trie *t, const char *text, size_t size, size_t *length) {
    int32_t best = -1;
    uint32_t node = size ? token_trie_first(t, text[0]) : 0;
    for (size_t i = 1; node; i++) {
        if (t->nodes[node].id >= 0) best = t->nodes[node].id, *length = i;
        node = i < size ? token_trie_next(t, node, text[i]) : 0;
    }
    return best;
}
