// Attention over paged keys and values: an online softmax over blocks of pages, in order of position.
//
// A sequence's tokens are cut at fixed places into splits of SPLIT_TOKENS. What a query finds in a split is computed
// alone, from nothing, and the splits' partials are merged in order: so it makes no difference to the result whether
// one worker goes through all splits of a query or each split is another's work (attention_items.c).
//
// All query heads that share a kv head, of several rows, go through a block of pages together. A slot that a row does
// not see, because it is past the row's own position or outside its window, has no influence on it: its score is
// replaced, and its value is multiplied by a weight of 0 only if that makes 0. Pages that no row of a range sees are
// not visited.
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu.h"

enum { SPLIT_PAGES = SPLIT_TOKENS / KV_PAGE_TOKENS, AHEAD_BYTES = 1 << 16 };
_Static_assert(SPLIT_PAGES % KV_BLOCK_PAGES == 0, "splits are whole blocks of pages");

static int group_size(const struct layer_spec *l) { return l->n_head / l->n_head_kv; }

int attention_range_rows(const struct layer_spec *layer) {
    const int rows = RANGE_QUERIES / group_size(layer);
    return rows < 1 ? 1 : rows > KV_PAGE_TOKENS ? KV_PAGE_TOKENS : rows;
}

// --- which keys a row sees -------------------------------------------------------------------------------------------

static int first_key(const struct layer_spec *l, int position) {
    return l->window && position >= l->window ? position - l->window + 1 : 0;
}

int attention_keys(const struct layer_spec *layer, int position) { return position + 1 - first_key(layer, position); }

struct view { // of some pages of a sequence
    int page, n_pages;
};
struct slots {
    int first, end; // of a view; none when first ≥ end
};

static int in_view(const struct view *v, int position) {
    const int slot = position - v->page * KV_PAGE_TOKENS, n = v->n_pages * KV_PAGE_TOKENS;
    return slot < 0 ? 0 : slot > n ? n : slot;
}

static struct slots slots_seen(const struct layer_spec *l, const struct view *v, int position) {
    return (struct slots){in_view(v, first_key(l, position)), in_view(v, position + 1)};
}

// --- queries and keys ------------------------------------------------------------------------------------------------

static void rotate(const struct rope_spec *rope, const float *table, float *head) {
    const int half = rope->n_rot / 2, step = rope->kind == ROPE_NORM ? 2 : 1,
              apart = rope->kind == ROPE_NORM ? 1 : half;
    for (int i = 0; i < half; i++) {
        float *first = head + i * step, *second = first + apart;
        float a = *first, b = *second, cosine = table[2 * i], sine = table[2 * i + 1];
        *first = a * cosine - b * sine;
        *second = a * sine + b * cosine;
    }
}

// Head `index` of a row becomes what attention uses: normed if the model norms heads alone, and rotated.
static void position_head(const struct backend *b, const struct layer_spec *l, int row, float *head, int index,
                          const struct norm *norm) {
    const struct model_spec *s = b->spec;
    const size_t own = s->head_norm == HEAD_NORM_OWN ? (size_t)index * (size_t)s->head_size : 0;
    if (norm->weight && s->head_norm != HEAD_NORM_WHOLE)
        b->kernels->norm[s->norm](head, norm->weight + own, NULL, head, s->head_size, s->norm_epsilon);
    if (l->rope != ROPE_TABLE_NONE) rotate(&s->rope, b->work.rope[l->rope] + (size_t)row * (size_t)s->rope.n_rot, head);
}

static uint8_t *keys_of(const struct backend *b, int layer, const struct batch_segment *s, int index, int kv_head) {
    return kv_at(b, layer, s->pages[index], kv_head);
}

