// Every shader by itself against plain C, on the first Vulkan device there is and with all sizes of subgroups that it
// has. Skipped without a device.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef CONFAB_VULKAN

static void test_nothing(void **state) {
    (void)state;
    print_message("built without Vulkan: skipped\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

#include "engine/backend.h"
#include "engine/base/panic.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/cooperative.h"
#include "engine/vulkan/shaders.h"
#include "tests/kernels/harness.h"

// ---- memory that the host and the device see ----

enum { MEMORY_BYTES = 16 << 20 };
static struct vulkan_context context;
static struct vulkan_buffer memory;
static size_t used;
static uint64_t seed;

struct array {
    union {
        void *host;
        float *f;
        int32_t *i;
        uint8_t *u8;
    };
    VkDeviceAddress address;
    size_t n; // of what it was made for
};

static int begin(void **state) {
    (void)state;
    used = 0;
    seed = 11;
    return 0;
}

static struct array reserve(size_t n, size_t size) {
    const struct array a = {{(char *)memory.mapped + used}, memory.address + used, n};
    used += (n * size + 255) / 256 * 256;
    if (used > MEMORY_BYTES) panic("the tests' memory is too small");
    return a;
}

static struct array copy_of(const void *data, size_t n, size_t size) {
    const struct array a = reserve(n, size);
    memcpy(a.host, data, n * size);
    return a;
}

static struct array random_floats(size_t n) {
    const struct array a = reserve(n, sizeof(float));
    for (size_t i = 0; i < n; i++) a.f[i] = random_value(&seed);
    return a;
}

// Rows of activations: [n, stride], zero behind the columns.
static struct array random_rows(int n, int columns, int stride) {
    const struct array a = random_floats((size_t)(n * stride));
    for (int i = 0; i < n * stride; i++)
        if (i % stride >= columns) a.f[i] = 0;
    return a;
}

// A list of row numbers.
static struct array ints(int n, const int32_t *values) { return copy_of(values, (size_t)n, sizeof *values); }

// What an array is to hold afterwards: first, what it holds. The caller frees.
static double *expect(const struct array *a) {
    double *want = xmalloc(a->n * sizeof *want);
    for (size_t i = 0; i < a->n; i++) want[i] = a->f[i];
    return want;
}

// All of it, also what nobody was to write. Devices may take denormals for zero. Frees `want`.
static void check(const char *what, const struct array *got, double *want, double tolerance) {
    for (size_t i = 0; i < got->n; i++)
        if (!(fabs(got->f[i] - want[i]) <= FLT_MIN + tolerance * (1 + fabs(want[i]))))
            fail_msg("%s: %g at %zu, expected %g", what, got->f[i], i, want[i]);
    free(want);
}

static void dispatch(const char *shader, const uint32_t *constants, int n_constants, const void *push, size_t size,
                     int x, int y, int z) {
    struct status st = {0};
    const VkPipeline pipeline = vulkan_pipeline(context.device, shader, constants, n_constants, &st);
    if (!pipeline || !vulkan_begin(&context, &context.once, &st)) fail_msg("%s", st.text);
    vulkan_dispatch(&context, pipeline, push, size, (uint32_t)x, (uint32_t)y, (uint32_t)z);
    if (!vulkan_run_once(&context, &st)) fail_msg("%s", st.text);
}
#define DISPATCH(shader, push, x, y, z, ...)                                                                           \
    dispatch(shader, (const uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), &(push),     \
             sizeof(push), x, y, z)

static int groups(int n, int each) { return (n + each - 1) / each; }

// ---- quantised activations ----

// Rows of activations quantised, as shaders/codes.glsl has them.
struct piece {
    const int8_t *code[2]; // halves
    const float *sum, *scale;
};

// Piece i of rows of so many activations.
static struct piece piece_of(const struct array *codes, int stride, size_t i) {
    const size_t pieces = (size_t)stride / 32, k = i % pieces;
    const uint8_t *row = codes->u8 + i / pieces * pieces * 48;
    return (struct piece){{(const int8_t *)row + 16 * k, (const int8_t *)row + 16 * (pieces + k)},
                          (const float *)(row + 32 * pieces + 8 * k),
                          (const float *)(row + 40 * pieces + 4 * k)};
}

static struct array codes_for(const struct array *x) { return random_floats(x->n / 32 * 48 / sizeof(float)); }

static struct array quantized(const struct array *from, int stride) {
    const int n = (int)from->n;
    const struct array codes = codes_for(from);
    const struct {
        VkDeviceAddress from, to;
        int32_t n, stride;
    } push = {from->address, codes.address, n / 4, stride / 4};
    DISPATCH("quantize", push, groups(push.n, 256), 1, 1, 0);
    return codes;
}

static void check_piece(struct piece got, const float *x) {
    float top = 0, sum[2] = {0};
    for (int k = 0; k < 32; k++) top = fabsf(x[k]) > top ? fabsf(x[k]) : top;
    if (!(fabsf(*got.scale - top / 127) <= 1e-6f * top)) fail_msg("scale %g of at most %g", *got.scale, top);
    for (int k = 0; k < 32; k++) {
        const int code = got.code[k / 16][k % 16];
        if (!(fabsf((float)code * *got.scale - x[k]) <= 0.501f * *got.scale))
            fail_msg("%g becomes %d × %g", x[k], code, *got.scale);
        sum[k / 16] += (float)code;
    }
    for (int i = 0; i < 2; i++)
        if (!(fabsf(got.sum[i] - sum[i] * *got.scale) <= 1e-5f * top))
            fail_msg("sum %g, not %g", got.sum[i], sum[i] * *got.scale);
}

static void check_pieces(const struct array *codes, const struct array *x, int stride) {
    for (size_t i = 0; i < x->n / 32; i++) check_piece(piece_of(codes, stride, i), x->f + 32 * i);
}

// What the codes stand for, into `to`.
static void stand_for(const struct array *codes, const struct array *to, int stride) {
    for (size_t i = 0; i < to->n; i++) {
        const struct piece p = piece_of(codes, stride, i / 32);
        to->f[i] = (float)p.code[i / 16 % 2][i % 16] * *p.scale;
    }
}

static void test_quantize(void **state) {
    (void)state;
    enum { ROWS = 2, PIECES = 35, STRIDE = 32 * PIECES };
    begin(NULL);
    const struct array from = random_floats(ROWS * STRIDE);
    for (int i = 0; i < 32; i++) from.f[i] = 0, from.f[32 + i] *= 1e-30f, from.f[64 + i] *= 1e30f;
    from.f[96] = INFINITY, from.f[128 + 31] = NAN;
    const struct array codes = quantized(&from, STRIDE);
    for (size_t i = 0; i < ROWS * PIECES; i++) {
        const struct piece p = piece_of(&codes, STRIDE, i);
        if (i == 3 || i == 4) assert_true(isnan(*p.scale) && isnan(p.sum[0]) && isnan(p.sum[1]));
        else check_piece(p, from.f + 32 * i);
    }
}

// ---- norms ----

enum { NORM_NONE = NORM_LAYER + 1 };

// x [n] normed by the mean of itself or of its squares.
static void norm(double *x, int n, int kind, double epsilon) {
    double mean = 0, squares = 0;
    for (int i = 0; i < n && kind == NORM_LAYER; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n && kind != NORM_NONE; i++) x[i] = (x[i] - mean) / sqrt(squares + epsilon);
}

static void test_norm(void **state) {
    (void)state;
    enum { STRIDE = 1088, ROWS = 3, SOURCES = 5 };
    static const struct {
        int kind, biased, adds, quantizes;
    } cases[] = {
        {NORM_RMS, 0, 0, 1}, {NORM_RMS, 0, 1, 0}, {NORM_LAYER, 1, 0, 1}, {NORM_LAYER, 0, 1, 0}, {NORM_NONE, 0, 0, 0}};
    static const int sizes[] = {1, 32, 77, 300, 1025};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const int n = sizes[k];
            begin(NULL);
            const struct array from = random_floats(SOURCES * STRIDE), to = random_floats(ROWS * STRIDE),
                               weight = random_floats(STRIDE), bias = random_floats(STRIDE), codes = codes_for(&to),
                               rows = ints(ROWS, (const int32_t[]){4, 0, 2});
            const struct {
                VkDeviceAddress from, to, codes, weight, bias, rows;
                int32_t n, from_stride, to_stride, has_list;
                float epsilon, scale;
            } push = {from.address, to.address, codes.address, weight.address, bias.address, rows.address,
                      n,            STRIDE,     STRIDE,        true,           1e-3f,        0.5f};
            double *want = expect(&to), x[STRIDE];
            for (int r = 0; r < ROWS; r++) {
                for (int i = 0; i < n; i++) x[i] = from.f[rows.i[r] * STRIDE + i];
                norm(x, n, cases[c].kind, push.epsilon);
                for (int i = 0; i < n; i++) {
                    if (cases[c].kind != NORM_NONE) x[i] *= weight.f[i];
                    if (cases[c].biased) x[i] += bias.f[i];
                    want[r * STRIDE + i] = cases[c].adds ? want[r * STRIDE + i] + 0.5 * x[i] : x[i];
                }
            }
            DISPATCH("norm", push, ROWS, 1, 1, (uint32_t)cases[c].kind, (uint32_t)cases[c].biased,
                     (uint32_t)cases[c].adds, (uint32_t)cases[c].quantizes, (uint32_t)groups(groups(n, 32) * 8, 256));
            check("norm", &to, want, 1e-5);
            for (int i = 0; cases[c].quantizes && i < ROWS * STRIDE; i += 32) {
                for (int at = i; at < i + 32; at++)
                    if (at % STRIDE >= n) to.f[at] = 0;
                if (i % STRIDE < n) check_piece(piece_of(&codes, STRIDE, (size_t)i / 32), to.f + i);
            }
        }
}

// ---- activations ----

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double activation(int kind, bool gated, double g, double u) {
    if (!gated) g = u, u = 1;
    switch (kind) {
    case ACTIVATION_SILU: return g * sigmoid(g) * u;
    case ACTIVATION_GELU: return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))) * u;
    default: return fmin(g, 7) * sigmoid(1.702 * fmin(g, 7)) * (fmax(-7, fmin(u, 7)) + 1);
    }
}

