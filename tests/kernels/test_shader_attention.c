// The Vulkan shaders for heads of queries, keys and values and for attention, against plain C.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kernels/shader_harness.h"

#ifdef CONFAB_VULKAN

#include "engine/backend.h"
#include "engine/base/panic.h"
#include "tests/kernels/harness.h"

// ---- pages of keys and values ----

enum { PAGE = KV_PAGE_TOKENS };
struct kv { // pages of a layer, as shaders/kv.glsl draws them
    int type, head_size, n_head_kv;
    uint8_t *pages;
};

static bool is_quantised(const struct kv *kv) { return kv->type >= KV_Q8_0; }
static int code_bytes(const struct kv *kv) { return kv->type == KV_Q4_0 ? 16 : 32; } // of a block and slot
static int block_bytes(const struct kv *kv) { return PAGE * (2 + code_bytes(kv)); }
static int side_bytes(const struct kv *kv) {
    return is_quantised(kv) ? groups(kv->head_size, 32) * block_bytes(kv) : 2 * PAGE * kv->head_size;
}

static uint8_t *side_of(const struct kv *kv, int page, int head, bool values) {
    return kv->pages + (2 * (page * kv->n_head_kv + head) + values) * side_bytes(kv);
}

// Where the 16-bit number of an element lies, or of its block's scale.
static uint8_t *half_of(const struct kv *kv, uint8_t *side, int slot, int d, bool values) {
    if (is_quantised(kv)) return side + d / 32 * block_bytes(kv) + 2 * slot;
    return side + 2 * (values ? slot * kv->head_size + d : d * PAGE + slot);
}

static double half_at(const uint8_t *at, int type) {
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return type == KV_BF16 ? bf16_to_f32(half) : f16_to_f32(half);
}

static double kv_value(const struct kv *kv, int page, int head, int slot, int d, bool values) {
    uint8_t *side = side_of(kv, page, head, values);
    const double half = half_at(half_of(kv, side, slot, d, values), kv->type);
    if (!is_quantised(kv)) return half;
    const int element = d % (kv->type == KV_Q4_0 ? 16 : 32);
    const uint8_t *codes = side + d / 32 * block_bytes(kv) + 2 * PAGE;
    const uint8_t code = codes[values ? slot * code_bytes(kv) + element : element * PAGE + slot];
    return half * (kv->type == KV_Q8_0 ? (int8_t)code : (d % 32 >= 16 ? code >> 4 : code & 15) - 8);
}

// Whose slot a byte of a side is.
static int slot_of(const struct kv *kv, int at, bool values) {
    if (!is_quantised(kv)) return values ? at / 2 / kv->head_size : at / 2 % PAGE;
    at %= block_bytes(kv);
    if (at < 2 * PAGE) return at / 2;
    return values ? (at - 2 * PAGE) / code_bytes(kv) : (at - 2 * PAGE) % PAGE;
}

enum { KV_PAGES = 9 };

// Their addresses.
static struct array page_list(const struct kv *kv, const struct array *stored, int n, const int *pages) {
    const struct array list = array_reserve((size_t)n, sizeof(VkDeviceAddress));
    for (int i = 0; i < n; i++)
        ((VkDeviceAddress *)list.host)[i] =
            stored->address + (VkDeviceAddress)(pages[i] * 2 * kv->n_head_kv * side_bytes(kv));
    return list;
}

static struct array random_kv(struct kv *kv) {
    const size_t n = (size_t)(KV_PAGES * 2 * kv->n_head_kv * side_bytes(kv));
    const struct array a = array_reserve(n, 1);
    kv->pages = a.host;
    for (size_t i = 0; i < n; i++) a.u8[i] = (uint8_t)(random_bits(&array_seed) >> 56);
    for (int i = 0; i < KV_PAGES * kv->n_head_kv * PAGE * kv->head_size * 2; i++) {
        const bool values = i % 2;
        const int d = i / 2 % kv->head_size, slot = i / 2 / kv->head_size % PAGE,
                  head = i / 2 / kv->head_size / PAGE % kv->n_head_kv,
                  page = i / 2 / kv->head_size / PAGE / kv->n_head_kv;
        const float value = random_value(&array_seed) * (is_quantised(kv) ? 0.02f : 1);
        uint16_t half = f16_from_f32(value);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (kv->type == KV_BF16) half = (uint16_t)(bits >> 16);
        memcpy(half_of(kv, side_of(kv, page, head, values), slot, d, values), &half, sizeof half);
    }
    return a;
}

