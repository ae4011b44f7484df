// Token index: from a text to the id of the token that has it. One open-addressing table over borrowed spans, nothing
// allocated per token. The hash is seeded per process, so that a file cannot be built to make it slow.
// Also what other open-addressing tables of a tokenizer need.
#ifndef CONFAB_TEXT_TOKEN_INDEX_H
#define CONFAB_TEXT_TOKEN_INDEX_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// Zeroed slots whose number is a power of two, on huge pages: they are walked at random.
struct token_table {
    void *slots;
    size_t size;   // bytes
    uint64_t mask; // slots − 1
};

// Slots for `count` entries at a load of at most two thirds. token_table_close gives them back.
bool token_table_open(struct token_table *t, uint64_t count, size_t slot_size, struct status *st);
void token_table_close(struct token_table *t);

struct token_index {
    const struct span *texts; // borrowed: [count]
    struct token_table table; // of struct token_slot
    uint64_t seed;
    bool unique; // no text repeats
};

// Indexes texts[0..count). Where texts repeat, the last one is found.
bool token_index_open(struct token_index *index, const struct span *texts, int32_t count, struct status *st);
void token_index_close(struct token_index *index);
int32_t token_index_find(const struct token_index *index, const char *text, size_t size); // −1 when absent

// A seeded hash of two ids, for tables that are keyed by pairs of tokens.
uint64_t token_hash_pair(uint64_t seed, int32_t a, int32_t b);

#endif
