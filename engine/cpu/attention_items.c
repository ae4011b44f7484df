// Which pieces attention is handed out in.
//
// A range of queries is one item for each part of its heads, or several, of some splits each, where that would be too
// much work for one worker while others have none: a decoding row of a long conversation, say. Results do not depend on
// it, so this may look at the batch and at the number of workers.
#include "engine/cpu/cpu.h"

enum { ITEMS_A_WORKER = 8 }; // from so many items on each, a worker's share is even enough

static int splits_of(const struct row_range *range) { return range->position / SPLIT_TOKENS + 1; }

// Of one range: its queries times the keys they see where there is no window.
static double work_of(const struct row_range *range) { return (double)range->n_rows * (range->position + 1); }

size_t attention_partials(const struct backend *b) {
    const size_t rows = b->n_workers > 4 ? (size_t)b->n_workers : 4, splits = (size_t)b->context / SPLIT_TOKENS + 1;
    const size_t most = 64; // splits of a longer row find room as long as there are fewer such rows
    return b->exact ? 0 : rows * (splits < most ? splits : most);
}

// In how many items of each part the range should be done.
static int items_of(const struct backend *b, const struct row_range *range, double all_work) {
    const double wanted = (double)ITEMS_A_WORKER * b->n_workers, parts = b->work.most_parts;
    const int splits = splits_of(range), items = (int)(wanted / parts * work_of(range) / all_work + 0.999);
    return items < 1 ? 1 : items < splits ? items : splits;
}

// Gives the range a place for what its splits find, if there is room.
static bool take_partials(const struct backend *b, struct row_range *range, size_t *partials, int *counters) {
    const size_t needed = (size_t)splits_of(range) * (size_t)range->n_rows;
    if (*partials + needed > b->work.n_partials || *counters + b->work.most_parts > b->work.n_counters) return false;
    range->partials = (int)*partials;
    range->counters = *counters;
    *partials += needed;
    *counters += b->work.most_parts;
    return true;
}

static int add_items(struct attention_item *items, const struct row_range *range) {
    const int splits = splits_of(range), run = (splits + range->n_items - 1) / range->n_items;
    for (int i = 0; i < range->n_items; i++)
        items[i] = (struct attention_item){range, i * run, (i + 1) * run < splits ? (i + 1) * run : splits};
    return range->n_items;
}

int attention_plan(const struct backend *b, struct row_range *ranges, int n, struct attention_item *items) {
    double all_work = 0;
    size_t partials = 0;
    int counters = 0, n_items = 0;
    for (int i = 0; i < n; i++) all_work += work_of(&ranges[i]);
    for (int i = 0; i < n; i++) {
        const int wanted = b->exact ? 1 : items_of(b, &ranges[i], all_work);
        const int splits = splits_of(&ranges[i]), run = (splits + wanted - 1) / wanted;
        const bool split = wanted > 1 && take_partials(b, &ranges[i], &partials, &counters);
        ranges[i].n_items = split ? (splits + run - 1) / run : 1;
        if (!split) n_items += add_items(items + n_items, &ranges[i]);
    }
    for (int i = 0; i < n; i++) // the small pieces last: they even out what the large ones leave
        if (ranges[i].n_items > 1) n_items += add_items(items + n_items, &ranges[i]);
    return n_items;
}
