// Attention over paged keys and values, page by page in order of position, with an online softmax.
//
// Keys and values of a page are half floats, one head after the other: keys transposed [head_size][32 tokens], so that
// the scores of 32 tokens are vectors; values [32 tokens][head_size padded to 32]. All query heads that share a kv
// head, of several rows, go through a page together. In exact mode both are f32 [32 tokens][head_size].
//
// A slot that a row does not see, because it is past the row's own position or outside its window, is never read for
// it: scores there are replaced, and values are multiplied only where they are seen. Pages that no row of a range sees
// are not visited.
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu.h"

enum { RANGE_QUERIES = 16 }; // queries that go through a page together, if the heads of one row are not more

static int group_size(const struct layer_spec *l) { return l->n_head / l->n_head_kv; }
static int padded_head(const struct model_spec *s) { return (s->head_size + 31) & ~31; }
static size_t key_elements(const struct model_spec *s) { return (size_t)s->head_size * KV_PAGE_TOKENS; }
static size_t value_elements(const struct model_spec *s, bool exact) {
    return (size_t)(exact ? s->head_size : padded_head(s)) * KV_PAGE_TOKENS;
}
static size_t element_bytes(bool exact) { return exact ? sizeof(float) : sizeof(uint16_t); }

size_t attention_page_bytes(const struct model_spec *s, const struct layer_spec *layer, bool exact) {
    return (key_elements(s) + value_elements(s, exact)) * element_bytes(exact) * (size_t)layer->n_head_kv;
}

int attention_range_rows(const struct layer_spec *layer) {
    const int rows = RANGE_QUERIES / group_size(layer);
    return rows < 1 ? 1 : rows > KV_PAGE_TOKENS ? KV_PAGE_TOKENS : rows;
}

size_t attention_scratch(const struct model_spec *s, int queries) { // queries, outputs, scores, states; or exact sums
    return (size_t)queries * (size_t)(s->head_size + padded_head(s) + KV_PAGE_TOKENS + 2) + 4 * (size_t)padded_head(s) +
           64;
}

// --- which keys a row sees -------------------------------------------------------------------------------------------

static int first_key(const struct layer_spec *l, int position) {
    return l->window && position >= l->window ? position - l->window + 1 : 0;
}

int attention_keys(const struct layer_spec *layer, int position) { return position + 1 - first_key(layer, position); }

struct slots {
    int first, end; // of a page; none when first ≥ end
};

static int in_page(int position, int page) {
    const int slot = position - page * KV_PAGE_TOKENS;
    return slot < 0 ? 0 : slot > KV_PAGE_TOKENS ? KV_PAGE_TOKENS : slot;
}

static struct slots slots_seen(const struct layer_spec *l, int position, int page) {
    return (struct slots){in_page(first_key(l, position), page), in_page(position + 1, page)};
}

// --- pages -----------------------------------------------------------------------------------------------------------

static uint8_t *page(const struct backend *b, int layer, const struct batch_segment *s, int index) {
    const struct cpu_layer *l = &b->layers[layer];
    return l->kv + (size_t)s->pages[index] * l->page_bytes;
}
static void *keys(const struct backend *b, uint8_t *page, int kv_head) {
    return page + key_elements(b->spec) * (size_t)kv_head * element_bytes(b->exact);
}
static void *values(const struct backend *b, const struct layer_spec *l, uint8_t *page, int kv_head) {
    const size_t before = key_elements(b->spec) * (size_t)l->n_head_kv;
    return page + (before + value_elements(b->spec, b->exact) * (size_t)kv_head) * element_bytes(b->exact);
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

// Head `index` of a row as attention uses it: normed if the model norms heads alone, and rotated.
static void position_head(const struct backend *b, const struct layer_spec *l, int row, const float *head, int index,
                          const struct norm *norm, float *out) {
    const struct model_spec *s = b->spec;
    const size_t own = s->head_norm == HEAD_NORM_OWN ? (size_t)index * (size_t)s->head_size : 0;
    if (norm->weight && s->head_norm != HEAD_NORM_WHOLE)
        b->kernels->norm[s->norm](head, norm->weight + own, NULL, out, s->head_size, s->norm_epsilon);
    else memcpy(out, head, (size_t)s->head_size * sizeof *out);
    if (l->rope != ROPE_TABLE_NONE) rotate(&s->rope, b->rope[l->rope] + (size_t)row * (size_t)s->rope.n_rot, out);
}

void attention_store(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *scratch) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const int size = b->spec->head_size;
    uint8_t *to = page(b, layer, range->segment, range->position / KV_PAGE_TOKENS);
    for (int i = 0; i < range->n_rows; i++) {
        const float *key = b->qkv + (size_t)(range->row + i) * (size_t)b->qkv_stride + query_size(b, l->spec);
        const float *value = key + kv_size(b, l->spec) + kv_head * size;
        const int slot = (range->position + i) % KV_PAGE_TOKENS;
        position_head(b, l->spec, range->row + i, key + kv_head * size, kv_head, &l->key_norm, scratch);
        if (b->exact) {
            const size_t bytes = (size_t)size * sizeof(float);
            memcpy((float *)keys(b, to, kv_head) + slot * size, scratch, bytes);
            memcpy((float *)values(b, l->spec, to, kv_head) + slot * size, value, bytes);
            continue;
        }
        uint16_t *half = (uint16_t *)(scratch + size), *transposed = keys(b, to, kv_head);
        b->kernels->to_half(scratch, half, size);
        for (int d = 0; d < size; d++) transposed[d * KV_PAGE_TOKENS + slot] = half[d];
        b->kernels->to_half(value, (uint16_t *)values(b, l->spec, to, kv_head) + slot * padded_head(b->spec), size);
    }
}

