// Token trie: finds the tokens that a text starts with in one pass.
#ifndef CONFAB_TEXT_TOKEN_TRIE_H
#define CONFAB_TEXT_TOKEN_TRIE_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// Longer tokens are left out; bounds the steps per byte of text.
enum { TOKEN_TRIE_LONGEST = 256 };

// Children of a node are a list of siblings; those of the root are a table by byte.
struct token_node {
    uint32_t child, sibling; // 0: none
    int32_t id;              // of the token ending here; −1: none
    uint8_t byte;
};
struct token_trie {
    struct token_node *nodes; // in the arena; index 0 means none
    uint32_t count;
    uint32_t roots[256];
};

// Allocates room for tokens of `bytes` bytes in total.
bool token_trie_open(struct token_trie *t, struct arena *arena, uint64_t bytes, struct status *st);
// Of tokens with the same text, the last wins.
void token_trie_add(struct token_trie *t, struct span text, int32_t id);

static inline uint32_t token_trie_first(const struct token_trie *t, char byte) { return t->roots[(uint8_t)byte]; }
// The child for `byte`; 0 if none.
static inline uint32_t token_trie_next(const struct token_trie *t, uint32_t node, char byte) {
    uint32_t at = t->nodes[node].child;
    while (at && t->nodes[at].byte != (uint8_t)byte) at = t->nodes[at].sibling;
    return at;
}

// The id of the longest token that text[0..size) starts with, and its length; −1 if none.
int32_t token_trie_longest(const struct token_trie *t, const char *text, size_t size, size_t *length);

#endif