static void store_row(const struct pass *p, const struct cpu_layer *l, int row, int position, int kv_head,
                      uint8_t *keys, float *scratch) {
    const struct backend *b = p->b;
    const int group = group_size(l->spec), size = b->spec->head_size;
    const float scale = rope_query_scale(b->spec, position);
    float *queries = b->work.qkv + (size_t)row * (size_t)b->work.qkv_stride;
    float *key = queries + query_size(b, l->spec) + kv_head * size;
    const float *value = key + kv_size(b, l->spec);
    position_head(b, l->spec, row, key, kv_head, &l->key_norm);
    kv_store(&b->kv.layout, b->kernels, keys, kv_values(&b->kv.layout, keys), position % KV_PAGE_TOKENS, key, value,
             scratch);
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++) {
        position_head(b, l->spec, row, queries + head * size, head, &l->query_norm);
        for (int d = 0; d < size; d++) queries[head * size + d] *= scale;
    }
}

void attention_store(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *scratch) {
    uint8_t *keys = keys_of(p->b, layer, range->segment, range->position / KV_PAGE_TOKENS, kv_head);
    for (int i = 0; i < range->n_rows; i++)
        store_row(p, &p->b->weights.layers[layer], range->row + i, range->position + i, kv_head, keys, scratch);
}

// --- scratch ---------------------------------------------------------------------------------------------------------

struct kv_head_pass { // the rows of a range at one kv head
    const struct backend *b;
    const struct cpu_layer *layer;
    const struct kv_layout *kv;
    const struct row_range *range;
    int index, kv_head, group, n_queries;  // of the layer; group × rows
    const float *queries;                  // [queries][head size], scaled
    struct activation_block *query_blocks; // the same in panels, for packed blocks
    float *scores;                         // [pages][queries][32]
    float *found, *total;                  // [queries][padded head] of a split, of all so far
    struct softmax *found_state, *total_state;
    double *exact_total; // [head size]
};

static size_t whole_lines(size_t floats) { return (floats + 15) & ~(size_t)15; }

size_t attention_scratch(const struct model_spec *s, int queries) {
    const size_t n = (size_t)queries, size = (size_t)s->head_size, padded = (size_t)(s->head_size + 31) / 32 * 32;
    const size_t blocks = n * padded / BLOCK_COLUMNS * sizeof(struct activation_block) / sizeof(float);
    const size_t floats = whole_lines(n * size) + whole_lines(blocks) + n * KV_PAGE_TOKENS * KV_BLOCK_PAGES +
                          2 * n * padded + 2 * whole_lines(2 * n) + whole_lines(2 * size);
    const size_t store = kv_store_scratch(s->head_size);
    return floats > store ? floats : store;
}

static float *take(float **scratch, size_t floats) {
    float *taken = *scratch;
    *scratch += whole_lines(floats);
    return taken;
}

static void load_queries(struct kv_head_pass *h, float **scratch) {
    const struct backend *b = h->b;
    const int width = h->group * b->spec->head_size;
    const float *from = b->work.qkv + (size_t)h->range->row * (size_t)b->work.qkv_stride + h->kv_head * width;
    float *queries = take(scratch, (size_t)h->n_queries * (size_t)b->spec->head_size);
    h->queries = h->range->n_rows > 1 ? queries : from;
    for (int i = 0; i < h->range->n_rows && h->queries == queries; i++)
        memcpy(queries + i * width, from + (size_t)i * (size_t)b->work.qkv_stride, (size_t)width * sizeof *queries);
}

// Panels of [padded / 32][width of the panel] blocks.
static void quantize_queries(const struct kv_head_pass *h) {
    const int size = h->kv->size, blocks = h->kv->padded / BLOCK_COLUMNS, width = panel_width(h->n_queries);
    float *padded = h->total; // not in use yet
    memset(padded, 0, (size_t)h->kv->padded * sizeof *padded);
    for (int i = 0; i < h->n_queries; i++) {
        const int first = i / width * width, own = h->n_queries - first < width ? h->n_queries - first : width;
        memcpy(padded, h->queries + (size_t)i * size, (size_t)size * sizeof *padded);
        h->b->kernels->quantize(padded, blocks, h->query_blocks + first * blocks + i % width, own);
    }
}