static void test_activate(void **state) {
    (void)state;
    enum { N = 70, STRIDE = 96, ROWS = 2 };
    static const struct {
        int kind, gated;
    } cases[] = {{ACTIVATION_SILU, 1},
                 {ACTIVATION_SILU, 0},
                 {ACTIVATION_GELU, 1},
                 {ACTIVATION_GELU, 0},
                 {ACTIVATION_SILU_CLAMPED, 1}};
    static const float large[] = {0, -0.f, 8, -8, 30, -30, 100, -100};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        begin(NULL);
        const struct array gate = random_rows(ROWS, N, STRIDE), up = random_rows(ROWS, N, STRIDE);
        for (int i = 0; i < 8; i++) gate.f[i] = large[i], up.f[STRIDE + i] = up.f[i + 4] = large[i];
        const struct array codes = codes_for(&gate);
        const struct {
            VkDeviceAddress gate, up, to, codes;
            int32_t n, stride;
        } push = {gate.address, up.address, gate.address, codes.address, ROWS * STRIDE / 4, STRIDE / 4};
        double *want = expect(&gate);
        for (int i = 0; i < ROWS * STRIDE; i++) want[i] = activation(cases[c].kind, cases[c].gated, gate.f[i], up.f[i]);
        DISPATCH("activate", push, groups(push.n, 256), 1, 1, (uint32_t)cases[c].kind, (uint32_t)cases[c].gated);
        check("activate", &gate, want, 1e-5);
        check_pieces(&codes, &gate, STRIDE);
    }
}

// ---- experts ----

// Of equal ranks the first.
static int best_of(const double *ranks, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (ranks[i] > ranks[best]) best = i;
    return best;
}

static void softmax(double *x, int n) {
    double sum = 0;
    const double most = x[best_of(x, n)];
    for (int i = 0; i < n; i++) sum += x[i] = exp(x[i] - most);
    for (int i = 0; i < n; i++) x[i] /= sum;
}