// ---- heads ----

struct row_info { // as in shaders/common.glsl
    int32_t position, first_page;
    float query_scale;
};

struct heads_case {
    int size, kv_type, n_rot, rope, norm, query_norm, key_norm;
};

enum { N_HEAD = 4, N_HEAD_KV = 2, ALL_HEADS = N_HEAD + 2 * N_HEAD_KV, HEAD_ROWS = 3, MOST_HEAD = 160 };

// A head of a row as it is to be stored, or as queries are to be.
static void prepare_head(const struct heads_case *c, int kind, const float *weight, const float *rotation, double *x) {
    const int own = kind == 2 ? 0 : kind ? c->key_norm : c->query_norm;
    if (own) {
        plain_norm(x, c->size, c->norm, 1e-3f);
        for (int d = 0; d < c->size; d++) x[d] *= weight[d];
    }
    for (int i = 0; i < c->n_rot / 2 && kind != 2; i++) {
        const int first = c->rope == ROPE_NORM ? 2 * i : i,
                  second = c->rope == ROPE_NORM ? 2 * i + 1 : i + c->n_rot / 2;
        const double a = x[first], b = x[second], cosine = rotation[2 * i], sine = rotation[2 * i + 1];
        x[first] = a * cosine - b * sine;
        x[second] = a * sine + b * cosine;
    }
}

// The most that storing element d of a head may change it by.
static double kv_error(int type, const double *x, int size, int d) {
    double most = 0;
    for (int i = d / 32 * 32; i < size && i < d / 32 * 32 + 32; i++) most = fmax(most, fabs(x[i]));
    // Half a step of the codes, and what the scale is rounded by; codes of 4 bits are rounded twice.
    const double steps[KV_TYPES] = {[KV_F16] = fabs(x[d]) / 2048,
                                    [KV_BF16] = fabs(x[d]) / 256,
                                    [KV_Q8_0] = most / 254 + most / 2048,
                                    [KV_Q4_0] = most / 15 + most / 254 + most / 2048};
    return steps[type] * 1.001 + 1e-5;
}

