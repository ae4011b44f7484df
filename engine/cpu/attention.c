// Attention over paged keys and values, page by page in order of position, with an online softmax.
//
// Keys and values of a page are half floats, one head after the other: keys transposed [head_size][32 tokens], so that
// the scores of 32 tokens are vectors; values [32 tokens][head_size padded to 32]. All query heads that share a kv
// head, of several rows, go through a page together. In exact mode both are f32 [32 tokens][head_size].
//
// A slot past a row's own position is never read for it: scores from `valid` on are replaced, and values are multiplied
// only up to there.
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu.h"

enum { RANGE_QUERIES = 16 }; // queries that go through a page together, if the heads of one row are not more

static int group_size(const struct model_spec *s) { return s->n_head / s->n_head_kv; }
static int padded_head(const struct model_spec *s) { return (s->head_size + 31) & ~31; }
static size_t key_elements(const struct model_spec *s) { return (size_t)s->head_size * KV_PAGE_TOKENS; }
static size_t value_elements(const struct model_spec *s, bool exact) {
    return (size_t)(exact ? s->head_size : padded_head(s)) * KV_PAGE_TOKENS;
}

size_t attention_page_bytes(const struct model_spec *s, bool exact) {
    size_t element = exact ? sizeof(float) : sizeof(uint16_t);
    return (key_elements(s) + value_elements(s, exact)) * element * (size_t)s->n_head_kv;
}

size_t attention_bytes(const struct backend *b, int position) {
    return b->page_bytes * (size_t)(position / KV_PAGE_TOKENS + 1);
}

int attention_range_rows(const struct model_spec *s) {
    int rows = RANGE_QUERIES / group_size(s);
    return rows < 1 ? 1 : rows > KV_PAGE_TOKENS ? KV_PAGE_TOKENS : rows;
}

static int max_queries(const struct model_spec *s) { return attention_range_rows(s) * group_size(s); }

size_t
attention_scratch(const struct model_spec *s) { // queries, scores, outputs (doubles in exact mode), states, a head
    return (size_t)max_queries(s) * (size_t)(s->head_size + KV_PAGE_TOKENS + padded_head(s) + 2) +
           4 * (size_t)padded_head(s) + 64;
}

static uint8_t *page(const struct backend *b, int layer, const struct batch_segment *s, int index) {
    return b->kv + ((size_t)layer * (size_t)b->n_pages + (size_t)s->pages[index]) * b->page_bytes;
}
static void *keys(const struct backend *b, uint8_t *page, int kv_head) {
    return page + key_elements(b->spec) * (size_t)kv_head * (b->exact ? sizeof(float) : sizeof(uint16_t));
}
static void *values(const struct backend *b, uint8_t *page, int kv_head) {
    size_t element = b->exact ? sizeof(float) : sizeof(uint16_t), heads = (size_t)b->spec->n_head_kv;
    return page + (key_elements(b->spec) * heads + value_elements(b->spec, b->exact) * (size_t)kv_head) * element;
}

// --- queries and keys ------------------------------------------------------------------------------------------------

static void rotate(const struct model_spec *s, const float *table, float *head) {
    const int half = s->n_rot / 2, step = s->rope == ROPE_NORM ? 2 : 1, apart = s->rope == ROPE_NORM ? 1 : half;
    for (int i = 0; i < half; i++) {
        float *first = head + i * step, *second = first + apart;
        float a = *first, b = *second, cosine = table[2 * i], sine = table[2 * i + 1];
        *first = a * cosine - b * sine;
        *second = a * sine + b * cosine;
    }
}

// A head of a row as attention uses it: normed if the model says so, and rotated.
static void position_head(const struct backend *b, int row, const float *head, const float *norm, float *out) {
    const struct model_spec *s = b->spec;
    if (norm) b->kernels->rms_norm(head, norm, out, s->head_size, s->norm_epsilon);
    else memcpy(out, head, (size_t)s->head_size * sizeof *out);
    rotate(s, b->rope + (size_t)row * (size_t)s->n_rot, out);
}