static void test_choose(void **state) {
    (void)state;
    enum { ROWS = 4, MOST = 160 };
    static const struct {
        int count, used, gating, normalises, biased;
    } cases[] = {{8, 2, EXPERT_GATING_SOFTMAX, 0, 0},
                 {4, 4, EXPERT_GATING_SOFTMAX, 1, 1},
                 {70, 6, EXPERT_GATING_SIGMOID, 1, 1},
                 {130, 8, EXPERT_GATING_SOFTMAX_CHOSEN, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int count = cases[c].count, n_used = cases[c].used;
        begin(NULL);
        const struct array logits = random_floats(ROWS * MOST), bias = random_floats(MOST),
                           choices = reserve((size_t)(ROWS * n_used), 2 * sizeof(int32_t));
        for (int i = 0; i < ROWS * MOST; i++) logits.f[i] *= 4;
        for (int i = 0; i < count; i++) logits.f[MOST + i] = 0.25f; // all equal
        logits.f[3 * MOST + 1] = NAN;                               // the last row
        const struct {
            VkDeviceAddress logits, bias, choices;
            int32_t stride;
            float scale;
        } push = {logits.address, bias.address, choices.address, MOST, 1.5f};
        DISPATCH("choose", push, ROWS, 1, 1, (uint32_t)count, (uint32_t)n_used, (uint32_t)cases[c].gating,
                 (uint32_t)cases[c].normalises, (uint32_t)cases[c].biased);
        for (int r = 0; r < ROWS; r++) {
            const int32_t *row = choices.i + 2 * r * n_used;
            double scores[MOST], ranks[MOST], weights[MOST], sum = 0;
            for (int i = 0; i < count; i++) scores[i] = logits.f[r * MOST + i];
            if (cases[c].gating == EXPERT_GATING_SOFTMAX) softmax(scores, count);
            for (int i = 0; i < count; i++) {
                if (cases[c].gating == EXPERT_GATING_SIGMOID) scores[i] = sigmoid(scores[i]);
                ranks[i] = scores[i] + (cases[c].biased ? bias.f[i] : 0);
            }
            for (int k = 0; k < n_used && r < ROWS - 1; k++) {
                const int best = best_of(ranks, count);
                assert_int_equal(row[2 * k], best);
                weights[k] = scores[best];
                ranks[best] = -INFINITY;
            }
            if (cases[c].gating == EXPERT_GATING_SOFTMAX_CHOSEN) softmax(weights, n_used);
            for (int k = 0; k < n_used; k++) sum += weights[k];
            for (int k = 0; k < n_used; k++) {
                float got;
                memcpy(&got, row + 2 * k + 1, sizeof got);
                const double want = weights[k] / (cases[c].normalises ? sum : 1) * 1.5;
                if (r == ROWS - 1) assert_true(isnan(got) && row[2 * k] >= 0 && row[2 * k] < count);
                else if (!(fabs(got - want) <= 1e-5)) fail_msg("choose: %g, expected %g", got, want);
            }
        }
    }
}

// [n] pairs of an expert and the bits of a weight.
static struct array random_choices(int n, int count) {
    const struct array choices = reserve((size_t)n, 2 * sizeof(int32_t));
    for (int i = 0; i < n; i++) {
        const float weight = random_value(&seed);
        choices.i[2 * i] = (int32_t)(random_bits(&seed) % (uint64_t)count);
        memcpy(choices.i + 2 * i + 1, &weight, sizeof weight);
    }
    return choices;
}

static void test_experts_add(void **state) {
    (void)state;
    enum { N = 70, STRIDE = 96, ROWS = 3, LOGITS_STRIDE = 2 };
    static const struct { int n_used, shared, weighed, adds; } cases[] = {{2, 0, 0, 1}, {3, 1, 0, 0}, {1, 1, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int n_used = cases[c].n_used;
        begin(NULL);
        const struct array results = random_floats((size_t)(ROWS * n_used * STRIDE)), to = random_floats(ROWS * STRIDE),
                           shared = random_floats(ROWS * STRIDE), logits = random_floats(ROWS * LOGITS_STRIDE),
                           choices = random_choices(ROWS * n_used, 8);
        const struct {
            VkDeviceAddress results, choices, shared_results, shared_logits, to;
            int32_t n, stride, logits_stride;
            float scale;
        } push = {results.address, choices.address, shared.address,
                  logits.address,  to.address,      N,
                  STRIDE,          LOGITS_STRIDE,   0.5f};
        double *want = expect(&to);
        for (int i = 0; i < ROWS * STRIDE; i++) {
            const int row = i / STRIDE, k = i % STRIDE;
            double sum = cases[c].shared ? shared.f[i] : 0;
            if (cases[c].weighed) sum *= sigmoid(logits.f[row * LOGITS_STRIDE]);
            for (int e = row * n_used; e < (row + 1) * n_used; e++)
                sum += (double)results.f[e * STRIDE + k] * choices.f[2 * e + 1];
            if (k < N) want[i] = cases[c].adds ? want[i] + 0.5 * sum : sum;
        }
        DISPATCH("experts_add", push, groups(N, 64), ROWS, 1, (uint32_t)n_used, (uint32_t)cases[c].shared,
                 (uint32_t)cases[c].weighed, (uint32_t)cases[c].adds);
        check("experts_add", &to, want, 1e-5);
    }
}

// ---- matrices ----

static const char *shader_of(const char *name, int format) {
    static char text[32];
    snprintf(text, sizeof text, "%s_%s", name, block_formats[format].name);
    return text;
}

struct weights {
    const struct block_format *format;
    int rows, columns;
    struct array blocks, grids;
    float *values; // [rows, columns]
};

static struct weights random_weights(int format, int rows, int columns) {
    struct trial t = trial_open((enum block_id)format, rows, columns, 1, ++seed);
    struct weights w = {.format = t.format, .rows = rows, .columns = columns};
    reserve(1, 1); // MXFP4 reads a little before and behind its blocks
    w.blocks = copy_of(t.weight.data, (size_t)rows, t.weight.row_bytes);
    reserve(1, 1);
    w.grids = copy_of(block_grids(), 1, sizeof *block_grids());
    w.values = xmalloc((size_t)rows * (size_t)columns * sizeof *w.values);
    for (int r = 0; r < rows; r++)
        t.format->decode((const uint8_t *)t.weight.data + (size_t)r * t.weight.row_bytes, w.values + r * columns,
                         (size_t)columns);
    trial_close(&t);
    return w;
}

// The values of the embedding are those of the decoder, bit for bit but for denormals.
static void check_embed(int format, int columns) {
    enum { ROWS = 4, TOKENS = 5 };
    const int stride = groups(columns, 32) * 32;
    begin(NULL);
    struct weights w = random_weights(format, TOKENS, columns);
    const struct array tokens = ints(ROWS, (const int32_t[]){4, -1, 0, 3}),
                       inputs = random_floats((size_t)(ROWS * stride)), to = random_floats((size_t)(ROWS * stride));
    const struct {
        VkDeviceAddress matrix, grids, tokens, inputs, to;
        int32_t columns, stride;
        float scale;
    } push = {w.blocks.address, w.grids.address, tokens.address, inputs.address, to.address, columns, stride, 0.5f};
    double *want = expect(&to);
    for (int i = 0; i < ROWS * stride; i++) {
        const int token = tokens.i[i / stride], k = i % stride;
        if (k < columns) want[i] = token < 0 ? inputs.f[i] : 0.5f * w.values[token * columns + k];
    }
    DISPATCH(shader_of("embed", format), push, groups(groups(columns, 32), 64), ROWS, 1, 0);
    check(shader_of("embed", format), &to, want, 0);
    free(w.values);
}

static void test_embed(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        const int block = (int)block_formats[format].elements;
        if (block == 1) check_embed(format, 77), check_embed(format, 64);
        else check_embed(format, 3 * block);
    }
}

enum { N_EXPERTS = 5, USED = 2, TILE_ROWS = 64, MOST_TILES = 64 };
struct matmul {
    int format, rows, columns, n; // rows of the result
    int at_once;                  // rows of the batch in a work group
    bool tiled;                   // matmul, not matvec
    bool experts;                 // USED rows of the result for each of the input
    bool biased, adds;
    float scale, softcap;
};

struct matmul_push {
    VkDeviceAddress matrix, grids, from, from_codes, to, bias, choices, order, tiles;
    int32_t rows, columns, n, from_stride, to_stride, from_share;
    float scale, softcap;
    uint32_t biased, adds;
};

// The result in double, and how far from it floats may be.
static void expect_matmul(const struct matmul *m, const struct weights *w, const struct matmul_push *push,
                          const float *from, const float *bias, const int32_t *choices, double *want, double *allowed) {
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->rows; r++) {
            const int row = (m->experts ? choices[2 * i] * m->rows : 0) + r, at = i * push->to_stride + r;
            double sum = m->biased ? bias[row] : 0, magnitude = fabs(sum);
            for (int k = 0; k < m->columns; k++) {
                const double part =
                    (double)w->values[row * m->columns + k] * from[i / push->from_share * push->from_stride + k];
                sum += part;
                magnitude += fabs(part);
            }
            sum *= m->scale;
            if (m->softcap != 0) sum = m->softcap * tanh(sum / m->softcap);
            allowed[at] = 2e-6 * (magnitude * m->scale + fabs(want[at]));
            want[at] = m->adds ? want[at] + sum : sum;
        }
}