static float query_scale(const struct model_spec *s, int position) {
    if (s->position_scale == 0) return s->attention_scale;
    const int lengths = position / s->position_scale_length;
    return (float)((double)s->attention_scale * (1 + (double)s->position_scale * log(1.0 + lengths)));
}

// The queries of a range's rows that use kv_head: [rows × group][head_size], scaled.
static void load_queries(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *queries) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const int group = group_size(l->spec), size = b->spec->head_size;
    for (int i = 0; i < range->n_rows; i++) {
        const float *row = b->qkv + (size_t)(range->row + i) * (size_t)b->qkv_stride;
        const float scale = query_scale(b->spec, range->position + i);
        for (int head = kv_head * group; head < (kv_head + 1) * group; head++, queries += size) {
            position_head(b, l->spec, range->row + i, row + head * size, head, &l->query_norm, queries);
            for (int d = 0; d < size; d++) queries[d] *= scale;
        }
    }
}

// --- half floats -----------------------------------------------------------------------------------------------------

struct kv_head_pass { // the rows of a range at one kv head
    const struct backend *b;
    const struct cpu_layer *layer;
    const struct row_range *range;
    int kv_head, group, n_queries, stride; // group × rows; floats from one output to the next
    float *queries, *outputs, *scores;
    struct softmax *states;
};

static void multiply_values(const struct kv_head_pass *h, const uint16_t *value, struct slots slots, int row,
                            int n_rows) {
    if (slots.first >= slots.end) return;
    const int n = slots.end - slots.first, from = row * h->group;
    for (int d = 0; d < h->stride; d += 32)
        h->b->kernels->half_product(value + (size_t)slots.first * h->stride + d, h->stride, n,
                                    h->scores + from * KV_PAGE_TOKENS + slots.first, KV_PAGE_TOKENS, n_rows * h->group,
                                    h->outputs + (size_t)from * h->stride + d, h->stride);
}

// outputs += weights × values, for every row in order of slots. The slots that all rows see are done for all together;
// each row may have a few of its own before them (a window's first) and after them (a page's last).
static void add_values(const struct kv_head_pass *h, const uint16_t *value, int index) {
    const struct layer_spec *l = h->layer->spec;
    const int position = h->range->position, n = h->range->n_rows;
    const struct slots all = {slots_seen(l, position + n - 1, index).first, slots_seen(l, position, index).end};
    const bool shared = all.first < all.end;
    for (int i = 0; i < n; i++) {
        const struct slots own = slots_seen(l, position + i, index);
        multiply_values(h, value, (struct slots){own.first, shared ? all.first : own.end}, i, 1);
    }
    if (!shared) return;
    multiply_values(h, value, all, 0, n);
    for (int i = 1; i < n; i++)
        multiply_values(h, value, (struct slots){all.end, slots_seen(l, position + i, index).end}, i, 1);
}

static void attend_page(const struct kv_head_pass *h, uint8_t *from, int index) {
    const struct cpu_kernels *k = h->b->kernels;
    const struct model_spec *s = h->b->spec;
    memset(h->scores, 0, (size_t)h->n_queries * KV_PAGE_TOKENS * sizeof *h->scores);
    k->half_product(keys(h->b, from, h->kv_head), KV_PAGE_TOKENS, s->head_size, h->queries, s->head_size, h->n_queries,
                    h->scores, KV_PAGE_TOKENS);
    if (s->attention_softcap != 0) k->softcap(h->scores, h->n_queries * KV_PAGE_TOKENS, s->attention_softcap);
    for (int j = 0; j < h->n_queries; j++) {
        const struct slots slots = slots_seen(h->layer->spec, h->range->position + j / h->group, index);
        if (slots.first >= slots.end) continue;
        const float correction = k->softmax_page(h->scores + j * KV_PAGE_TOKENS, slots.first, slots.end, &h->states[j]);
        if (correction != 1) k->scale(h->outputs + (size_t)j * h->stride, h->stride, correction);
    }
    add_values(h, values(h->b, h->layer->spec, from, h->kv_head), index);
}

