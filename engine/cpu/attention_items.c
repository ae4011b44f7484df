// Which pieces attention is handed out in.
//
// A range of queries is one item for each part of its heads, or one for each of its splits and parts where that would be
// too much work for one worker while others have none: a decoding row of a long conversation, say. Results do not depend
// on it, so this may look at the batch and at the number of workers.
#include "engine/cpu/cpu.h"

enum { ITEMS_A_WORKER = 8 }; // from so many items on each, a worker's share is even enough

static int splits_of(const struct row_range *range) { return range->position / SPLIT_TOKENS + 1; }

// Of one range: its queries times the keys they see where there is no window.
static double work_of(const struct row_range *range) { return (double)range->n_rows * (range->position + 1); }

size_t attention_findings(const struct backend *b) {
    const size_t rows = b->n_workers > 4 ? (size_t)b->n_workers : 4, splits = (size_t)b->context / SPLIT_TOKENS + 1;
    const size_t most = 64; // splits of a longer row find room as long as there are fewer such rows
    return b->exact ? 0 : rows * (splits < most ? splits : most);
}

// Gives the range a place for what its splits find, if it should be split and there is room.
static bool split_range(const struct backend *b, struct row_range *range, double all_work, size_t *findings,
                        int *counters) {
    const int n = splits_of(range), parts = b->most_parts;
    const size_t needed = (size_t)n * (size_t)range->n_rows;
    if (n == 1 || work_of(range) * ITEMS_A_WORKER * b->n_workers < all_work * parts) return false;
    if (*findings + needed > b->n_findings || *counters + parts > b->n_counters) return false;
    range->n_splits = n;
    range->findings = (int)*findings;
    range->counters = *counters;
    *findings += needed;
    *counters += parts;
    return true;
}

int attention_plan(const struct backend *b, struct row_range *ranges, int n, struct attention_item *items) {
    double all_work = 0;
    size_t findings = 0;
    int counters = 0, n_items = 0;
    for (int i = 0; i < n; i++) all_work += work_of(&ranges[i]);
    for (int i = 0; i < n; i++) {
        if (split_range(b, &ranges[i], all_work, &findings, &counters)) continue;
        ranges[i].n_splits = 0;
        items[n_items++] = (struct attention_item){&ranges[i], -1};
    }
    for (int i = 0; i < n; i++) // the small pieces last: they even out what the large ones leave
        for (int split = 0; split < ranges[i].n_splits; split++)
            items[n_items++] = (struct attention_item){&ranges[i], split};
    return n_items;
}
