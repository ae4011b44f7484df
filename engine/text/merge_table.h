// Merge table: the list `tokenizer.ggml.merges`, indexed by pairs of tokens.
#ifndef CONFAB_TEXT_MERGE_TABLE_H
#define CONFAB_TEXT_MERGE_TABLE_H

#include "engine/text/pair_merger.h"
#include "engine/text/vocabulary.h"

struct merge_table {
    struct token_table slots; // open addressing
    uint64_t seed;
};

// Reads and checks the list. Close it even after a failure.
bool merge_table_open(struct merge_table *m, const struct vocabulary *v, struct status *st);
void merge_table_close(struct merge_table *m);
// A merge_rule; `rules` is the table.
bool merge_table_rule(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                      struct merge_product *product);

#endif