// outputs [queries][padded head].
static void attend_half(const struct kv_head_pass *h, int layer) {
    const int position = h->range->position, first = first_key(h->layer->spec, position);
    memset(h->outputs, 0, (size_t)h->n_queries * (size_t)h->stride * sizeof *h->outputs);
    for (int i = 0; i < h->n_queries; i++) {
        const float *sinks = h->layer->sinks; // a sink is a key that was seen first and has no value
        h->states[i] =
            sinks ? (struct softmax){sinks[h->kv_head * h->group + i % h->group], 1} : (struct softmax){-INFINITY, 0};
    }
    for (int i = first / KV_PAGE_TOKENS; i <= position / KV_PAGE_TOKENS; i++)
        attend_page(h, page(h->b, layer, h->range->segment, i), i);
    for (int i = 0; i < h->n_queries; i++)
        h->b->kernels->scale(h->outputs + (size_t)i * h->stride, h->stride, 1 / h->states[i].sum);
}

// --- exact -----------------------------------------------------------------------------------------------------------

static double dot_double(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void attend_exact_query(const struct kv_head_pass *h, int layer, int index, double *totals) {
    const struct backend *b = h->b;
    const int size = b->spec->head_size, position = h->range->position + index / h->group;
    const float *sinks = h->layer->sinks, *query = h->queries + index * size;
    const double cap = b->spec->attention_softcap;
    double maximum = sinks ? sinks[h->kv_head * h->group + index % h->group] : -INFINITY, sum = sinks ? 1 : 0;
    memset(totals, 0, (size_t)size * sizeof *totals);
    for (int t = first_key(h->layer->spec, position); t <= position; t++) {
        uint8_t *from = page(b, layer, h->range->segment, t / KV_PAGE_TOKENS);
        const int slot = t % KV_PAGE_TOKENS;
        const float *key = (float *)keys(b, from, h->kv_head) + slot * size;
        const float *value = (float *)values(b, h->layer->spec, from, h->kv_head) + slot * size;
        const double dot = dot_double(query, key, size), score = cap != 0 ? cap * tanh(dot / cap) : dot;
        const double top = score > maximum ? score : maximum;
        const double correction = exp(maximum - top), weight = exp(score - top);
        for (int d = 0; d < size; d++) totals[d] = totals[d] * correction + weight * value[d];
        sum = sum * correction + weight;
        maximum = top;
    }
    for (int d = 0; d < size; d++) h->outputs[(size_t)index * h->stride + d] = (float)(totals[d] / sum);
}

// --- items of work ---------------------------------------------------------------------------------------------------

// Heads are items of their own where the results of one kv head are whole blocks of 32, to be quantised alone.
int attention_parts(const struct backend *b, int layer) {
    const struct layer_spec *l = b->layers[layer].spec;
    const bool whole = group_size(l) * b->spec->head_size % BLOCK_COLUMNS == 0;
    return whole || !b->layers[layer].inputs[INPUT_ATTENDED].blocks ? l->n_head_kv : 1;
}

static void attend_kv_head(const struct pass *p, int layer, const struct row_range *range, int kv_head,
                           const struct input *out, float *scratch) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const int group = group_size(b->layers[layer].spec), width = group * s->head_size, stride = padded_head(s);
    struct kv_head_pass h = {.b = b,
                             .layer = &b->layers[layer],
                             .range = range,
                             .kv_head = kv_head,
                             .group = group,
                             .n_queries = range->n_rows * group,
                             .stride = stride,
                             .queries = scratch};
    h.outputs = h.queries + b->range_queries * s->head_size;
    h.scores = h.outputs + (size_t)b->range_queries * stride;
    h.states = (struct softmax *)(h.scores + b->range_queries * KV_PAGE_TOKENS);
    double *totals = (double *)(((uintptr_t)h.scores + 7) & ~(uintptr_t)7);
    load_queries(p, layer, range, kv_head, h.queries);
    if (!b->exact) attend_half(&h, layer);
    else
        for (int i = 0; i < h.n_queries; i++) attend_exact_query(&h, layer, i, totals);
    for (int i = 0; i < h.n_queries; i++)
        memmove(h.outputs + (size_t)i * s->head_size, h.outputs + (size_t)i * stride,
                (size_t)s->head_size * sizeof(float));
    for (int i = 0; i < range->n_rows; i++)
        input_store(out, b->kernels, range->result + i, kv_head * width, width, h.outputs + (size_t)i * width);
}

void attention_attend(const struct pass *p, int layer, const struct row_range *range, int part, const struct input *out,
                      float *scratch) {
    const int n_head_kv = p->b->layers[layer].spec->n_head_kv;
    if (attention_parts(p->b, layer) == n_head_kv) {
        attend_kv_head(p, layer, range, part, out, scratch);
        return;
    }
    struct input plain = *out, quantised = *out;
    plain.blocks = NULL;
    quantised.values = NULL;
    for (int kv_head = 0; kv_head < n_head_kv; kv_head++) attend_kv_head(p, layer, range, kv_head, &plain, scratch);
    for (int i = 0; i < range->n_rows; i++)
        input_store(&quantised, p->b->kernels, range->result + i, 0, out->columns,
                    out->values + (size_t)(range->result + i) * (size_t)out->columns);
}
