// The Vulkan shaders that read matrices, in block formats or of floats, against plain C; matmuls of floats against
// OpenBLAS too.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/kernels/shader_harness.h"

#ifdef CONFAB_VULKAN

#include "tests/kernels/blas_reference.h"
#include "tests/kernels/shader_matrices.h"
#include "tests/unit/cases.h"

// ---- embeddings ----

// The values of the embedding are those of the decoder, bit for bit but for denormals.
static void check_embed(int format, int columns) {
    enum { ROWS = 4, TOKENS = 5 };
    const int stride = groups(columns, 32) * 32;
    array_begin(NULL);
    struct weights w = weights_random(format, TOKENS, columns);
    const struct array tokens = array_of_ints(ROWS, (const int32_t[]){4, -1, 0, 3}),
                       inputs = array_random((size_t)(ROWS * stride)), to = array_random((size_t)(ROWS * stride));
    const struct {
        VkDeviceAddress matrix, grids, tokens, inputs, to;
        int32_t columns, stride;
        float scale;
    } push = {w.blocks.address, w.grids.address, tokens.address, inputs.address, to.address, columns, stride, 0.5f};
    double *want = array_expect(&to);
    for (int i = 0; i < ROWS * stride; i++) {
        const int token = tokens.i[i / stride], k = i % stride;
        if (k < columns) want[i] = token < 0 ? inputs.f[i] : 0.5f * w.values[token * columns + k];
    }
    DISPATCH(shader_of("embed", format), push, groups(groups(columns, 32), 64), ROWS, 1, 0);
    array_check(shader_of("embed", format), &to, want, 0);
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

// ---- matmuls ----

static const char *shader_for(const struct matmul *m) { return shader_of(m->tiled ? "matmul" : "matvec", m->format); }

// The inputs' codes, which matrices of blocks are multiplied by: then the inputs become what these stand for.
static struct array quantize_inputs(const struct matmul_arrays *a) {
    const struct array codes = codes_quantized(&a->from, a->stride);
    if (a->weights.format->elements > 1) codes_decode(&codes, &a->from, a->stride);
    return codes;
}

static void run_matmul(const struct matmul *m, const struct matmul_arrays *a, const struct array *codes) {
    enum { ROWS = 2 };
    const struct {
        VkDeviceAddress matrix, grids, from, from_codes, to, bias, choices, order, tiles;
        int32_t rows, columns, n, from_stride, to_stride, from_share;
        float scale, softcap;
        uint32_t biased, adds;
    } push = {a->weights.blocks.address,
              a->weights.grids.address,
              a->from.address,
              codes->address,
              a->to.address,
              a->bias.address,
              a->choices.address,
              a->order.address,
              a->tiles.address,
              m->rows,
              m->columns,
              m->n,
              a->stride,
              a->to_stride,
              a->share,
              m->scale,
              m->softcap,
              m->biased,
              m->adds};
    const int across = groups(m->n, m->at_once);
    if (m->tiled)
        DISPATCH(shader_for(m), push, m->experts ? MOST_TILES : across, groups(m->rows, TILE_ROWS), 1,
                 (uint32_t)m->at_once / 8, m->experts);
    else DISPATCH(shader_for(m), push, across, groups(m->rows, 2 * ROWS), 2, (uint32_t)m->at_once, m->experts);
}

static void check_matmul(const struct matmul *m) {
    struct matmul_arrays a = matmul_open(m);
    const struct array codes = quantize_inputs(&a);
    double *want, *allowed;
    matmul_expect(m, &a, &want, &allowed);
    if (m->tiled && m->experts) choices_group(&a.choices, &a.order, &a.tiles, m->n, a.experts, m->at_once);
    run_matmul(m, &a, &codes);
    for (size_t i = 0; i < a.to.n; i++)
        if (!(fabs(a.to.f[i] - want[i]) <= allowed[i]))
            fail_msg("%s: %d × %d for %d rows: %.9g at %zu, expected %.9g", shader_for(m), m->rows, m->columns, m->n,
                     a.to.f[i], i, want[i]);
    free(want);
    free(allowed);
    matmul_close(&a);
}

// A format of every kind: of floats, of one or two scales, with and without minimums, with tables. How each is unpacked
// is in test_embed.
static void check_formats(bool tiled, int at_once, int rows, int n) {
    static const int formats[] = {BLOCK_F32, BLOCK_F16, BLOCK_Q8_0, BLOCK_Q4_K, BLOCK_Q2_K, BLOCK_Q6_K, BLOCK_IQ3_S};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i += CASE_STEP) {
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

// ---- matmuls of floats against OpenBLAS ----

static void check_floats(bool tiled, int at_once, int n) {
    static const struct { int rows, columns; } shapes[] = {{1, 1}, {5, 15}, {33, 77}, {64, 64}, {70, 1100}};
    for (int format = 0; block_formats[format].elements == 1; format++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const struct matmul m = {format, shapes[i].rows, shapes[i].columns, n, at_once, tiled, .scale = 1};
            struct matmul_arrays a = matmul_open(&m);
            const struct array codes = quantize_inputs(&a);
            run_matmul(&m, &a, &codes);
            matmul_check_floats(&a, REFERENCE_ALLOWED, shader_for(&m));
            matmul_close(&a);
        }
}

static void test_matvec_like_openblas(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 4, 7};
    reference_needed();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_floats(false, 4, counts[i]);
}

static void test_matmul_like_openblas(void **state) {
    (void)state;
    static const int counts[] = {1, 32, 45};
    reference_needed();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_floats(true, 32, counts[i]);
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
    array_begin(NULL);
    struct weights w[2] = {weights_random(c->format, rows, c->columns), weights_random(c->format, rows, c->columns)};
    const struct array from = array_random_rows(groups(c->n, share), c->columns, stride),
                       from_codes = codes_quantized(&from, stride), to = array_random_rows(c->n, c->rows, to_stride),
                       codes = codes_for(&to), choices = choices_random(c->n, experts),
                       bias[2] = {array_random((size_t)rows), array_random((size_t)rows)};
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
    if (block_formats[c->format].elements > 1) codes_decode(&from_codes, &from, stride);
    double *want = array_expect(&to), most = 0;
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
            want[i * to_stride + r] = plain_activation(ACTIVATION_SILU, c->gated, (float)x[0], (float)x[1]);
        }
    DISPATCH(shader_of("gated", c->format), push, groups(c->n, c->at_once), groups(c->rows, 32), 1, ACTIVATION_SILU,
             (uint32_t)c->gated, (uint32_t)c->at_once, c->experts);
    array_check(shader_of("gated", c->format), &to, want, 1e-5 * (1 + most));
    codes_check(&codes, &to, to_stride);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_embed, array_begin),
        cmocka_unit_test_setup(test_matvec, array_begin),
        cmocka_unit_test_setup(test_matvec_long, array_begin),
        cmocka_unit_test_setup(test_matmul, array_begin),
        cmocka_unit_test_setup(test_matvec_like_openblas, array_begin),
        cmocka_unit_test_setup(test_matmul_like_openblas, array_begin),
        cmocka_unit_test_setup(test_gated, array_begin),
    };
    return SHADER_TESTS_RUN(tests);
}

#else

int main(void) { return shader_tests_skip(); }

#endif
