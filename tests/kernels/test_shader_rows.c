// The Vulkan shaders that compute row by row, and those that choose experts for rows, against plain C.
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
#include "tests/kernels/shader_matrices.h"

// ---- quantised activations ----

static void test_quantize(void **state) {
    (void)state;
    enum { ROWS = 2, PIECES = 35, STRIDE = 32 * PIECES };
    array_begin(NULL);
    const struct array from = array_random(ROWS * STRIDE);
    for (int i = 0; i < 32; i++) from.f[i] = 0, from.f[32 + i] *= 1e-30f, from.f[64 + i] *= 1e30f;
    from.f[96] = INFINITY, from.f[128 + 31] = NAN;
    const struct array codes = codes_quantized(&from, STRIDE);
    for (size_t i = 0; i < ROWS * PIECES; i++) {
        const struct piece p = codes_piece(&codes, STRIDE, i);
        if (i == 3 || i == 4) assert_true(isnan(*p.scale) && isnan(p.sum[0]) && isnan(p.sum[1]));
        else codes_check_piece(p, from.f + 32 * i);
    }
}

// ---- norms ----

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
            array_begin(NULL);
            const struct array from = array_random(SOURCES * STRIDE), to = array_random(ROWS * STRIDE),
                               weight = array_random(STRIDE), bias = array_random(STRIDE), codes = codes_for(&to),
                               rows = array_of_ints(ROWS, (const int32_t[]){4, 0, 2});
            const struct {
                VkDeviceAddress from, to, codes, weight, bias, rows;
                int32_t n, from_stride, to_stride, has_list;
                float epsilon, scale;
            } push = {from.address, to.address, codes.address, weight.address, bias.address, rows.address,
                      n,            STRIDE,     STRIDE,        true,           1e-3f,        0.5f};
            double *want = array_expect(&to), x[STRIDE];
            for (int r = 0; r < ROWS; r++) {
                for (int i = 0; i < n; i++) x[i] = from.f[rows.i[r] * STRIDE + i];
                plain_norm(x, n, cases[c].kind, push.epsilon);
                for (int i = 0; i < n; i++) {
                    if (cases[c].kind != NORM_NONE) x[i] *= weight.f[i];
                    if (cases[c].biased) x[i] += bias.f[i];
                    want[r * STRIDE + i] = cases[c].adds ? want[r * STRIDE + i] + 0.5 * x[i] : x[i];
                }
            }
            DISPATCH("norm", push, ROWS, 1, 1, (uint32_t)cases[c].kind, (uint32_t)cases[c].biased,
                     (uint32_t)cases[c].adds, (uint32_t)cases[c].quantizes, (uint32_t)groups(groups(n, 32) * 8, 256));
            array_check("norm", &to, want, 1e-5);
            for (int i = 0; cases[c].quantizes && i < ROWS * STRIDE; i += 32) {
                for (int at = i; at < i + 32; at++)
                    if (at % STRIDE >= n) to.f[at] = 0;
                if (i % STRIDE < n) codes_check_piece(codes_piece(&codes, STRIDE, (size_t)i / 32), to.f + i);
            }
        }
}

// ---- activations ----

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
        array_begin(NULL);
        const struct array gate = array_random_rows(ROWS, N, STRIDE), up = array_random_rows(ROWS, N, STRIDE);
        for (int i = 0; i < 8; i++) gate.f[i] = large[i], up.f[STRIDE + i] = up.f[i + 4] = large[i];
        const struct array codes = codes_for(&gate);
        const struct {
            VkDeviceAddress gate, up, to, codes;
            int32_t n, stride;
        } push = {gate.address, up.address, gate.address, codes.address, ROWS * STRIDE / 4, STRIDE / 4};
        double *want = array_expect(&gate);
        for (int i = 0; i < ROWS * STRIDE; i++)
            want[i] = plain_activation(cases[c].kind, cases[c].gated, gate.f[i], up.f[i]);
        DISPATCH("activate", push, groups(push.n, 256), 1, 1, (uint32_t)cases[c].kind, (uint32_t)cases[c].gated);
        array_check("activate", &gate, want, 1e-5);
        codes_check(&codes, &gate, STRIDE);
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
        array_begin(NULL);
        const struct array logits = array_random(ROWS * MOST), bias = array_random(MOST),
                           choices = array_reserve((size_t)(ROWS * n_used), 2 * sizeof(int32_t));
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
                if (cases[c].gating == EXPERT_GATING_SIGMOID) scores[i] = plain_sigmoid(scores[i]);
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

static void test_experts_add(void **state) {
    (void)state;
    enum { N = 70, STRIDE = 96, ROWS = 3, LOGITS_STRIDE = 2 };
    static const struct { int n_used, shared, weighed, adds; } cases[] = {{2, 0, 0, 1}, {3, 1, 0, 0}, {1, 1, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int n_used = cases[c].n_used;
        array_begin(NULL);
        const struct array results = array_random((size_t)(ROWS * n_used * STRIDE)), to = array_random(ROWS * STRIDE),
                           shared = array_random(ROWS * STRIDE), logits = array_random(ROWS * LOGITS_STRIDE),
                           choices = choices_random(ROWS * n_used, 8);
        const struct {
            VkDeviceAddress results, choices, shared_results, shared_logits, to;
            int32_t n, stride, logits_stride;
            float scale;
        } push = {results.address, choices.address, shared.address,
                  logits.address,  to.address,      N,
                  STRIDE,          LOGITS_STRIDE,   0.5f};
        double *want = array_expect(&to);
        for (int i = 0; i < ROWS * STRIDE; i++) {
            const int row = i / STRIDE, k = i % STRIDE;
            double sum = cases[c].shared ? shared.f[i] : 0;
            if (cases[c].weighed) sum *= plain_sigmoid(logits.f[row * LOGITS_STRIDE]);
            for (int e = row * n_used; e < (row + 1) * n_used; e++)
                sum += (double)results.f[e * STRIDE + k] * choices.f[2 * e + 1];
            if (k < N) want[i] = cases[c].adds ? want[i] + 0.5 * sum : sum;
        }
        DISPATCH("experts_add", push, groups(N, 64), ROWS, 1, (uint32_t)n_used, (uint32_t)cases[c].shared,
                 (uint32_t)cases[c].weighed, (uint32_t)cases[c].adds);
        array_check("experts_add", &to, want, 1e-5);
    }
}

static void check_group(int n, int count, int chosen, int tile) {
    array_begin(NULL);
    const int most = n < n / tile + count ? n : n / tile + count;
    const struct array choices = choices_random(n, chosen), order = array_random((size_t)n),
                       tiles = array_reserve((size_t)most, 3 * sizeof(int32_t));
    choices_group(&choices, &order, &tiles, n, count, tile);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_quantize, array_begin),
        cmocka_unit_test_setup(test_norm, array_begin),
        cmocka_unit_test_setup(test_activate, array_begin),
        cmocka_unit_test_setup(test_choose, array_begin),
        cmocka_unit_test_setup(test_experts_add, array_begin),
        cmocka_unit_test_setup(test_group, array_begin),
    };
    return SHADER_TESTS_RUN(tests);
}

#else

int main(void) { return shader_tests_skip(); }

#endif