void attention_store(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *scratch) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    uint8_t *to = page(b, layer, range->segment, range->position / KV_PAGE_TOKENS);
    for (int i = 0; i < range->n_rows; i++) {
        const float *kv = b->qkv + (size_t)(range->row + i) * (size_t)qkv_size(s) + query_size(s);
        const float *value = kv + kv_size(s) + kv_head * s->head_size;
        const int slot = (range->position + i) % KV_PAGE_TOKENS;
        position_head(b, range->row + i, kv + kv_head * s->head_size, b->layers[layer].key_norm, scratch);
        if (b->exact) {
            size_t bytes = (size_t)s->head_size * sizeof(float);
            memcpy((float *)keys(b, to, kv_head) + slot * s->head_size, scratch, bytes);
            memcpy((float *)values(b, to, kv_head) + slot * s->head_size, value, bytes);
            continue;
        }
        uint16_t *half = (uint16_t *)(scratch + s->head_size), *transposed = keys(b, to, kv_head);
        b->kernels->to_half(scratch, half, s->head_size);
        for (int d = 0; d < s->head_size; d++) transposed[d * KV_PAGE_TOKENS + slot] = half[d];
        b->kernels->to_half(value, (uint16_t *)values(b, to, kv_head) + slot * padded_head(s), s->head_size);
    }
}

// The queries of a range's rows that use kv_head: [rows × group][head_size], scaled.
static void load_queries(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *queries) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const int group = group_size(s);
    for (int i = 0; i < range->n_rows; i++) {
        const float *row = b->qkv + (size_t)(range->row + i) * (size_t)qkv_size(s) + kv_head * group * s->head_size;
        for (int g = 0; g < group; g++, queries += s->head_size) {
            position_head(b, range->row + i, row + g * s->head_size, b->layers[layer].query_norm, queries);
            for (int d = 0; d < s->head_size; d++) queries[d] *= s->attention_scale;
        }
    }
}

// --- half floats -----------------------------------------------------------------------------------------------------

// outputs += weights × values. Rows of a range see one slot more each, so that all share the slots of the first row and
// in the last page each later row has a few of its own.
static void add_values(const struct backend *b, const uint16_t *value, int n_rows, int shared, bool last,
                       const float *weights, float *outputs) {
    const int group = group_size(b->spec), stride = padded_head(b->spec);
    for (int d = 0; d < stride; d += 32) {
        b->kernels->half_product(value + d, stride, shared, weights, KV_PAGE_TOKENS, n_rows * group, outputs + d,
                                 stride);
        for (int i = 1; last && i < n_rows; i++)
            b->kernels->half_product(value + d + shared * stride, stride, i,
                                     weights + i * group * KV_PAGE_TOKENS + shared, KV_PAGE_TOKENS, group,
                                     outputs + (size_t)i * group * stride + d, stride);
    }
}

// outputs [queries][padded head] for one kv head.
static void attend_half(const struct pass *p, int layer, const struct row_range *range, int kv_head, float *queries,
                        float *outputs, float *scores, struct softmax *states) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const int group = group_size(s), n_queries = range->n_rows * group, stride = padded_head(s);
    const int last = range->position / KV_PAGE_TOKENS;
    memset(outputs, 0, (size_t)n_queries * (size_t)stride * sizeof *outputs);
    for (int i = 0; i < n_queries; i++) states[i] = (struct softmax){-INFINITY, 0};
    for (int i = 0; i <= last; i++) {
        uint8_t *from = page(b, layer, range->segment, i);
        const int shared = i < last ? KV_PAGE_TOKENS : range->position % KV_PAGE_TOKENS + 1;
        memset(scores, 0, (size_t)n_queries * KV_PAGE_TOKENS * sizeof *scores);
        b->kernels->half_product(keys(b, from, kv_head), KV_PAGE_TOKENS, s->head_size, queries, s->head_size, n_queries,
                                 scores, KV_PAGE_TOKENS);
        for (int j = 0; j < n_queries; j++) {
            int valid = i < last ? KV_PAGE_TOKENS : shared + j / group;
            float correction = b->kernels->softmax_page(scores + j * KV_PAGE_TOKENS, valid, &states[j]);
            if (correction != 1) b->kernels->scale(outputs + (size_t)j * stride, stride, correction);
        }
        add_values(b, values(b, from, kv_head), range->n_rows, shared, i == last, scores, outputs);
    }
    for (int i = 0; i < n_queries; i++) b->kernels->scale(outputs + (size_t)i * stride, stride, 1 / states[i].sum);
}

