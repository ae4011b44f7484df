// Token trie: the tokens that a text begins with, found byte by byte in one pass.
#ifndef CONFAB_TEXT_TOKEN_TRIE_H
#define CONFAB_TEXT_TOKEN_TRIE_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// Longer texts are left out, which bounds a search at this many steps a byte of text.
enum { TOKEN_TRIE_LONGEST = 256 };

// Children of a node are a chain of siblings; those of the root, a table by byte.
struct token_node {
    uint32_t child, sibling; // 0: none
    int32_t id;              // of the token that ends here; −1: none
    uint8_t byte;
};
struct token_trie {
    struct token_node *nodes; // in the arena; node 0 is no node
    uint32_t count;
    uint32_t roots[256];
};

// Room in the arena for tokens of `bytes` bytes altogether.
bool token_trie_open(struct token_trie *t, struct arena *arena, uint64_t bytes, struct status *st);
// Of tokens with the same text, the last counts.
void token_trie_add(struct token_trie *t, struct span text, int32_t id);

static inline uint32_t token_trie_first(const struct token_trie *t, char byte) { return t->roots[(uint8_t)byte]; }
// The node that `byte` leads to; 0 when none.
static inline uint32_t token_trie_next(const struct token_trie *t, uint32_t node, char byte) {
    uint32_t at = t->nodes[node].child;
    while (at && t->nodes[at].byte != (uint8_t)byte) at = t->nodes[at].sibling;
    return at;
}

// The id of the longest token that text[0..size) begins with, and its length; −1 when none.
int32_t token_trie_longest(const struct token_trie *t, const char *text, size_t size, size_t *length);

#endif