static void check_heads(const struct heads_case *c) {
    struct kv kv = {c->kv_type, c->size, N_HEAD_KV, NULL};
    array_begin(NULL);
    const int stride = ALL_HEADS * c->size;
    const struct array qkv = array_random((size_t)(HEAD_ROWS * stride)),
                       query_norm = array_random((size_t)(N_HEAD * c->size)),
                       key_norm = array_random((size_t)(N_HEAD_KV * c->size)),
                       rotation = array_random((size_t)(HEAD_ROWS * c->size)), stored = random_kv(&kv),
                       pages = page_list(&kv, &stored, 4, (const int[]){3, 1, 8, 0});
    const struct row_info rows[HEAD_ROWS] = {{5, 0, 0.5f}, {33, 1, 2}, {31, 3, 0.125f}};
    static const int page_of[HEAD_ROWS] = {3, 8, 0};                                   // of each row
    memset(qkv.f + 2 * stride + N_HEAD * c->size, 0, (size_t)c->size * sizeof *qkv.f); // a key of zeros
    const struct array infos = array_copy(rows, HEAD_ROWS, sizeof *rows);
    const struct {
        VkDeviceAddress qkv, query_norm, key_norm, rotation, rows, pages;
        int32_t qkv_stride, n_head, n_head_kv;
        float epsilon;
        int32_t layer;
    } push = {qkv.address,
              query_norm.address,
              key_norm.address,
              rotation.address,
              infos.address,
              pages.address,
              stride,
              N_HEAD,
              N_HEAD_KV,
              1e-3f,
              0};
    double *want = array_expect(&qkv), *x = xmalloc(qkv.n * sizeof *x);
    memcpy(x, want, qkv.n * sizeof *x);
    for (int r = 0; r < HEAD_ROWS; r++)
        for (int h = 0; h < ALL_HEADS; h++) {
            const int kind = h < N_HEAD ? 0 : h < N_HEAD + N_HEAD_KV ? 1 : 2, at = r * stride + h * c->size;
            const float *weights[] = {query_norm.f + (c->query_norm == HEAD_NORM_OWN ? h * c->size : 0),
                                      key_norm.f + (c->key_norm == HEAD_NORM_OWN ? (h - N_HEAD) * c->size : 0), NULL};
            prepare_head(c, kind, weights[kind], rotation.f + r * c->n_rot, x + at);
            for (int d = 0; d < c->size && !kind; d++) want[at + d] = x[at + d] * rows[r].query_scale;
        }
    uint8_t *before = xmalloc(stored.n);
    memcpy(before, stored.host, stored.n);
    DISPATCH("heads", push, ALL_HEADS, HEAD_ROWS, 1, (uint32_t)c->size, (uint32_t)c->kv_type, (uint32_t)c->n_rot,
             (uint32_t)c->rope, (uint32_t)c->norm, (uint32_t)c->query_norm, (uint32_t)c->key_norm);
    array_check("heads", &qkv, want, 1e-5);
    for (int r = 0; r < HEAD_ROWS; r++)
        for (int h = 0; h < 2 * N_HEAD_KV; h++)
            for (int d = 0; d < c->size; d++) {
                const double *head = x + r * stride + (N_HEAD + h) * c->size;
                const double got = kv_value(&kv, page_of[r], h % N_HEAD_KV, rows[r].position % PAGE, d, h >= N_HEAD_KV);
                if (!(fabs(got - head[d]) <= kv_error(c->kv_type, head, c->size, d)))
                    fail_msg("heads: KV type %d, row %d, head %d: %g at %d, expected %g", c->kv_type, r, h, got, d,
                             head[d]);
            }
    for (size_t i = 0; i < stored.n; i++) { // nothing of other tokens
        const int side = (int)i / side_bytes(&kv), page = side / 2 / N_HEAD_KV,
                  slot = slot_of(&kv, (int)i % side_bytes(&kv), side % 2);
        bool ours = false;
        for (int r = 0; r < HEAD_ROWS; r++) ours = ours || (page == page_of[r] && slot == rows[r].position % PAGE);
        if (!ours) assert_int_equal(stored.u8[i], before[i]);
    }
    free(before);
    free(x);
}