static struct kv_head_pass begin_head(const struct backend *b, int layer, const struct row_range *range, int kv_head,
                                      float *scratch) {
    const struct cpu_layer *l = &b->weights.layers[layer];
    struct kv_head_pass h = {.b = b, .layer = l, .kv = &b->kv.layout, .range = range, .index = layer};
    h.kv_head = kv_head, h.group = group_size(l->spec), h.n_queries = range->n_rows * h.group;
    const size_t n = (size_t)h.n_queries, padded = (size_t)h.kv->padded;
    load_queries(&h, &scratch);
    h.query_blocks =
        (struct activation_block *)take(&scratch, n * padded / BLOCK_COLUMNS * sizeof *h.query_blocks / sizeof(float));
    h.scores = take(&scratch, n * KV_PAGE_TOKENS * KV_BLOCK_PAGES);
    h.found = take(&scratch, n * padded);
    h.total = take(&scratch, n * padded);
    h.found_state = (struct softmax *)take(&scratch, 2 * n);
    h.total_state = (struct softmax *)take(&scratch, 2 * n);
    h.exact_total = (double *)take(&scratch, 2 * (size_t)h.kv->size);
    return h;
}

static struct slots query_slots(const struct kv_head_pass *h, const struct view *v, int row) {
    return slots_seen(h->layer->spec, v, h->range->position + row);
}

// --- a block of pages ------------------------------------------------------------------------------------------------

static bool keeps_halves(const struct kv_head_pass *h) { return h->kv->layout < KV_HALVES; }

static void packed_scores(const struct kv_head_pass *h, const void *keys, const void *ahead, float *scores) {
    const enum block_id format = h->kv->layout == KV_Q8_0 ? BLOCK_Q8_0 : BLOCK_Q4_0;
    const int blocks = h->kv->padded / BLOCK_COLUMNS, width = panel_width(h->n_queries);
    struct strip s = {.format = &block_formats[format],
                      .weights = keys,
                      .ahead = (uintptr_t)ahead - (uintptr_t)keys,
                      .fetches = true,
                      .turns = (h->n_queries + width - 1) / width,
                      .rows = STRIP_ROWS,
                      .columns = h->kv->padded};
    for (int first = 0; first < h->n_queries; first += width) {
        s.turn = first / width;
        s.width = h->n_queries - first < width ? h->n_queries - first : width;
        s.blocks = h->query_blocks + first * blocks;
        s.out = scores + first * KV_PAGE_TOKENS;
        h->b->kernels->strip[format](&s);
    }
}

static void page_scores(const struct kv_head_pass *h, const void *keys, const void *ahead, float *scores) {
    if (keeps_halves(h))
        h->b->kernels->half_scores[h->kv->layout](&(struct scoring){.keys = keys,
                                                                    .ahead = ahead,
                                                                    .size = h->kv->size,
                                                                    .rows = h->n_queries,
                                                                    .queries = h->queries,
                                                                    .out = scores});
    else packed_scores(h, keys, ahead, scores);
}

// Scores become weights; what was found before is corrected to the new maximum.
static void soften(const struct kv_head_pass *h, const struct view *v) {
    const struct cpu_kernels *k = h->b->kernels;
    const int page_stride = h->n_queries * KV_PAGE_TOKENS, padded = h->kv->padded;
    for (int i = 0; i < h->n_queries; i++) {
        const struct slots slots = query_slots(h, v, i / h->group);
        float *scores = h->scores + i * KV_PAGE_TOKENS;
        if (slots.first >= slots.end) {
            for (int p = 0; p < v->n_pages; p++) memset(scores + p * page_stride, 0, KV_PAGE_TOKENS * sizeof *scores);
            continue;
        }
        const float correction =
            k->softmax(scores, page_stride, v->n_pages, slots.first, slots.end, &h->found_state[i]);
        if (correction != 1) k->scale(h->found + (size_t)i * (size_t)padded, padded, correction);
    }
}

static bool values_finite(const struct kv_head_pass *h, const struct weighing *w, struct slots slots) {
    for (int p = 0; p < w->n_pages; p++)
        if (!kv_values_finite(h->kv, w->pages[p], slot_in_page(slots.first, p), slot_in_page(slots.end, p)))
            return false;
    return true;
}

