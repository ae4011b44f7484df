// Pair merger: the heart of byte-pair encoding. A row of symbols, of which the best adjacent pair is replaced by one
// symbol until no pair is left that merges. n·log n for any input: a heap of candidate pairs over a linked list.
#ifndef CONFAB_TEXT_PAIR_MERGER_H
#define CONFAB_TEXT_PAIR_MERGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_symbol {
    const char *text; // borrowed; adjacent symbols are adjacent in memory
    uint32_t size;    // bytes; 0: merged into the symbol before it
    int32_t id;       // of the token; −1: the text is no token
    uint32_t next, previous;
};
#define MERGE_END UINT32_MAX

// What a pair would become. Lower order merges first; of equal orders the leftmost.
struct merge_product {
    uint32_t order;
    int32_t id;
};

struct merge_candidate;

// Scratch memory, which grows to the longest row and is reused from row to row. Zero-initialise.
struct pair_merger {
    struct merge_symbol *symbols;
    struct merge_candidate *heap;
    size_t n_symbols, capacity, n_heap;
};

// Whether two symbols merge, and to what. `rules` belongs to the caller.
typedef bool (*merge_rule)(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                           struct merge_product *product);

// Starts a new row of at most `capacity` symbols.
void pair_merger_begin(struct pair_merger *m, size_t capacity);
void pair_merger_add(struct pair_merger *m, const char *text, size_t size, int32_t id);
// Merges. What remains begins at symbols[0] and is linked by `next`, up to MERGE_END.
void pair_merger_run(struct pair_merger *m, merge_rule rule, const void *rules);
void pair_merger_free(struct pair_merger *m);

#endif
