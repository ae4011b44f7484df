#include "engine/text/special_tokens.h"

struct special_node {
    uint32_t child, sibling; // 0: none
    int32_t id;              // of the token that ends here; −1: none
    uint8_t byte;
    bool user_defined;
};

bool special_tokens_open(struct special_tokens *s, struct arena *arena, uint64_t bytes, struct status *st) {
    if (bytes >= UINT32_MAX)
        return status_fail(st, STATUS_LIMIT, "special tokens of %llu bytes", (unsigned long long)bytes);
    *s = (struct special_tokens){.nodes = arena_array(arena, bytes + 1, sizeof *s->nodes, st), .count = 1};
    return s->nodes;
}

static uint32_t find_child(const struct special_tokens *s, uint32_t node, uint8_t byte) {
    uint32_t at = s->nodes[node].child;
    while (at && s->nodes[at].byte != byte) at = s->nodes[at].sibling;
    return at;
}

static uint32_t add_node(struct special_tokens *s, uint32_t sibling, uint8_t byte) {
    s->nodes[s->count] = (struct special_node){.sibling = sibling, .id = -1, .byte = byte};
    return s->count++;
}

void special_tokens_add(struct special_tokens *s, struct span text, int32_t id, bool user_defined) {
    if (text.size == 0 || text.size > SPECIAL_TOKEN_LONGEST) return;
    uint32_t *root = &s->roots[(uint8_t)text.data[0]];
    if (!*root) *root = add_node(s, 0, (uint8_t)text.data[0]);
    uint32_t node = *root;
    for (size_t i = 1; i < text.size; i++) {
        uint32_t child = find_child(s, node, (uint8_t)text.data[i]);
        if (!child) child = s->nodes[node].child = add_node(s, s->nodes[node].child, (uint8_t)text.data[i]);
        node = child;
    }
    s->nodes[node].id = id;
    s->nodes[node].user_defined = user_defined;
}

int32_t special_tokens_match(const struct special_tokens *s, const char *text, size_t size, bool trusted,
                             size_t *length) {
    int32_t best = -1;
    if (size == 0) return best;
    uint32_t node = s->roots[(uint8_t)text[0]];
    for (size_t i = 1; node; i++) {
        const struct special_node *n = &s->nodes[node];
        if (n->id >= 0 && (trusted || n->user_defined)) best = n->id, *length = i;
        node = i < size ? find_child(s, node, (uint8_t)text[i]) : 0;
    }
    return best;
}
