#include "engine/text/merge_table.h"

#include <string.h>

#include "engine/base/hash_seed.h"

struct merge {
    int32_t left, right;
    uint32_t rank;
    int32_t product_plus_1; // id of the merged token plus 1; 0: free slot
};

static struct merge *find_merge(const struct merge_table *m, int32_t left, int32_t right) {
    struct merge *slots = m->slots.slots;
    for (uint64_t at = token_hash_pair(m->seed, left, right);; at++) {
        struct merge *slot = &slots[at & m->slots.mask];
        if (!slot->product_plus_1 || (slot->left == left && slot->right == right)) return slot;
    }
}

// Splits "left right" at the first space after the first byte.
static bool cut_merge(struct span text, struct span *left, struct span *right) {
    const char *cut = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
    if (!cut) return false;
    *left = (struct span){text.data, (size_t)(cut - text.data)};
    *right = (struct span){cut + 1, text.size - left->size - 1};
    return true;
}

// The token of both parts together. Files list merges in the order in which tokens were created, so it is mostly the
// token of the previous merge or the next one.
static int32_t find_product(const struct vocabulary *v, struct span left, struct span right, int32_t last, char *room) {
    for (int32_t id = last; id <= last + 1 && id < v->count; id++) {
        struct span text = v->texts[id];
        if (text.size == left.size + right.size && !memcmp(text.data, left.data, left.size) &&
            !memcmp(text.data + left.size, right.data, right.size))
            return v->index.unique ? id : vocabulary_find(v, text);
    }
    if (left.size + right.size > v->longest) return -1;
    memcpy(room, left.data, left.size);
    memcpy(room + left.size, right.data, right.size);
    return vocabulary_find(v, (struct span){room, left.size + right.size});
}

// Merges being added: the slots of a batch are prefetched before any is written.
struct merge_batch {
    struct merge merges[32];
    size_t count;
};

// If a merge repeats, the first wins.
static void insert_batch(struct merge_table *m, struct merge_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        struct merge *slot = find_merge(m, batch->merges[i].left, batch->merges[i].right);
        if (!slot->product_plus_1) *slot = batch->merges[i];
    }
    batch->count = 0;
}

static void add_merge(struct merge_table *m, struct merge_batch *batch, struct merge merge) {
    const struct merge *slots = m->slots.slots;
    __builtin_prefetch(&slots[token_hash_pair(m->seed, merge.left, merge.right) & m->slots.mask], 1);
    batch->merges[batch->count++] = merge;
    if (batch->count == sizeof batch->merges / sizeof *batch->merges) insert_batch(m, batch);
}

// A merge whose parts or result are not tokens can never apply; skip it.
static bool index_merges(struct merge_table *m, const struct vocabulary *v, const struct span *texts, uint64_t count,
                         char *room, struct status *st) {
    struct merge_batch batch = {.count = 0};
    int32_t last = 0;
    for (uint64_t rank = 0; rank < count; rank++) {
        struct span left, right;
        if (!cut_merge(texts[rank], &left, &right))
            return status_fail(st, STATUS_FORMAT,
                               "%s: tokenizer.ggml.merges: merge %llu: '%.*s' does not have two parts", v->file->path,
                               (unsigned long long)rank, (int)(texts[rank].size < 64 ? texts[rank].size : 64),
                               texts[rank].data);
        int32_t a = vocabulary_find(v, left), b = vocabulary_find(v, right);
        int32_t product = find_product(v, left, right, last, room);
        if (a < 0 || b < 0 || product < 0) continue;
        add_merge(m, &batch, (struct merge){a, b, (uint32_t)rank, product + 1});
        last = product;
    }
    insert_batch(m, &batch);
    return true;
}

static bool read_merges(struct merge_table *m, const struct vocabulary *v, struct arena *scratch, struct status *st) {
    uint64_t count;
    const struct span *texts = gguf_get_strings(v->file, VOCABULARY_KEY("merges"), scratch, &count, st);
    if (!texts && st->code != STATUS_OK) return false;
    if (!texts || count > UINT32_MAX)
        return status_fail(st, STATUS_FORMAT,
                           texts ? "%s: tokenizer.ggml.merges: too many merges"
                                 : "%s: missing key tokenizer.ggml.merges",
                           v->file->path);
    char *room = arena_array(scratch, v->longest + 1, 1, st);
    if (!room || !token_table_open(&m->slots, count, sizeof(struct merge), st)) return false;
    m->seed = hash_seed();
    return index_merges(m, v, texts, count, room, st);
}

bool merge_table_open(struct merge_table *m, const struct vocabulary *v, struct status *st) {
    struct arena scratch = {0};
    bool done = read_merges(m, v, &scratch, st);
    arena_free(&scratch);
    return done;
}

void merge_table_close(struct merge_table *m) { token_table_close(&m->slots); }

bool merge_table_rule(const void *rules, const struct merge_symbol *left, const struct merge_symbol *right,
                      struct merge_product *product) {
    const struct merge *slot = find_merge(rules, left->id, right->id);
    if (!slot->product_plus_1) return false;
    *product = (struct merge_product){slot->rank, slot->product_plus_1 - 1};
    return true;
}