// Weights of 0 times what only some rows see must be 0; else every row goes alone through what it sees.
static void weigh_halves(const struct kv_head_pass *h, const struct view *v, struct weighing *w) {
    const int rows = h->range->n_rows;
    const struct slots least = query_slots(h, v, 0), most = query_slots(h, v, rows - 1);
    w->first = least.first, w->end = most.end;
    if (values_finite(h, w, (struct slots){least.first, most.first}) &&
        values_finite(h, w, (struct slots){least.end, most.end})) {
        h->b->kernels->weigh[h->kv->layout](w);
        return;
    }
    w->rows = h->group;
    for (int row = 0; row < rows; row++, w->weights += h->group * KV_PAGE_TOKENS, w->out += h->group * w->size) {
        const struct slots own = query_slots(h, v, row);
        w->first = own.first, w->end = own.end;
        if (own.first < own.end) h->b->kernels->weigh[h->kv->layout](w);
    }
}

// How far ahead pages are fetched: long enough for the memory, few enough for the second cache.
static int pages_ahead(const struct kv_layout *kv) {
    const int pages = (int)(AHEAD_BYTES / kv_head_bytes(kv));
    return pages > KV_BLOCK_PAGES ? pages : KV_BLOCK_PAGES;
}

static void attend_view(const struct kv_head_pass *h, const struct view *v) {
    const struct model_spec *s = h->b->spec;
    const int page_stride = h->n_queries * KV_PAGE_TOKENS;
    struct weighing w = {.n_pages = v->n_pages,
                         .end = v->n_pages * KV_PAGE_TOKENS,
                         .rows = h->n_queries,
                         .size = h->kv->padded,
                         .weights = h->scores,
                         .page_stride = page_stride,
                         .out = h->found};
    for (int p = 0; p < v->n_pages; p++) {
        const int last = h->range->position / KV_PAGE_TOKENS, later = v->page + p + pages_ahead(h->kv);
        uint8_t *keys = keys_of(h->b, h->index, h->range->segment, v->page + p, h->kv_head);
        uint8_t *ahead = keys_of(h->b, h->index, h->range->segment, later < last ? later : last, h->kv_head);
        w.pages[p] = kv_values(h->kv, keys);
        w.ahead[p] = kv_values(h->kv, ahead);
        page_scores(h, keys, ahead, h->scores + p * page_stride);
    }
    if (s->attention_softcap != 0) h->b->kernels->softcap(h->scores, v->n_pages * page_stride, s->attention_softcap);
    soften(h, v);
    if (keeps_halves(h)) weigh_halves(h, v, &w);
    else h->b->kernels->weigh[h->kv->layout](&w);
}

// --- splits ----------------------------------------------------------------------------------------------------------

static struct view split_view(const struct kv_head_pass *h, int split) {
    const int first = first_key(h->layer->spec, h->range->position) / KV_PAGE_TOKENS;
    const int last = h->range->position / KV_PAGE_TOKENS, begin = split * SPLIT_PAGES, end = begin + SPLIT_PAGES;
    const int from = first > begin ? first : begin, to = last + 1 < end ? last + 1 : end;
    return (struct view){from, to > from ? to - from : 0};
}

// What all queries find in one split: found and found_state.
static void attend_split(const struct kv_head_pass *h, int split) {
    const struct view all = split_view(h, split);
    memset(h->found, 0, (size_t)h->n_queries * (size_t)h->kv->padded * sizeof *h->found);
    for (int i = 0; i < h->n_queries; i++) h->found_state[i] = (struct softmax){-INFINITY, 0};
    for (int page = all.page; page < all.page + all.n_pages;) {
        const int block_end = (page / KV_BLOCK_PAGES + 1) * KV_BLOCK_PAGES, end = all.page + all.n_pages;
        const struct view v = {page, (block_end < end ? block_end : end) - page};
        attend_view(h, &v);
        page += v.n_pages;
    }
}