static void group(const struct array *choices, const struct array *order, const struct array *tiles, int n, int count,
                  int tile) {
    const struct {
        VkDeviceAddress choices, order, tiles;
        int32_t n, n_tiles;
    } push = {choices->address, order->address, tiles->address, n, (int32_t)tiles->n};
    DISPATCH("group", push, 1, 1, 1, (uint32_t)count, (uint32_t)tile);
}

static void run_matmul(const struct matmul *m, const char *shader, const struct matmul_push *push) {
    enum { ROWS = 2 };
    const int across = groups(m->n, m->at_once);
    if (m->tiled)
        DISPATCH(shader, *push, m->experts ? MOST_TILES : across, groups(m->rows, TILE_ROWS), 1,
                 (uint32_t)m->at_once / 8, m->experts);
    else DISPATCH(shader, *push, across, groups(m->rows, 2 * ROWS), 2, (uint32_t)m->at_once, m->experts);
}

static void check_matmul(const struct matmul *m) {
    const char *shader = shader_of(m->tiled ? "matmul" : "matvec", m->format);
    const int share = m->experts ? USED : 1, experts = m->experts ? N_EXPERTS : 1;
    begin(NULL);
    const int stride = groups(m->columns, 32) * 32, to_stride = m->rows + 3;
    struct weights w = random_weights(m->format, experts * m->rows, m->columns);
    const struct array from = random_rows(groups(m->n, share), m->columns, stride),
                       to = random_floats((size_t)(m->n * to_stride)),
                       bias = random_floats((size_t)(experts * m->rows)), choices = random_choices(m->n, experts),
                       order = reserve((size_t)m->n, sizeof(int32_t)), tiles = reserve(MOST_TILES, 3 * sizeof(int32_t));
    const struct array codes = quantized(&from, stride);
    if (block_formats[m->format].elements > 1) stand_for(&codes, &from, stride);
    const struct matmul_push push = {w.blocks.address, w.grids.address, from.address,    codes.address,
                                     to.address,       bias.address,    choices.address, order.address,
                                     tiles.address,    m->rows,         m->columns,      m->n,
                                     stride,           to_stride,       share,           m->scale,
                                     m->softcap,       m->biased,       m->adds};
    double *want = expect(&to), *allowed = xcalloc(to.n, sizeof *allowed);
    expect_matmul(m, &w, &push, from.f, bias.f, choices.i, want, allowed);
    if (m->tiled && m->experts) group(&choices, &order, &tiles, m->n, experts, m->at_once);
    run_matmul(m, shader, &push);
    for (size_t i = 0; i < to.n; i++)
        if (!(fabs(to.f[i] - want[i]) <= allowed[i]))
            fail_msg("%s: %d × %d for %d rows: %.9g at %zu, expected %.9g", shader, m->rows, m->columns, m->n, to.f[i],
                     i, want[i]);
    free(want);
    free(allowed);
    free(w.values);
}

// A format of every kind: of floats, of one or two scales, with and without minimums, with tables. How each is unpacked
// is in test_embed.
static void check_formats(bool tiled, int at_once, int rows, int n) {
    static const int formats[] = {BLOCK_F32, BLOCK_F16, BLOCK_Q8_0, BLOCK_Q4_K, BLOCK_Q2_K, BLOCK_Q6_K, BLOCK_IQ3_S};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const int format = formats[i];
        const int block = (int)block_formats[format].elements, odd = block == 1 ? 77 : 3 * block;
        check_matmul(&(struct matmul){format, rows, odd, n, at_once, tiled, .scale = 1});
        check_matmul(&(struct matmul){format, 1, block == 1 ? 32 : block, 1, at_once, tiled, .scale = 1});
    }
}

