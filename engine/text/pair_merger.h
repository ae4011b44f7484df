// Pair merger: the core of byte-pair encoding. Replaces the best adjacent pair of symbols by one symbol until no pair
// merges. n·log n for any input: a heap of candidate pairs over a linked list.
#ifndef CONFAB_TEXT_PAIR_MERGER_H
#define CONFAB_TEXT_PAIR_MERGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_symbol {
    const char *text; // borrowed; adjacent symbols are adjacent in memory
    uint32_t size;    // bytes; 0: merged into the symbol before it
    int32_t id;       // of the token; −1: not a token
    uint32_t next, previous;
};
#define MERGE_END UINT32_MAX

// The result of merging a pair. Lower order merges first, then leftmost.
struct merge_product {
    uint32_t order;
    int32_t id;
};

struct merge_candidate;

// Scratch memory, reused for all rows. Zero-initialise.
struct pair_merger {
    struct merge_symbol *symbols;
    struct merge_candidate *heap;
    size_t n_symbols, capacity, n_heap;
};

// Whether two symbols merge, and the result. `rules` is the caller's.
typedef bool (*merge_rule)(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                           struct merge_product *product);

// Starts a new row of at most `capacity` symbols.
void pair_merger_begin(struct pair_merger *m, size_t capacity);
void pair_merger_add(struct pair_merger *m, const char *text, size_t size, int32_t id);
// Merges. The result is a list from symbols[0], linked by `next` up to MERGE_END.
void pair_merger_run(struct pair_merger *m, merge_rule rule, const void *rules);
void pair_merger_free(struct pair_merger *m);

#endif