static void begin_total(const struct kv_head_pass *h) {
    const float *sinks = h->layer->sinks; // a sink is a key that was seen first and has no value
    memset(h->total, 0, (size_t)h->n_queries * (size_t)h->kv->padded * sizeof *h->total);
    for (int i = 0; i < h->n_queries; i++)
        h->total_state[i] =
            sinks ? (struct softmax){sinks[h->kv_head * h->group + i % h->group], 1} : (struct softmax){-INFINITY, 0};
}

static void merge_split(const struct kv_head_pass *h, int split) {
    const struct view v = split_view(h, split);
    const size_t padded = (size_t)h->kv->padded;
    for (int i = 0; i < h->n_queries; i++) {
        const struct slots slots = query_slots(h, &v, i / h->group);
        if (slots.first < slots.end)
            h->b->kernels->softmax_merge(&h->total_state[i], h->total + (size_t)i * padded, &h->found_state[i],
                                         h->found + (size_t)i * padded, (int)padded);
    }
}

static void finish(const struct kv_head_pass *h, const struct input *out) {
    const int size = h->kv->size, width = h->group * size;
    for (int i = 0; i < h->n_queries; i++) {
        float *total = h->total + (size_t)i * (size_t)h->kv->padded;
        h->b->kernels->scale(total, h->kv->padded, 1 / h->total_state[i].sum);
        memmove(h->total + (size_t)i * (size_t)size, total, (size_t)size * sizeof *total);
    }
    for (int i = 0; i < h->range->n_rows; i++)
        input_store(out, h->b->kernels, h->range->result + i, h->kv_head * width, width, h->total + (size_t)i * width);
}

static int last_split(const struct row_range *range) { return range->position / SPLIT_TOKENS; }
static int first_split(const struct kv_head_pass *h) {
    return first_key(h->layer->spec, h->range->position) / SPLIT_TOKENS;
}

static void attend_all_splits(struct kv_head_pass *h, const struct input *out) {
    if (!keeps_halves(h)) quantize_queries(h);
    begin_total(h);
    for (int split = first_split(h); split <= last_split(h->range); split++) {
        attend_split(h, split);
        merge_split(h, split);
    }
    finish(h, out);
}

// Where what is found in a split waits for the others.
static void use_partials(struct kv_head_pass *h, int split) {
    const struct row_range *r = h->range;
    const size_t row = (size_t)h->b->work.partial_size * (size_t)r->n_rows;
    const size_t query = (size_t)h->kv->padded + 2;
    h->found = h->b->work.partials + (size_t)r->partials * h->b->work.partial_size + (size_t)split * row +
               (size_t)h->kv_head * (size_t)h->n_queries * query;
    h->found_state = (struct softmax *)(h->found + (size_t)h->n_queries * (size_t)h->kv->padded);
}

static void attend_some_splits(struct kv_head_pass *h, int begin, int end) {
    if (end <= first_split(h)) return;
    if (!keeps_halves(h)) quantize_queries(h);
    for (int split = begin > first_split(h) ? begin : first_split(h); split < end; split++) {
        use_partials(h, split);
        attend_split(h, split);
    }
}

static void merge_partials(struct kv_head_pass *h, const struct input *out) {
    begin_total(h);
    for (int split = first_split(h); split <= last_split(h->range); split++) {
        use_partials(h, split);
        merge_split(h, split);
    }
    finish(h, out);
}

// --- exact -----------------------------------------------------------------------------------------------------------

