// Special tokens: finds "<|im_end|>" and its like in a text, the longest one at each place, in one pass.
#ifndef CONFAB_TEXT_SPECIAL_TOKENS_H
#define CONFAB_TEXT_SPECIAL_TOKENS_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// Longer ones are never looked for, which bounds the search at this many steps a byte.
enum { SPECIAL_TOKEN_LONGEST = 256 };

// A trie. Children of a node are a chain of siblings; those of the root, a table by byte.
struct special_tokens {
    struct special_node *nodes; // in the arena; node 0 is no node
    uint32_t count;
    uint32_t roots[256];
};

// Room for tokens of `bytes` bytes altogether.
bool special_tokens_open(struct special_tokens *s, struct arena *arena, uint64_t bytes, struct status *st);
// `user_defined` tokens are found always, the others only in trusted text.
void special_tokens_add(struct special_tokens *s, struct span text, int32_t id, bool user_defined);
// The id of the longest token that text[0..size) begins with, and its length; −1 when none.
int32_t special_tokens_match(const struct special_tokens *s, const char *text, size_t size, bool trusted,
                             size_t *length);

#endif
