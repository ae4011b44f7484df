// Token index: maps the text of a token to its id. An open-addressing table over borrowed spans, without allocations
// per token. The hash is seeded per process, so files cannot provoke collisions. Other tables of a tokenizer share the
// parts.
#ifndef CONFAB_TEXT_TOKEN_INDEX_H
#define CONFAB_TEXT_TOKEN_INDEX_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// Zeroed slots, a power of two, on huge pages because access is random.
struct token_table {
    void *slots;
    size_t size;   // bytes
    uint64_t mask; // slots − 1
};

// Slots for `count` entries at a load of at most two thirds, freed by token_table_close.
bool token_table_open(struct token_table *t, uint64_t count, size_t slot_size, struct status *st);
void token_table_close(struct token_table *t);

struct token_index {
    const struct span *texts; // borrowed: [count]
    struct token_table table; // of struct token_slot
    uint64_t seed;
    bool unique; // no duplicate texts
};

// Indexes texts[0..count). Of duplicates, the last one is found.
bool token_index_open(struct token_index *index, const struct span *texts, int32_t count, struct status *st);
void token_index_close(struct token_index *index);
int32_t token_index_find(const struct token_index *index, const char *text, size_t size); // −1 if absent

// A seeded hash of two ids, for tables keyed by pairs of tokens.
uint64_t token_hash_pair(uint64_t seed, int32_t a, int32_t b);

#endif