static void check_epilogue(bool tiled, int at_once) {
    const struct matmul cases[] = {
        {BLOCK_Q8_0, 9, 96, 5, at_once, tiled, .biased = true, .scale = 0.5f},
        {BLOCK_Q8_0, 9, 96, 5, at_once, tiled, .adds = true, .scale = 2},
        {BLOCK_Q8_0, 9, 96, 5, at_once, tiled, .biased = true, .adds = true, .scale = 1, .softcap = 0.75f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_matmul(&cases[i]);
}

static void check_experts(bool tiled, int at_once, int rows, int n) {
    const int formats[] = {BLOCK_MXFP4, BLOCK_Q4_K};
    for (int i = 0; i < 2; i++) {
        const int columns = (int)block_formats[formats[i]].elements;
        check_matmul(&(struct matmul){formats[i], rows, columns, n, at_once, tiled, true, true, .scale = 1});
    }
}

static void test_matvec(void **state) {
    (void)state;
    check_formats(false, 4, 7, 6);
    check_epilogue(false, 4);
    check_experts(false, 1, 7, 6);
}

// Rows of the matrix with more pieces than a work group has threads.
static void test_matvec_long(void **state) {
    (void)state;
    check_matmul(&(struct matmul){BLOCK_Q8_0, 3, 73 * 32, 2, 4, .scale = 1});
    check_matmul(&(struct matmul){BLOCK_F32, 3, 2345, 1, 4, .scale = 1});
    check_matmul(&(struct matmul){BLOCK_F32, 3, 4352, 1, 4, .scale = 1});
}

static void test_matmul(void **state) {
    (void)state;
    check_formats(true, 32, 70, 37);
    check_epilogue(true, 32);
    check_experts(true, 16, 70, 90);
    check_matmul(&(struct matmul){BLOCK_F32, 130, 333, 70, 64, true, .scale = 1});
    check_matmul(&(struct matmul){BLOCK_F32, 130, 333, 64, 64, true, .scale = 1});
}

// ---- cooperative matrices ----

// Rows as halves, and what they are to be multiplied by.
struct halved {
    struct array rows, scales;
    int stride;
};

static struct halved halve(const struct array *from, int n, int columns, int stride) {
    const int to_stride = (int)cooperative_stride((uint32_t)columns);
    const struct halved h = {reserve((size_t)(n * to_stride), 2), reserve((size_t)n, sizeof(float)), to_stride};
    const struct {
        VkDeviceAddress from, to, scales;
        int32_t columns, from_stride, to_stride;
    } push = {from->address, h.rows.address, h.scales.address, columns, stride, to_stride};
    memset(h.rows.host, 0xff, h.rows.n * 2);
    DISPATCH("halve", push, n, 1, 1, 0);
    return h;
}

static double half_value(const struct halved *h, int row, int k) {
    return (double)f16_to_f32(((uint16_t *)h->rows.host)[row * h->stride + k]) * h->scales.f[row];
}

static void test_halve(void **state) {
    (void)state;
    static const float sizes[] = {1, 0, 1e-30f, 1e30f, 65536, 0x1p-149f, 0x1p127f};
    enum { ROWS = sizeof sizes / sizeof *sizes + 1, COLUMNS = 589, STRIDE = 640 };
    const struct array from = random_rows(ROWS, COLUMNS, STRIDE);
    for (int i = 0; i < ROWS * STRIDE; i++)
        if (i / STRIDE < ROWS - 1) from.f[i] *= sizes[i / STRIDE];
    from.f[(ROWS - 1) * STRIDE + 3] = INFINITY;
    from.f[(ROWS - 1) * STRIDE + 4] = NAN;
    const struct halved h = halve(&from, ROWS, COLUMNS, STRIDE);
    for (int r = 0; r < ROWS; r++) {
        double most = 0;
        for (int k = 0; k < COLUMNS; k++) most = fmax(most, fabs(from.f[r * STRIDE + k]));
        for (int k = 0; k < h.stride; k++) {
            const double want = k < COLUMNS ? from.f[r * STRIDE + k] : 0, got = half_value(&h, r, k);
            // One unit in the last place of a half, and what devices may take for 0.
            const double allowed = fabs(want) / 1024 + most * 0x1p-27 + 0x1p-125;
            if (isfinite(want) && isfinite(most) && !(fabs(got - want) <= allowed))
                fail_msg("halve: row %d: %g at %d, expected %g", r, got, k, want);
        }
    }
    assert_true(isinf(half_value(&h, ROWS - 1, 3)) && isnan(half_value(&h, ROWS - 1, 4)));
}

static struct array widened(const struct weights *w, int first, int rows) {
    const int stride = (int)cooperative_stride((uint32_t)w->columns);
    const struct array to = reserve((size_t)((rows + 1) * stride), 2); // a row more
    const struct {
        VkDeviceAddress matrix, grids, to;
        int32_t first, rows, columns, stride;
    } push = {w->blocks.address, w->grids.address, to.address, first, rows, w->columns, stride};
    memset(to.host, 0xff, to.n * 2);
    DISPATCH(shader_of("widen", (int)w->format->id), push, groups(rows * stride / 32, 256), 1, 1, 0);
    return to;
}

// The halves next to the decoder's values; nothing is written elsewhere.
static void check_widen(int format, int columns) {
    enum { ROWS = 5, FIRST = 2, WANTED = 2 };
    begin(NULL);
    struct weights w = random_weights(format, ROWS, columns);
    const struct array to = widened(&w, FIRST, WANTED);
    const uint16_t *halves = to.host;
    const int stride = (int)cooperative_stride((uint32_t)columns);
    for (int i = 0; i < WANTED * stride; i++) {
        const double got = f16_to_f32(halves[i]);
        const double want = i % stride < columns ? w.values[(FIRST + i / stride) * columns + i % stride] : 0;
        // One unit in the last place, and what devices may take for 0.
        if (!(fabs(got - want) <= fabs(want) / 1024 + 0x1p-14))
            fail_msg("widen_%s: %g at %d, expected %g", w.format->name, got, i, want);
    }
    for (int i = WANTED * stride; i < (WANTED + 1) * stride; i++) assert_int_equal(halves[i], 0xffff);
    free(w.values);
}

static void test_widen(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        if (!shader_find(shader_of("widen", format))) continue;
        const int block = (int)block_formats[format].elements;
        check_widen(format, block == 1 ? 77 : 3 * block);
    }
    if (shader_find("widen_F16")) check_widen(BLOCK_F16, 9 * 32), check_widen(BLOCK_Q8_0, 270 * 32);
}

struct cooperative_case {
    struct matmul m;
    struct cooperative_tile tile;
    int n_slices;  // of rows, or of experts
    uint32_t step; // 0: the usual
};

struct cooperative_push {
    VkDeviceAddress matrix, from, scales, to, bias, order, tiles;
    int32_t rows, n, from_stride, to_stride, from_share, expert, end_expert;
    float scale, softcap;
    uint32_t biased, adds;
};

static bool run_cooperative(const struct cooperative_case *c, const struct weights *w, struct cooperative_push push) {
    const struct matmul *m = &c->m;
    struct cooperative_constants constants = cooperative_constants(context.device, c->tile, m->experts);
    if (c->step) constants.step = c->step;
    if (cooperative_shared_bytes(&constants) > context.device->shared_bytes) return false;
    const int units = m->experts ? N_EXPERTS : m->rows, each = groups(units, c->n_slices),
              rows = m->experts ? m->rows : 1;
    const VkDeviceAddress to = push.to, bias = push.bias;
    for (int first = 0; first < units; first += each) {
        const int n = units - first < each ? units - first : each;
        const struct array halves = widened(w, first * rows, n * rows);
        push.matrix = halves.address;
        if (m->experts) push.expert = first, push.end_expert = first + n;
        else push.rows = n, push.to = to + 4 * (VkDeviceAddress)first, push.bias = bias + 4 * (VkDeviceAddress)first;
        dispatch("cooperative", (uint32_t *)&constants, sizeof constants / sizeof(uint32_t), &push, sizeof push,
                 m->experts ? MOST_TILES : groups(m->n, (int)constants.columns), groups(push.rows, (int)constants.rows),
                 1);
    }
    return true;
}

// As for the other matmuls, of inputs that are the device's halves. Weights are rounded to halves too, here as there
// but for how ties are; nothing else is: the sums are floats.
static void check_cooperative(const struct cooperative_case *c) {
    const struct matmul *m = &c->m;
    const int share = m->experts ? USED : 1, experts = m->experts ? N_EXPERTS : 1;
    begin(NULL);
    const int stride = groups(m->columns, 32) * 32, to_stride = m->rows + 3, inputs = groups(m->n, share);
    struct weights w = random_weights(m->format, experts * m->rows, m->columns);
    const struct array from = random_rows(inputs, m->columns, stride), to = random_floats((size_t)(m->n * to_stride)),
                       bias = random_floats((size_t)(experts * m->rows)), choices = random_choices(m->n, experts),
                       order = reserve((size_t)m->n, sizeof(int32_t)), tiles = reserve(MOST_TILES, 3 * sizeof(int32_t));
    for (int i = 0; i < inputs * stride; i++) from.f[i] *= i / stride % 3 ? 1e6f : 1e-6f;
    const struct halved h = halve(&from, inputs, m->columns, stride);
    for (int i = 0; i < inputs * stride; i++)
        from.f[i] = i % stride < m->columns ? (float)half_value(&h, i / stride, i % stride) : 0;
    const struct matmul_push layout = {.from_stride = stride, .to_stride = to_stride, .from_share = share};
    const struct cooperative_push push = {0,
                                          h.rows.address,
                                          h.scales.address,
                                          to.address,
                                          bias.address,
                                          order.address,
                                          tiles.address,
                                          m->rows,
                                          m->n,
                                          h.stride,
                                          to_stride,
                                          share,
                                          0,
                                          1,
                                          m->scale,
                                          m->softcap,
                                          m->biased,
                                          m->adds};
    double *want = expect(&to), *allowed = xcalloc(to.n, sizeof *allowed), error = 0, power = 0;
    expect_matmul(m, &w, &layout, from.f, bias.f, choices.i, want, allowed);
    const struct cooperative_constants chosen = cooperative_constants(context.device, c->tile, m->experts);
    if (m->experts) group(&choices, &order, &tiles, m->n, experts, (int)chosen.columns);
    const bool ran = run_cooperative(c, &w, push); // or has no room
    for (size_t i = 0; i < to.n && ran; i++) {
        const double difference = to.f[i] - want[i];
        // Each weight is off by a unit in a half's last place at most.
        if (!(fabs(difference) <= 600 * allowed[i]))
            fail_msg("%s, tiles of %u × %u: %d × %d for %d rows: %.9g at %zu, expected %.9g", w.format->name,
                     c->tile.rows, c->tile.columns, m->rows, m->columns, m->n, to.f[i], i, want[i]);
        if (!allowed[i]) continue;
        error += difference * difference;
        power += want[i] * want[i];
    }
    if (!(error <= 1e-6 * power)) fail_msg("%s: NMSE %g", w.format->name, error / power);
    free(want);
    free(allowed);
    free(w.values);
}

// A few formats, since each is widened. Few sizes of tiles, which are a pipeline each.
static void test_cooperative(void **state) {
    (void)state;
    const struct cooperative_shape *shape = &context.device->cooperative;
    if (!shape->m) {
        print_message("no cooperative matrices: skipped\n");
        skip();
    }
    print_message("cooperative matrices of %u × %u × %u\n", shape->m, shape->n, shape->k);
    const struct cooperative_case cases[] = {
        {{BLOCK_Q4_K, 150, 768, 90, .scale = 1}, {64, 64}, 1, 0},
        {{BLOCK_Q6_K, 70, 512, 37, .scale = 1}, {64, 64}, 1, 0},
        {{BLOCK_Q8_0, 70, 96, 5, .biased = true, .adds = true, .scale = 0.5f, .softcap = 2}, {64, 64}, 2, 0},
        {{BLOCK_Q8_0, 1, 32, 1, .adds = true, .scale = 2}, {32, 32}, 1, 0},
        {{BLOCK_F16, 130, 333, 150, .scale = 1}, {128, 128}, 1, 32},
        {{BLOCK_Q4_K, 70, 256, 90, .experts = true, .biased = true, .scale = 1}, {64, 16}, 3, 0},
        {{BLOCK_MXFP4, 70, 96, 200, .experts = true, .scale = 1}, {128, 64}, 1, 0},
        {{BLOCK_Q4_K, 300, 256, 260, .scale = 1}, {128, 128}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_cooperative(&cases[i]);
}

// ---- gated ----

struct gated_case {
    int format, rows, columns, n, at_once, gated;
    bool biased, experts;
};

struct gated_push {
    VkDeviceAddress gate, up, grids, from, from_codes, to, to_codes, gate_bias, up_bias, choices;
    int32_t rows, columns, n, from_stride, to_stride, from_share, biased;
};

static void check_gated(const struct gated_case *c) {
    const int experts = c->experts ? N_EXPERTS : 1, share = c->experts ? USED : 1, rows = experts * c->rows;
    const int stride = groups(c->columns, 32) * 32, to_stride = groups(c->rows, 32) * 32;
    begin(NULL);
    struct weights w[2] = {random_weights(c->format, rows, c->columns), random_weights(c->format, rows, c->columns)};
    const struct array from = random_rows(groups(c->n, share), c->columns, stride),
                       from_codes = quantized(&from, stride), to = random_rows(c->n, c->rows, to_stride),
                       codes = codes_for(&to), choices = random_choices(c->n, experts),
                       bias[2] = {random_floats((size_t)rows), random_floats((size_t)rows)};
    const struct gated_push push = {w[0].blocks.address,
                                    w[1].blocks.address,
                                    w[0].grids.address,
                                    from.address,
                                    from_codes.address,
                                    to.address,
                                    codes.address,
                                    bias[0].address,
                                    bias[1].address,
                                    choices.address,
                                    c->rows,
                                    c->columns,
                                    c->n,
                                    stride,
                                    to_stride,
                                    share,
                                    c->biased ? 3 : 0};
    if (block_formats[c->format].elements > 1) stand_for(&from_codes, &from, stride);
    double *want = expect(&to), most = 0;
    for (int i = 0; i < c->n; i++)
        for (int r = 0; r < c->rows; r++) {
            const int row = (c->experts ? choices.i[2 * i] * c->rows : 0) + r;
            double x[2];
            for (int k = 0; k < 2; k++) {
                x[k] = c->biased ? bias[k].f[row] : 0;
                for (int j = 0; j < c->columns; j++)
                    x[k] += (double)w[k].values[row * c->columns + j] * from.f[i / share * stride + j];
                most = fmax(most, fabs(x[k]));
            }
            want[i * to_stride + r] = activation(ACTIVATION_SILU, c->gated, (float)x[0], (float)x[1]);
        }
    DISPATCH(shader_of("gated", c->format), push, groups(c->n, c->at_once), groups(c->rows, 32), 1, ACTIVATION_SILU,
             (uint32_t)c->gated, (uint32_t)c->at_once, c->experts);
    check(shader_of("gated", c->format), &to, want, 1e-5 * (1 + most));
    check_pieces(&codes, &to, to_stride);
    free(w[0].values);
    free(w[1].values);
}

static void test_gated(void **state) {
    (void)state;
    static const struct gated_case cases[] = {{BLOCK_Q4_K, 70, 768, 1, 1, 1, false, false},
                                              {BLOCK_Q8_0, 64, 96, 5, 2, 1, true, false},
                                              {BLOCK_Q8_0, 33, 2080, 8, 8, 0, false, false},
                                              {BLOCK_F32, 70, 77, 3, 4, 1, false, false},
                                              {BLOCK_IQ4_NL, 40, 64, 6, 1, 1, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_gated(&cases[i]);
}

static void check_group(int n, int count, int chosen, int tile) {
    begin(NULL);
    const int most = n < n / tile + count ? n : n / tile + count;
    const struct array choices = random_choices(n, chosen), order = random_floats((size_t)n),
                       tiles = reserve((size_t)most, 3 * sizeof(int32_t));
    group(&choices, &order, &tiles, n, count, tile);
    int done = 0;
    bool *seen = xcalloc((size_t)n, sizeof *seen);
    for (int i = 0; i < most; i++) {
        const int expert = tiles.i[3 * i], first = tiles.i[3 * i + 1], end = tiles.i[3 * i + 2];
        if (first >= end) continue;
        assert_int_equal(first, done);
        for (done = first; done < end && done < first + tile; done++) {
            const int slot = order.i[done];
            assert_true(slot >= 0 && slot < n && !seen[slot]);
            assert_int_equal(choices.i[2 * slot], expert);
            seen[slot] = true;
        }
        assert_true(done == end || (i + 1 < most && tiles.i[3 * (i + 1)] == expert));
    }
    assert_int_equal(done, n);
    free(seen);
}

static void test_group(void **state) {
    (void)state;
    check_group(300, 5, 5, 16);
    check_group(64, 5, 1, 16); // all to one expert
    check_group(1, 5, 5, 16);
    check_group(1000, 300, 290, 32);
    check_group(3, 300, 300, 32);
}

// ---- heads and attention ----

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
    const struct array list = reserve((size_t)n, sizeof(VkDeviceAddress));
    for (int i = 0; i < n; i++)
        ((VkDeviceAddress *)list.host)[i] =
            stored->address + (VkDeviceAddress)(pages[i] * 2 * kv->n_head_kv * side_bytes(kv));
    return list;
}

static struct array random_kv(struct kv *kv) {
    const size_t n = (size_t)(KV_PAGES * 2 * kv->n_head_kv * side_bytes(kv));
    const struct array a = reserve(n, 1);
    kv->pages = a.host;
    for (size_t i = 0; i < n; i++) a.u8[i] = (uint8_t)(random_bits(&seed) >> 56);
    for (int i = 0; i < KV_PAGES * kv->n_head_kv * PAGE * kv->head_size * 2; i++) {
        const bool values = i % 2;
        const int d = i / 2 % kv->head_size, slot = i / 2 / kv->head_size % PAGE,
                  head = i / 2 / kv->head_size / PAGE % kv->n_head_kv,
                  page = i / 2 / kv->head_size / PAGE / kv->n_head_kv;
        const float value = random_value(&seed) * (is_quantised(kv) ? 0.02f : 1);
        uint16_t half = f16_from_f32(value);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (kv->type == KV_BF16) half = (uint16_t)(bits >> 16);
        memcpy(half_of(kv, side_of(kv, page, head, values), slot, d, values), &half, sizeof half);
    }
    return a;
}

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
        norm(x, c->size, c->norm, 1e-3f);
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
    begin(NULL);
    const int stride = ALL_HEADS * c->size;
    const struct array qkv = random_floats((size_t)(HEAD_ROWS * stride)),
                       query_norm = random_floats((size_t)(N_HEAD * c->size)),
                       key_norm = random_floats((size_t)(N_HEAD_KV * c->size)),
                       rotation = random_floats((size_t)(HEAD_ROWS * c->size)), stored = random_kv(&kv),
                       pages = page_list(&kv, &stored, 4, (const int[]){3, 1, 8, 0});
    const struct row_info rows[HEAD_ROWS] = {{5, 0, 0.5f}, {33, 1, 2}, {31, 3, 0.125f}};
    static const int page_of[HEAD_ROWS] = {3, 8, 0};                                   // of each row
    memset(qkv.f + 2 * stride + N_HEAD * c->size, 0, (size_t)c->size * sizeof *qkv.f); // a key of zeros
    const struct array infos = copy_of(rows, HEAD_ROWS, sizeof *rows);
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
    double *want = expect(&qkv), *x = xmalloc(qkv.n * sizeof *x);
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
    check("heads", &qkv, want, 1e-5);
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
    begin(NULL);
    const int stride = ALL_HEADS * c->size, to_stride = groups(N_HEAD * c->size, 32) * 32 + 32;
    const bool quantizes = c->size % 32 == 0;
    static const int page_numbers[] = {3, 1, 8, 0, 5, 6, 2, 4};
    const struct row_info rows[ALL] = {{211, 0, 0}, {212, 0, 0}, {0, 0, 0}, {c->window ? 3 : 0, 7, 0}};
    const struct array qkv = random_floats((size_t)(ALL * stride)), to = random_floats((size_t)(WANTED * to_stride)),
                       sinks = random_floats(N_HEAD), infos = copy_of(rows, ALL, sizeof *rows),
                       list = ints(WANTED, wanted), stored = random_kv(&kv),
                       pages = page_list(&kv, &stored, 8, page_numbers), codes = codes_for(&to),
                       parts = random_floats((size_t)(WANTED * N_HEAD * c->parts * (c->size + 2)));
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
    double *want = expect(&to);
    for (int i = 0; i < WANTED; i++)
        for (int h = 0; h < N_HEAD; h++)
            attend(c, &kv, page_numbers + rows[wanted[i]].first_page, rows[wanted[i]].position,
                   h / (N_HEAD / N_HEAD_KV), qkv.f + wanted[i] * stride + h * c->size, sinks.f + h,
                   want + i * to_stride + h * c->size);
    DISPATCH("attention", push, N_HEAD / c->heads, groups(WANTED, c->rows), c->parts, (uint32_t)c->size,
             (uint32_t)c->kv_type, c->sinks, (uint32_t)c->heads, (uint32_t)c->rows, quantizes);
    if (c->parts > 1) DISPATCH("attention_join", join, N_HEAD, WANTED, 1, (uint32_t)c->size, c->sinks, quantizes);
    check("attention", &to, want, 2e-5);
    for (int i = 0; quantizes && i < WANTED * N_HEAD * c->size; i += 32) {
        const int at = i / (N_HEAD * c->size) * to_stride + i % (N_HEAD * c->size);
        check_piece(piece_of(&codes, to_stride, (size_t)at / 32), to.f + at);
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

// ---- every size of subgroups ----

static void test_device(void **state) {
    (void)state;
    if (memory.mapped) return;
    print_message("no Vulkan device: skipped\n");
    skip();
}

static bool open_device(void) {
    struct status st = {0};
    VkPhysicalDevice physical;
    if (!vulkan_physical_devices(&physical, 1)) return false;
    if (vulkan_context_open(&context, physical, &st) &&
        vulkan_buffer_open(context.device, &memory, MEMORY_BYTES, VULKAN_MEMORY_READBACK, "tests", &st))
        return true;
    panic("%s", st.text);
}

// The sizes that pipelines may ask for, from the least to the greatest; both 0 where they may not.
static void subgroup_sizes(uint32_t *least, uint32_t *most) {
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes};
    *least = *most = 0;
    if (!context.device->sizes_subgroups) return;
    vulkan_instance(NULL)->call.GetPhysicalDeviceProperties2(context.device->physical, &properties);
    if (!(sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) return;
    *least = sizes.minSubgroupSize;
    *most = sizes.maxSubgroupSize;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_norm, begin),        cmocka_unit_test_setup(test_activate, begin),
        cmocka_unit_test_setup(test_choose, begin),      cmocka_unit_test_setup(test_experts_add, begin),
        cmocka_unit_test_setup(test_embed, begin),       cmocka_unit_test_setup(test_quantize, begin),
        cmocka_unit_test_setup(test_matvec, begin),      cmocka_unit_test_setup(test_matvec_long, begin),
        cmocka_unit_test_setup(test_matmul, begin),      cmocka_unit_test_setup(test_gated, begin),
        cmocka_unit_test_setup(test_halve, begin),       cmocka_unit_test_setup(test_widen, begin),
        cmocka_unit_test_setup(test_cooperative, begin), cmocka_unit_test_setup(test_group, begin),
        cmocka_unit_test_setup(test_heads, begin),       cmocka_unit_test_setup(test_attention, begin),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(test_device)};
    uint32_t size, most;
    int failed = 0;
    if (!open_device()) return cmocka_run_group_tests(without, NULL, NULL);
    for (subgroup_sizes(&size, &most); size <= most; size = size ? 2 * size : 1) {
        print_message("subgroups of %u\n", size ? size : context.device->subgroup_size);
        context.device->wanted_subgroup_size = size;
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    vulkan_buffer_close(context.device, &memory);
    vulkan_context_close(&context);
    return failed;
}

#endif