// --- exact -----------------------------------------------------------------------------------------------------------

static double dot_double(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void attend_exact_query(const struct pass *p, int layer, const struct row_range *range, int position,
                               int kv_head, const float *query, float *output, double *totals) {
    const struct backend *b = p->b;
    const int size = b->spec->head_size;
    double maximum = -INFINITY, sum = 0;
    memset(totals, 0, (size_t)size * sizeof *totals);
    for (int t = 0; t <= position; t++) {
        uint8_t *from = page(b, layer, range->segment, t / KV_PAGE_TOKENS);
        const float *key = (float *)keys(b, from, kv_head) + t % KV_PAGE_TOKENS * size;
        const float *value = (float *)values(b, from, kv_head) + t % KV_PAGE_TOKENS * size;
        double score = dot_double(query, key, size), top = score > maximum ? score : maximum;
        double correction = exp(maximum - top), weight = exp(score - top);
        for (int d = 0; d < size; d++) totals[d] = totals[d] * correction + weight * value[d];
        sum = sum * correction + weight;
        maximum = top;
    }
    for (int d = 0; d < size; d++) output[d] = (float)(totals[d] / sum);
}

// --- items of work ---------------------------------------------------------------------------------------------------

// Heads are items of their own where the results of one kv head are whole blocks of 32, to be quantised alone.
int attention_parts(const struct backend *b) {
    bool whole = !b->attention_out.wants_blocks || group_size(b->spec) * b->spec->head_size % BLOCK_COLUMNS == 0;
    return whole ? b->spec->n_head_kv : 1;
}

static void attend_kv_head(const struct pass *p, int layer, const struct row_range *range, int kv_head,
                           const struct input *out, float *scratch) {
    const struct model_spec *s = p->b->spec;
    const int group = group_size(s), n_queries = range->n_rows * group, stride = padded_head(s);
    float *queries = scratch, *outputs = queries + max_queries(s) * s->head_size;
    float *scores = outputs + (size_t)max_queries(s) * stride;
    double *totals = (double *)(((uintptr_t)scores + 7) & ~(uintptr_t)7);
    struct softmax *states = (struct softmax *)(scores + max_queries(s) * KV_PAGE_TOKENS);
    load_queries(p, layer, range, kv_head, queries);
    if (!p->b->exact) attend_half(p, layer, range, kv_head, queries, outputs, scores, states);
    else
        for (int i = 0; i < n_queries; i++)
            attend_exact_query(p, layer, range, range->position + i / group, kv_head, queries + i * s->head_size,
                               outputs + (size_t)i * stride, totals);
    for (int i = 0; i < n_queries; i++)
        memmove(outputs + (size_t)i * s->head_size, outputs + (size_t)i * stride, (size_t)s->head_size * sizeof(float));
    for (int i = 0; i < range->n_rows; i++)
        input_store(out, p->b->kernels, range->result + i, kv_head * group * s->head_size, group * s->head_size,
                    outputs + (size_t)i * group * s->head_size);
}

void attention_attend(const struct pass *p, int layer, const struct row_range *range, int part, const struct input *out,
                      float *scratch) {
    if (attention_parts(p->b) > 1 || p->b->spec->n_head_kv == 1) {
        attend_kv_head(p, layer, range, part, out, scratch);
        return;
    }
    struct input plain = *out, quantised = *out;
    plain.blocks = NULL;
    quantised.values = NULL;
    for (int kv_head = 0; kv_head < p->b->spec->n_head_kv; kv_head++)
        attend_kv_head(p, layer, range, kv_head, &plain, scratch);
    for (int i = 0; i < range->n_rows; i++)
        input_store(&quantised, p->b->kernels, range->result + i, 0, out->columns,
                    out->values + (size_t)(range->result + i) * (size_t)out->columns);
}