static double dot_double(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void attend_exact_query(const struct kv_head_pass *h, int index, float *out) {
    const struct backend *b = h->b;
    const int size = h->kv->size, position = h->range->position + index / h->group;
    const float *sinks = h->layer->sinks, *query = h->queries + index * size;
    const double cap = b->spec->attention_softcap;
    double *totals = h->exact_total;
    double maximum = sinks ? sinks[h->kv_head * h->group + index % h->group] : -INFINITY, sum = sinks ? 1 : 0;
    memset(totals, 0, (size_t)size * sizeof *totals);
    for (int t = first_key(h->layer->spec, position); t <= position; t++) {
        uint8_t *keys = keys_of(b, h->index, h->range->segment, t / KV_PAGE_TOKENS, h->kv_head);
        const int slot = t % KV_PAGE_TOKENS;
        const float *key = (float *)keys + slot * size;
        const float *value = (float *)kv_values(h->kv, keys) + slot * size;
        const double dot = dot_double(query, key, size), score = cap != 0 ? cap * tanh(dot / cap) : dot;
        const double top = score > maximum ? score : maximum;
        const double correction = exp(maximum - top), weight = exp(score - top);
        for (int d = 0; d < size; d++) totals[d] = totals[d] * correction + weight * value[d];
        sum = sum * correction + weight;
        maximum = top;
    }
    for (int d = 0; d < size; d++) out[d] = (float)(totals[d] / sum);
}

static void attend_exact(const struct kv_head_pass *h, const struct input *out) {
    const int size = h->kv->size, width = h->group * size;
    for (int i = 0; i < h->n_queries; i++) attend_exact_query(h, i, h->total + i * size);
    for (int i = 0; i < h->range->n_rows; i++)
        input_store(out, h->b->kernels, h->range->result + i, h->kv_head * width, width, h->total + i * width);
}

// --- items of work ---------------------------------------------------------------------------------------------------

// Heads are items of their own where the results of one kv head are whole blocks of 32, to be quantised alone.
int attention_parts(const struct backend *b, int layer) {
    const struct layer_spec *l = b->weights.layers[layer].spec;
    const bool whole = group_size(l) * b->spec->head_size % BLOCK_COLUMNS == 0;
    return whole || !b->work.inputs[layer][INPUT_ATTENDED].blocks ? l->n_head_kv : 1;
}

// Attends from a range to some of its splits, or to all, or merges what was found in them.
enum work_kind { ALL_SPLITS, SOME_SPLITS, MERGE };
struct work {
    enum work_kind kind;
    int begin, end; // of some splits
};

static void attend_kv_head(const struct pass *p, int layer, const struct row_range *range, int kv_head,
                           const struct work *work, const struct input *out, float *scratch) {
    struct kv_head_pass h = begin_head(p->b, layer, range, kv_head, scratch);
    if (p->b->exact) attend_exact(&h, out);
    else if (work->kind == ALL_SPLITS) attend_all_splits(&h, out);
    else if (work->kind == SOME_SPLITS) attend_some_splits(&h, work->begin, work->end);
    else merge_partials(&h, out);
}

// One kv head of a range, or all: where they are no whole blocks, all are put together as values first.
static void attend_part(const struct pass *p, int layer, const struct row_range *range, int part,
                        const struct work *work, const struct input *out, float *scratch) {
    const int n_head_kv = p->b->weights.layers[layer].spec->n_head_kv;
    if (attention_parts(p->b, layer) == n_head_kv) {
        attend_kv_head(p, layer, range, part, work, out, scratch);
        return;
    }
    struct input plain = *out, quantised = *out;
    plain.blocks = NULL;
    quantised.values = NULL;
    for (int kv_head = 0; kv_head < n_head_kv; kv_head++)
        attend_kv_head(p, layer, range, kv_head, work, &plain, scratch);
    for (int i = 0; i < range->n_rows && work->kind != SOME_SPLITS; i++)
        input_store(&quantised, p->b->kernels, range->result + i, 0, out->columns,
                    out->values + (size_t)(range->result + i) * (size_t)out->columns);
}

void attention_attend(const struct pass *p, int layer, const struct attention_item *item, int part,
                      const struct input *out, float *scratch) {
    const struct row_range *range = item->range;
    struct work work = {range->n_items > 1 ? SOME_SPLITS : ALL_SPLITS, item->first_split, item->end_split};
    attend_part(p, layer, range, part, &work, out, scratch);
    if (work.kind == ALL_SPLITS) return;
    // Whoever finishes a part's last item merges them all, and leaves the count as the next layer wants it.
    atomic_int *done = &p->b->work.items_done[range->counters + part];
    if (atomic_fetch_add_explicit(done, 1, memory_order_acq_rel) + 1 < range->n_items) return;
    atomic_store_explicit(done, 0, memory_order_relaxed);
    work.kind = MERGE;
    attend_part(p, layer, range, part, &work, out, scratch);
}