static void test_heads(void **state) {
    (void)state;
    static const struct heads_case cases[] = {
        {64, KV_F16, 64, ROPE_NORM, NORM_RMS, 0, 0},
        {40, KV_BF16, 16, ROPE_NEOX, NORM_LAYER, HEAD_NORM_SHARED, HEAD_NORM_OWN},
        {40, KV_Q8_0, 40, ROPE_NEOX, NORM_RMS, HEAD_NORM_OWN, HEAD_NORM_SHARED},
        {40, KV_Q4_0, 0, ROPE_NORM, NORM_RMS, 0, HEAD_NORM_SHARED},
        {160, KV_Q8_0, 160, ROPE_NORM, NORM_LAYER, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_heads(&cases[i]);
}

// ---- attention ----

struct attention_case {
    int size, kv_type, window;
    bool sinks;
    float softcap;
    int heads, rows, parts; // of a work group, and work groups that share keys
};

static void attend(const struct attention_case *c, const struct kv *kv, const int32_t *pages, int position, int kv_head,
                   const float *query, const float *sink, double *out) {
    const int first = c->window && position >= c->window ? position - c->window + 1 : 0;
    double total = c->sinks ? exp(*sink) : 0;
    for (int d = 0; d < c->size; d++) out[d] = 0;
    for (int key = first; key <= position; key++) {
        double score = 0;
        for (int d = 0; d < c->size; d++)
            score += query[d] * kv_value(kv, pages[key / PAGE], kv_head, key % PAGE, d, false);
        if (c->softcap != 0) score = c->softcap * tanh(score / c->softcap);
        total += exp(score);
        for (int d = 0; d < c->size; d++)
            out[d] += exp(score) * kv_value(kv, pages[key / PAGE], kv_head, key % PAGE, d, true);
    }
    for (int d = 0; d < c->size; d++) out[d] /= total;
}

// Rows 0, 1 and 3 are wanted: two of a long conversation and a short one.
static void check_attention(const struct attention_case *c) {
    enum { WANTED = 3, ALL = 4 };
    static const int wanted[WANTED] = {0, 1, 3};
    struct kv kv = {c->kv_type, c->size, N_HEAD_KV, NULL};
    array_begin(NULL);
    const int stride = ALL_HEADS * c->size, to_stride = groups(N_HEAD * c->size, 32) * 32 + 32;
    const bool quantizes = c->size % 32 == 0;
    static const int page_numbers[] = {3, 1, 8, 0, 5, 6, 2, 4};
    const struct row_info rows[ALL] = {{211, 0, 0}, {212, 0, 0}, {0, 0, 0}, {c->window ? 3 : 0, 7, 0}};
    const struct array qkv = array_random((size_t)(ALL * stride)), to = array_random((size_t)(WANTED * to_stride)),
                       sinks = array_random(N_HEAD), infos = array_copy(rows, ALL, sizeof *rows),
                       list = array_of_ints(WANTED, wanted), stored = random_kv(&kv),
                       pages = page_list(&kv, &stored, 8, page_numbers), codes = codes_for(&to),
                       parts = array_random((size_t)(WANTED * N_HEAD * c->parts * (c->size + 2)));
    const struct {
        VkDeviceAddress qkv, to, codes, sinks, rows, list, pages;
        int32_t qkv_stride, to_stride, n_head, n_head_kv, window;
        float softcap;
        VkDeviceAddress parts;
        int32_t n, layer, has_list;
    } push = {qkv.address, to.address, codes.address, sinks.address, infos.address, list.address, pages.address,
              stride,      to_stride,  N_HEAD,        N_HEAD_KV,     c->window,     c->softcap,   parts.address,
              WANTED,      0,          true};
    const struct {
        VkDeviceAddress parts, to, codes, sinks;
        int32_t to_stride, n_parts;
    } join = {parts.address, to.address, codes.address, sinks.address, to_stride, c->parts};
    double *want = array_expect(&to);
    for (int i = 0; i < WANTED; i++)
        for (int h = 0; h < N_HEAD; h++)
            attend(c, &kv, page_numbers + rows[wanted[i]].first_page, rows[wanted[i]].position,
                   h / (N_HEAD / N_HEAD_KV), qkv.f + wanted[i] * stride + h * c->size, sinks.f + h,
                   want + i * to_stride + h * c->size);
    DISPATCH("attention", push, N_HEAD / c->heads, groups(WANTED, c->rows), c->parts, (uint32_t)c->size,
             (uint32_t)c->kv_type, c->sinks, (uint32_t)c->heads, (uint32_t)c->rows, quantizes);
    if (c->parts > 1) DISPATCH("attention_join", join, N_HEAD, WANTED, 1, (uint32_t)c->size, c->sinks, quantizes);
    array_check("attention", &to, want, 2e-5);
    for (int i = 0; quantizes && i < WANTED * N_HEAD * c->size; i += 32) {
        const int at = i / (N_HEAD * c->size) * to_stride + i % (N_HEAD * c->size);
        codes_check_piece(codes_piece(&codes, to_stride, (size_t)at / 32), to.f + at);
    }
}

static void test_attention(void **state) {
    (void)state;
    static const struct attention_case cases[] = {
        {40, KV_F16, 0, false, 0, 1, 1, 1},   {40, KV_F16, 33, false, 2, 1, 1, 2},
        {64, KV_BF16, 1, true, 0, 2, 1, 1},   {64, KV_BF16, 150, true, 0.5f, 2, 1, 2},
        {40, KV_Q8_0, 0, true, 0, 2, 2, 1},   {40, KV_Q8_0, 100, true, 0, 2, 2, 2},
        {40, KV_Q4_0, 64, false, 0, 1, 4, 1}, {160, KV_Q4_0, 0, false, 0, 2, 2, 1},
        {64, KV_F16, 0, true, 0, 1, 1, 40}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_attention(&cases[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_heads, array_begin),
        cmocka_unit_test_setup(test_attention, array_begin),
    };
    return SHADER_TESTS_RUN(tests);
}

#else

int main(void) { return shader_tests_skip(); }

#endif
