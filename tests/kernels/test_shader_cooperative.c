// The Vulkan shaders for cooperative matrices against plain C, those of floats against OpenBLAS too.
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

#include "engine/vulkan/cooperative.h"
#include "engine/vulkan/shaders.h"
#include "tests/kernels/blas_reference.h"
#include "tests/kernels/shader_matrices.h"

// Rows as halves, and what they are to be multiplied by.
struct halved {
    struct array rows, scales;
    int stride;
};

static struct halved halve(const struct array *from, int n, int columns, int stride) {
    const int to_stride = (int)cooperative_stride((uint32_t)columns);
    const struct halved h = {array_reserve((size_t)(n * to_stride), 2), array_reserve((size_t)n, sizeof(float)),
                             to_stride};
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
    const struct array from = array_random_rows(ROWS, COLUMNS, STRIDE);
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
    const struct array to = array_reserve((size_t)((rows + 1) * stride), 2); // a row more
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
    array_begin(NULL);
    struct weights w = weights_random(format, ROWS, columns);
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

// Inputs of very different sizes, as halves; and they become what these stand for.
static struct halved halve_inputs(const struct matmul *m, const struct matmul_arrays *a) {
    for (int i = 0; i < a->inputs * a->stride; i++) a->from.f[i] *= i / a->stride % 3 ? 1e6f : 1e-6f;
    const struct halved h = halve(&a->from, a->inputs, m->columns, a->stride);
    for (int i = 0; i < a->inputs * a->stride; i++)
        a->from.f[i] = i % a->stride < m->columns ? (float)half_value(&h, i / a->stride, i % a->stride) : 0;
    return h;
}

// Slice by slice. Returns whether there is room for it.
static bool run_cooperative(const struct cooperative_case *c, const struct matmul_arrays *a, const struct halved *h) {
    const struct matmul *m = &c->m;
    struct cooperative_constants constants = cooperative_constants(shader_device(), c->tile, m->experts);
    if (c->step) constants.step = c->step;
    if (cooperative_shared_bytes(&constants) > shader_device()->shared_bytes) return false;
    if (m->experts) choices_group(&a->choices, &a->order, &a->tiles, m->n, a->experts, (int)constants.columns);
    const int units = m->experts ? N_EXPERTS : m->rows, each = groups(units, c->n_slices),
              rows = m->experts ? m->rows : 1;
    for (int first = 0; first < units; first += each) {
        const int n = units - first < each ? units - first : each;
        const struct array halves = widened(&a->weights, first * rows, n * rows);
        const VkDeviceAddress skipped = m->experts ? 0 : 4 * (VkDeviceAddress)first;
        const struct {
            VkDeviceAddress matrix, from, scales, to, bias, order, tiles;
            int32_t rows, n, from_stride, to_stride, from_share, expert, end_expert;
            float scale, softcap;
            uint32_t biased, adds;
        } push = {halves.address,
                  h->rows.address,
                  h->scales.address,
                  a->to.address + skipped,
                  a->bias.address + skipped,
                  a->order.address,
                  a->tiles.address,
                  m->experts ? m->rows : n,
                  m->n,
                  h->stride,
                  a->to_stride,
                  a->share,
                  m->experts ? first : 0,
                  m->experts ? first + n : 1,
                  m->scale,
                  m->softcap,
                  m->biased,
                  m->adds};
        shader_dispatch("cooperative", (uint32_t *)&constants, sizeof constants / sizeof(uint32_t), &push, sizeof push,
                        m->experts ? MOST_TILES : groups(m->n, (int)constants.columns),
                        groups(push.rows, (int)constants.rows), 1);
    }
    return true;
}

// As for the other matmuls, of inputs that are the device's halves. Weights are rounded to halves too, here as there
// but for how ties are; nothing else is: the sums are floats.
static void check_cooperative(const struct cooperative_case *c) {
    const struct matmul *m = &c->m;
    struct matmul_arrays a = matmul_open(m);
    const struct halved h = halve_inputs(m, &a);
    double *want, *allowed, error = 0, power = 0;
    matmul_expect(m, &a, &want, &allowed);
    const bool ran = run_cooperative(c, &a, &h);
    for (size_t i = 0; i < a.to.n && ran; i++) {
        const double difference = a.to.f[i] - want[i];
        // Each weight is off by a unit in a half's last place at most.
        if (!(fabs(difference) <= 600 * allowed[i]))
            fail_msg("%s, tiles of %u × %u: %d × %d for %d rows: %.9g at %zu, expected %.9g", a.weights.format->name,
                     c->tile.rows, c->tile.columns, m->rows, m->columns, m->n, a.to.f[i], i, want[i]);
        if (!allowed[i]) continue;
        error += difference * difference;
        power += want[i] * want[i];
    }
    if (!(error <= 1e-6 * power)) fail_msg("%s: NMSE %g", a.weights.format->name, error / power);
    free(want);
    free(allowed);
    matmul_close(&a);
}

static void needs_cooperative(void) {
    if (shader_device()->cooperative.m) return;
    print_message("no cooperative matrices: skipped\n");
    skip();
}

// A few formats, since each is widened. Few sizes of tiles, which are a pipeline each.
static void test_cooperative(void **state) {
    (void)state;
    const struct cooperative_shape *shape = &shader_device()->cooperative;
    needs_cooperative();
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

// Halves hold the weights of F16 as they are. Matrix units may cut off where others round: each of the sums of a result
// is off by 2^-23 of it at most, always towards zero.
static void test_cooperative_like_openblas(void **state) {
    (void)state;
    static const struct { int rows, columns, n; } shapes[] = {{1, 1, 1}, {33, 77, 5}, {64, 64, 64}, {70, 1100, 90}};
    needs_cooperative();
    reference_needed();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct cooperative_case c = {
            {BLOCK_F16, shapes[i].rows, shapes[i].columns, shapes[i].n, .scale = 1}, {64, 64}, 1, 0};
        struct matmul_arrays a = matmul_open(&c.m);
        const struct halved h = halve_inputs(&c.m, &a);
        if (run_cooperative(&c, &a, &h))
            matmul_check_floats(&a, REFERENCE_ALLOWED + 0x1p-23 * shapes[i].columns, "cooperative");
        matmul_close(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_halve, array_begin),
        cmocka_unit_test_setup(test_widen, array_begin),
        cmocka_unit_test_setup(test_cooperative, array_begin),
        cmocka_unit_test_setup(test_cooperative_like_openblas, array_begin),
    };
    return SHADER_TESTS_RUN(tests);
}

#else

int main(void) { return shader_tests_skip(); }

#endif
