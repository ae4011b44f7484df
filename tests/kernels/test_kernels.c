// Tests the scalar kernels against the formats' decoders, every instruction set against scalar bit for bit, and every
// row alone against the same row in a batch.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/cpu/kv_page.h"
#include "tests/kernels/harness.h"

static const char *const instruction_sets[] = {"avx2", "avxvnni", "avx512"};
enum { N_SETS = 3, MOST_INPUTS = 17 };

#define FOR_EACH_SET(k)                                                                                                \
    for (int set_ = 0; set_ < N_SETS; set_++)                                                                          \
        for (const struct cpu_kernels *k = kernels_to_try(instruction_sets[set_]); k; k = NULL)

// Shapes with a partial strip and, for floats, columns that do not fill a vector.
static struct trial odd_trial(enum block_id format, uint64_t seed) {
    const int block = (int)block_formats[format].elements;
    return trial_open(format, 70, block == 1 ? 77 : block * 3, MOST_INPUTS, seed);
}

static void assert_near(double got, double want, double scale) {
    if (!(fabs(got - want) <= 2e-6 * scale)) fail_msg("got %.9g, expected %.9g", got, want);
}

// The expected result, in double, from the decoded weights and the inputs as the kernels see them.
static void check_products(const struct trial *t, const float *out) {
    float *weight = xmalloc((size_t)t->columns * sizeof *weight);
    for (int r = 0; r < t->rows; r++) {
        const uint8_t *row = (const uint8_t *)t->weight.data + (size_t)r * t->weight.row_bytes;
        t->format->decode(row, weight, (size_t)t->columns);
        for (int c = 0; c < t->n_inputs; c++) {
            double sum = 0, magnitude = 0;
            for (int i = 0; i < t->columns; i++) {
                const int lane = c % t->input.width, first = c - lane, left = t->n_inputs - first;
                const int width = left < t->input.width ? left : t->input.width;
                double x = t->input.values[(size_t)c * (size_t)t->columns + i];
                if (t->matrix.packed) {
                    size_t block = (size_t)first * (size_t)(t->columns / 32) + (size_t)(i / 32) * (size_t)width + lane;
                    x = (double)t->input.blocks[block].scale * t->input.blocks[block].q[i % 32];
                }
                sum += weight[i] * x;
                magnitude += fabs(weight[i] * x);
            }
            assert_near(out[r * t->n_inputs + c], sum, magnitude);
        }
    }
    free(weight);
}

static void test_scalar_products(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        struct trial t = odd_trial(format, 7 + (uint64_t)format);
        float out[70 * MOST_INPUTS];
        trial_inputs(&t, &kernels_scalar, 9);
        trial_run(&t, &kernels_scalar, out);
        check_products(&t, out);
        trial_close(&t);
    }
}

static void test_exact_products(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        struct trial t = odd_trial(format, 70 + (uint64_t)format);
        float out[70 * MOST_INPUTS];
        t.matrix = matrix_in_place(&t.weight);
        trial_inputs(&t, &kernels_scalar, 5);
        trial_run(&t, &kernels_exact, out);
        check_products(&t, out);
        trial_close(&t);
    }
}

static void test_products_agree(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        struct trial t = odd_trial(format, 20 + (uint64_t)format);
        for (int n = 1; n <= MOST_INPUTS; n++) {
            float want[70 * MOST_INPUTS], got[70 * MOST_INPUTS];
            trial_inputs(&t, &kernels_scalar, n);
            trial_run(&t, &kernels_scalar, want);
            FOR_EACH_SET(k) {
                trial_inputs(&t, k, n);
                trial_run(&t, k, got);
                assert_memory_equal(got, want, (size_t)(t.rows * n) * sizeof(float));
            }
        }
        trial_close(&t);
    }
}

// Enough inputs that weights are unpacked, and more columns than are unpacked at once.
static void test_many_inputs_agree(void **state) {
    (void)state;
    enum { ROWS = 40, INPUTS = MANY_INPUTS + 5 };
    for (int format = BLOCK_Q8_0; format < BLOCK_FORMAT_COUNT; format++) {
        struct trial t = trial_open(format, ROWS, 1280, INPUTS, 60 + (uint64_t)format);
        float want[ROWS * INPUTS], got[ROWS * INPUTS];
        t.values[3] = NAN;
        trial_inputs(&t, &kernels_scalar, INPUTS);
        trial_run(&t, &kernels_scalar, want);
        FOR_EACH_SET(k) {
            trial_inputs(&t, k, INPUTS);
            trial_run(&t, k, got);
            for (int i = 0; i < ROWS * INPUTS; i++)
                assert_true(isnan(want[i]) ? isnan(got[i]) : !memcmp(&got[i], &want[i], sizeof *got));
            assert_true(isnan(got[0]) && !isnan(got[1]));
        }
        trial_close(&t);
    }
}

static void test_columns_do_not_matter(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        struct trial t = odd_trial(format, 40 + (uint64_t)format);
        FOR_EACH_SET(k) {
            float alone[70], batch[70 * MOST_INPUTS];
            trial_inputs(&t, k, 1);
            trial_run(&t, k, alone);
            for (int n = 2; n <= MOST_INPUTS; n++) {
                trial_inputs(&t, k, n);
                trial_run(&t, k, batch);
                for (int r = 0; r < t.rows; r++) assert_memory_equal(&batch[r * n], &alone[r], sizeof(float));
            }
        }
        trial_close(&t);
    }
}

// The largest possible sums of 8-bit inputs and weights must not overflow their accumulators.
static void test_extremes(void **state) {
    (void)state;
    for (int format = BLOCK_Q8_0; format < BLOCK_FORMAT_COUNT; format++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct trial t = trial_open(format, 32, 256, 3, 5);
            const uint8_t fill = sign < 0 ? 0x80 : 0xFF;
            uint8_t *data = (uint8_t *)t.weight.data;
            for (size_t i = 0; i < 32 * t.weight.row_bytes; i++) data[i] = fill;
            for (size_t b = 0; b < 32 * t.weight.row_bytes / t.format->bytes; b++)
                block_set_scale(data + b * t.format->bytes, (enum block_id)format, 1);
            matrix_repack_strip(&t.matrix, &t.weight, 0);
            for (int i = 0; i < 3 * 256; i++) t.values[i] = i < 256 ? 1 : i < 512 ? -1 : i % 4 < 2 ? 1 : -1;
            float want[32 * 3], got[32 * 3];
            trial_inputs(&t, &kernels_scalar, 3);
            trial_run(&t, &kernels_scalar, want);
            check_products(&t, want);
            FOR_EACH_SET(k) {
                trial_run(&t, k, got);
                assert_memory_equal(got, want, sizeof got);
            }
            trial_close(&t);
        }
}

static void fill(float *x, int n, float scale, uint64_t seed) {
    uint64_t state = seed * 2 + 1;
    for (int i = 0; i < n; i++) x[i] = random_value(&state) * scale;
}

static void test_quantize(void **state) {
    (void)state;
    float x[9 * 32];
    fill(x, 9 * 32, 3, 1);
    memset(x + 32, 0, 32 * sizeof *x);  // all zero
    x[64 + 5] = NAN;
    x[96 + 31] = -INFINITY;
    fill(x + 128, 32, 1e-38f, 2);       // too small to divide by
    fill(x + 160, 32, 3e29f, 3);
    x[224 + 9] = 1e30f;
    for (int i = 0; i < 32; i++) x[192 + i] = (float)(i - 16) * 0.5f; // ties
    struct activation_block want[9], got[9 * 2];
    kernels_scalar.quantize(x, 9, want, 1);
    for (int b = 0; b < 9; b++) {
        int sum = 0, low = 0;
        for (int i = 0; i < 32; i++) {
            sum += want[b].q[i];
            low += i < 16 ? want[b].q[i] : 0;
            if (b != 2 && b != 3 && b != 7)
                assert_true(fabsf(want[b].q[i] * want[b].scale - x[b * 32 + i]) <= want[b].scale * 0.501f + 1e-30f);
        }
        assert_int_equal(want[b].zero, -8 * sum);
        assert_int_equal(want[b].zero_low, -8 * low);
    }
    assert_true(isnan(want[2].scale) && isnan(want[3].scale) && isnan(want[7].scale));
    assert_true(isnan(want[2].base) && isnan(want[2].minimum));
    FOR_EACH_SET(k) {
        memset(got, 0, sizeof got);
        k->quantize(x, 9, got, 2);
        for (int b = 0; b < 9; b++) {
            assert_memory_equal(got[2 * b].q, want[b].q, 32);
            assert_int_equal(got[2 * b].zero, want[b].zero);
            assert_true(isnan(want[b].scale) ? isnan(got[2 * b].base) : got[2 * b].base == want[b].base);
            assert_int_equal(got[2 * b].zero_low, want[b].zero_low);
            assert_true(isnan(want[b].scale) || got[2 * b].start == want[b].start);
            assert_true(isnan(want[b].scale) ? isnan(got[2 * b].scale) : got[2 * b].scale == want[b].scale);
            assert_true(isnan(want[b].scale) ? isnan(got[2 * b].minimum) : got[2 * b].minimum == want[b].minimum);
        }
    }
}

static double rounding_error(const float *x, float scale) {
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        const double error = x[i] - (double)rintf(x[i] / scale) * scale;
        sum += error * error;
    }
    return sum;
}

// The chosen scales have a smaller error than the usual ones, which map the largest value to 127.
static void test_quantize_chooses_scales(void **state) {
    (void)state;
    double chosen = 0, usual = 0;
    for (int b = 0; b < 2000; b++) {
        float x[32], maximum = 0;
        struct activation_block block;
        fill(x, 32, 1, (uint64_t)b + 1);
        kernels_scalar.quantize(x, 1, &block, 1);
        for (int i = 0; i < 32; i++) maximum = fmaxf(maximum, fabsf(x[i]));
        assert_true(block.scale >= maximum / 127.5f && block.scale <= maximum / 127 * 1.07f);
        for (int i = 0; i < 32; i++) assert_true(fabsf(block.scale * block.q[i] - x[i]) <= block.scale * 0.501f);
        chosen += rounding_error(x, block.scale);
        usual += rounding_error(x, maximum / 127);
    }
    assert_true(chosen < 0.97 * usual);
}

static void test_norms(void **state) {
    (void)state;
    const int sizes[] = {1, 7, 16, 40, 64, 77, 256};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < 3; kind++) { // RMS norm, layer norm without and with bias
            const int n = sizes[i], norm = kind == 0 ? NORM_RMS : NORM_LAYER;
            float x[256], weight[256], shift[256], want[256], got[257], exact[256];
            const float *bias = kind == 2 ? shift : NULL;
            fill(x, n, 2, 3);
            fill(weight, n, 1, 4);
            fill(shift, n, 1, 5);
            for (int j = 0; j < n; j++) x[j] += 1; // a mean to subtract
            kernels_scalar.norm[norm](x, weight, bias, want, n, 1e-5f);
            kernels_exact.norm[norm](x, weight, bias, exact, n, 1e-5f);
            for (int j = 0; j < n; j++) assert_near(want[j], exact[j], 2);
            memcpy(got, x, (size_t)n * sizeof *got); // in place
            kernels_scalar.norm[norm](got, weight, bias, got, n, 1e-5f);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
            FOR_EACH_SET(k) {
                got[n] = 42;
                k->norm[norm](x, weight, bias, got, n, 1e-5f);
                assert_memory_equal(got, want, (size_t)n * sizeof *got);
                memcpy(got, x, (size_t)n * sizeof *got);
                k->norm[norm](got, weight, bias, got, n, 1e-5f);
                assert_memory_equal(got, want, (size_t)n * sizeof *got);
                assert_true(got[n] == 42);
            }
        }
}

// A layer norm and an RMS norm computed by hand.
static void test_norms_by_hand(void **state) {
    (void)state;
    const float x[] = {1, 3}, weight[] = {2, 10}, bias[] = {0.5f, -1};
    float y[2];
    kernels_scalar.norm[NORM_RMS](x, weight, NULL, y, 2, 0);
    assert_near(y[0], 2 / sqrt(5), 2), assert_near(y[1], 30 / sqrt(5), 20);
    kernels_scalar.norm[NORM_LAYER](x, weight, bias, y, 2, 0);
    assert_near(y[0], -1.5, 2), assert_near(y[1], 9, 10);
}

static double activation(enum activation kind, double g, double u) {
    switch (kind) {
    case ACTIVATION_SILU: return g / (1 + exp(-g)) * u;
    case ACTIVATION_GELU: return 0.5 * g * (1 + tanh(0.7978845608028654 * (g + 0.044715 * g * g * g))) * u;
    case ACTIVATION_SILU_CLAMPED: g = fmin(g, 7), u = fmax(-7, fmin(u, 7)); return g / (1 + exp(-1.702 * g)) * (u + 1);
    }
    return NAN;
}

static void test_activations(void **state) {
    (void)state;
    for (int kind = 0; kind < ACTIVATION_KINDS; kind++) {
        float gate[64], up[64], want[64], got[64], exact[64];
        fill(gate, 64, 20, 5);
        fill(up, 64, 12, 6);
        gate[0] = 0, gate[1] = -200, gate[2] = 200, gate[3] = NAN, gate[4] = -87.5f, gate[5] = 1e-30f, up[6] = NAN;
        memcpy(want, gate, sizeof gate);
        memcpy(exact, gate, sizeof gate);
        kernels_scalar.activate[kind](want, up, 64);
        kernels_exact.activate[kind](exact, up, 64);
        for (int i = 0; i < 64; i++) {
            const double value = activation(kind, gate[i], up[i]);
            if (i == 3 || i == 6) {
                assert_true(isnan(want[i]) && isnan(exact[i]));
            } else {
                assert_near(exact[i], value, fabs(value) + 1e-8); // 1 + tanh loses tiny values
                assert_near(want[i], value, fabs(value) + 1e-6 * fabs(gate[i]) + 1e-6);
            }
        }
        FOR_EACH_SET(k) {
            memcpy(got, gate, sizeof gate);
            k->activate[kind](got, up, 64);
            for (int i = 0; i < 64; i++)
                assert_true(i == 3 || i == 6 ? isnan(got[i]) : !memcmp(&got[i], &want[i], sizeof(float)));
        }
    }
}

static void test_softcap(void **state) {
    (void)state;
    float x[48], want[48], got[48], exact[48];
    fill(x, 48, 120, 12);
    x[0] = 0, x[1] = INFINITY, x[2] = -INFINITY, x[3] = NAN, x[4] = 1e-3f;
    memcpy(want, x, sizeof x);
    memcpy(exact, x, sizeof x);
    kernels_scalar.softcap(want, 48, 50);
    kernels_exact.softcap(exact, 48, 50);
    for (int i = 0; i < 48; i++) {
        if (i == 3) continue;
        assert_near(want[i], 50 * tanh(x[i] / 50.0), 50);
        assert_near(exact[i], 50 * tanh(x[i] / 50.0), 1);
    }
    assert_true(isnan(want[3]) && isnan(exact[3]));
    FOR_EACH_SET(k) {
        memcpy(got, x, sizeof x);
        k->softcap(got, 48, 50);
        for (int i = 0; i < 48; i++) assert_true(i == 3 ? isnan(got[i]) : !memcmp(&got[i], &want[i], sizeof(float)));
    }
}

static void test_accumulate(void **state) {
    (void)state;
    const int sizes[] = {1, 15, 16, 77};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int n = sizes[i];
        float x[77], start[77], want[77], exact[77], got[78];
        fill(x, n, 2, 13);
        fill(start, n, 2, 14);
        memcpy(want, start, (size_t)n * sizeof *start);
        memcpy(exact, start, (size_t)n * sizeof *start);
        kernels_scalar.accumulate(want, x, n, 0.3f);
        kernels_exact.accumulate(exact, x, n, 0.3f);
        for (int j = 0; j < n; j++) {
            assert_near(want[j], start[j] + 0.3 * x[j], 2);
            assert_near(exact[j], start[j] + 0.3 * x[j], 2);
        }
        FOR_EACH_SET(k) {
            memcpy(got, start, (size_t)n * sizeof *start);
            got[n] = 42;
            k->accumulate(got, x, n, 0.3f);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
            assert_true(got[n] == 42);
        }
    }
}

static void test_half(void **state) {
    (void)state;
    const int sizes[] = {1, 8, 15, 64, 80};
    for (int type = 0; type < KV_HALVES; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            float x[80];
            uint16_t want[80], got[81];
            fill(x, sizes[i], 100, i);
            if (i > 1) x[3] = INFINITY, x[4] = -NAN, x[5] = 1e-42f, x[6] = 3.4e38f, x[7] = 1 + 0x1p-8f; // ties and ends
            kernels_scalar.to_half[type](x, want, sizes[i]);
            const float stored = type == KV_F16 ? f16_to_f32(want[0]) : bf16_to_f32(want[0]);
            assert_true(fabsf(stored - x[0]) <= fabsf(x[0]) / (type == KV_F16 ? 2048 : 256));
            FOR_EACH_SET(k) {
                got[sizes[i]] = 42;
                k->to_half[type](x, got, sizes[i]);
                assert_memory_equal(got, want, (size_t)sizes[i] * sizeof *got);
                assert_int_equal(got[sizes[i]], 42);
            }
        }
    uint16_t edges[4];
    kernels_scalar.to_half[KV_BF16]((const float[]){1 + 0x1p-8f, 1 + 0x3p-8f, NAN, 3.4e38f}, edges, 4);
    assert_true(bf16_to_f32(edges[0]) == 1 && bf16_to_f32(edges[1]) == 1 + 0x1p-6f); // halves to even
    assert_true(isnan(bf16_to_f32(edges[2])) && isinf(bf16_to_f32(edges[3])));
}

// --- attention over pages --------------------------------------------------------------------------------------------

enum { PAGE_ROWS = 19, PAGE_SIZE = 96, PAGES = KV_BLOCK_PAGES };

// Pages of one head in a layout, and the values stored in them.
struct stored_pages {
    struct kv_layout layout;
    uint8_t *keys[PAGES], *values[PAGES];
    float key[PAGES * 32][PAGE_SIZE], value[PAGES * 32][PAGE_SIZE];
};

static void pages_open(struct stored_pages *s, int type, const struct cpu_kernels *k, int size, int n_slots) {
    float scratch[4 * PAGE_SIZE];
    s->layout = kv_layout_of((enum kv_type)type, false, size);
    assert_true(kv_store_scratch(size) <= sizeof scratch / sizeof *scratch);
    for (int p = 0; p < PAGES; p++) {
        s->keys[p] = memset(xmalloc(s->layout.key_bytes), 0xFF, s->layout.key_bytes); // NaN, as values and as scales
        s->values[p] = memset(xmalloc(s->layout.value_bytes), 0xFF, s->layout.value_bytes);
    }
    for (int t = 0; t < n_slots; t++) {
        fill(s->key[t], size, 1, 100 + (uint64_t)t);
        fill(s->value[t], size, 1 + t % 7, 300 + (uint64_t)t);
        kv_store(&s->layout, k, s->keys[t / 32], s->values[t / 32], t % 32, s->key[t], s->value[t], scratch);
    }
}

static void pages_close(struct stored_pages *s) {
    for (int p = 0; p < PAGES; p++) free(s->keys[p]), free(s->values[p]);
}

// Every instruction set stores the same bytes.
static void test_store(void **state) {
    (void)state;
    const int sizes[] = {32, 48, 80, 96};
    for (int type = 0; type < KV_TYPES; type++)
        for (int i = 0; i < 4; i++) {
            struct stored_pages want, got;
            pages_open(&want, type, &kernels_scalar, sizes[i], 45);
            FOR_EACH_SET(k) {
                pages_open(&got, type, k, sizes[i], 45);
                for (int p = 0; p < PAGES; p++) {
                    assert_memory_equal(got.keys[p], want.keys[p], want.layout.key_bytes);
                    assert_memory_equal(got.values[p], want.values[p], want.layout.value_bytes);
                }
                pages_close(&got);
            }
            pages_close(&want);
        }
}

// Largest error of a stored value relative to the largest of its 32.
static const double store_error[KV_TYPES] = {[KV_F16] = 1e-3, [KV_BF16] = 8e-3, [KV_Q8_0] = 6e-3, [KV_Q4_0] = 8e-2};

static void test_half_scores(void **state) {
    (void)state;
    for (int type = 0; type < KV_HALVES; type++) {
        struct stored_pages s;
        float queries[PAGE_ROWS * 80], want[PAGE_ROWS * 32], got[PAGE_ROWS * 32];
        pages_open(&s, type, &kernels_scalar, 80, 32);
        fill(queries, PAGE_ROWS * 80, 1, 9);
        for (int rows = 1; rows <= PAGE_ROWS; rows++) {
            struct scoring scoring = {(const uint16_t *)(const void *)s.keys[0], s.keys[1], 80, rows, queries, want};
            kernels_scalar.half_scores[type](&scoring);
            double sum = 0;
            for (int d = 0; d < 80; d++) sum += (double)queries[(rows - 1) * 80 + d] * s.key[5][d];
            assert_true(fabs(want[(rows - 1) * 32 + 5] - sum) < 80 * store_error[type]);
            scoring.out = got;
            FOR_EACH_SET(k) {
                k->half_scores[type](&scoring);
                assert_memory_equal(got, want, (size_t)rows * 32 * sizeof *got);
            }
        }
        pages_close(&s);
    }
}

// Slots outside [first, end) hold NaN and have weight 0.
static void test_weigh(void **state) {
    (void)state;
    const struct { int n_pages, first, end; } cases[] = {{1, 0, 1}, {1, 3, 32}, {4, 0, 128}, {4, 40, 101}, {3, 70, 71}};
    for (int type = 0; type < KV_TYPES; type++)
        for (int c = 0; c < 5; c++) {
            static float weights[PAGES * PAGE_ROWS * 32], start[PAGE_ROWS * PAGE_SIZE];
            float want[PAGE_ROWS * PAGE_SIZE], got[PAGE_ROWS * PAGE_SIZE];
            struct stored_pages s;
            pages_open(&s, type, &kernels_scalar, PAGE_SIZE, cases[c].end);
            fill(start, PAGE_ROWS * PAGE_SIZE, 1, 10);
            fill(weights, PAGES * PAGE_ROWS * 32, 1, 11);
            for (int i = 0; i < PAGES * PAGE_ROWS * 32; i++) {
                const int slot = i / (PAGE_ROWS * 32) * 32 + i % 32;
                weights[i] = slot >= cases[c].first && slot < cases[c].end ? fabsf(weights[i]) : 0;
            }
            struct weighing w = {.n_pages = cases[c].n_pages, .first = cases[c].first, .end = cases[c].end,
                                 .size = PAGE_SIZE, .weights = weights, .page_stride = PAGE_ROWS * 32};
            for (int p = 0; p < PAGES; p++) w.pages[p] = s.values[p], w.ahead[p] = s.values[(p + 1) % PAGES];
            for (w.rows = 1; w.rows <= PAGE_ROWS; w.rows++) {
                w.out = memcpy(want, start, sizeof start);
                kernels_scalar.weigh[type](&w);
                for (int d = 0; d < PAGE_SIZE; d++) {
                    double sum = start[(w.rows - 1) * PAGE_SIZE + d], most = 1e-3;
                    for (int t = cases[c].first; t < cases[c].end; t++) {
                        const double weight = weights[t / 32 * PAGE_ROWS * 32 + (w.rows - 1) * 32 + t % 32];
                        sum += weight * s.value[t][d];
                        most += (weight + 1.0 / 255) * 7;
                    }
                    assert_true(fabs(want[(w.rows - 1) * PAGE_SIZE + d] - sum) < most * store_error[type]);
                }
                FOR_EACH_SET(k) {
                    w.out = memcpy(got, start, sizeof start);
                    k->weigh[type](&w);
                    assert_memory_equal(got, want, sizeof got);
                }
            }
            pages_close(&s);
        }
}

// A visible NaN yields NaN, in every type.
static void test_weigh_nan(void **state) {
    (void)state;
    for (int type = 0; type < KV_TYPES; type++) {
        struct stored_pages s;
        float weights[32] = {0.5f, 0.25f}, out[32] = {0}, scratch[4 * 32];
        const float key[32] = {1}, value[32] = {[7] = NAN};
        pages_open(&s, type, &kernels_scalar, 32, 1);
        kv_store(&s.layout, &kernels_scalar, s.keys[0], s.values[0], 1, key, value, scratch);
        struct weighing w = {.pages = {s.values[0]}, .ahead = {s.values[1]}, .n_pages = 1, .end = 2, .rows = 1,
                             .size = 32, .weights = weights, .page_stride = 32, .out = out};
        kernels_scalar.weigh[type](&w);
        assert_true(isnan(out[7]));
        FOR_EACH_SET(k) {
            memset(out, 0, sizeof out);
            k->weigh[type](&w);
            assert_true(isnan(out[7]));
        }
        pages_close(&s);
    }
}

static void test_softmax(void **state) {
    (void)state;
    enum { STRIDE = 64 };
    for (int i = 0; i < 4 * 129 * 11; i++) {
        const int n_pages = 1 + i % 4, first = i / 4 % 129, end = i / 516 * 13;
        if (first >= end || end > n_pages * 32) continue;
        float scores[PAGES * STRIDE], want[PAGES * STRIDE], got[PAGES * STRIDE];
        struct softmax before = {i % 3 ? 4 : -INFINITY, i % 3 ? 1.5f : 0}, reference = before, other;
        fill(scores, PAGES * STRIDE, 10, 11 + (uint64_t)i);
        double top = before.maximum, sum;
        for (int t = 0; t < n_pages * 32; t++) {
            float *score = &scores[t / 32 * STRIDE + t % 32];
            if (t < first || t >= end) *score = NAN; // stale slots may yield anything
            else top = fmax(top, *score);
        }
        sum = before.sum * exp(before.maximum - top);
        memcpy(want, scores, sizeof scores);
        const float correction = kernels_scalar.softmax(want, STRIDE, n_pages, first, end, &reference);
        for (int t = 0; t < n_pages * 32; t++) {
            const int at = t / 32 * STRIDE + t % 32;
            if (t < first || t >= end) {
                assert_true(want[at] == 0);
                continue;
            }
            assert_near(want[at], exp(scores[at] - top), 1);
            sum += exp(scores[at] - top);
        }
        assert_near(reference.sum, sum, 2 * sum);
        assert_near(correction, exp(before.maximum - top), 1);
        FOR_EACH_SET(k) {
            memcpy(got, scores, sizeof scores);
            other = before;
            assert_true(k->softmax(got, STRIDE, n_pages, first, end, &other) == correction);
            for (int p = 0; p < n_pages; p++)
                assert_memory_equal(got + p * STRIDE, want + p * STRIDE, 32 * sizeof *got);
            assert_memory_equal(&other, &reference, sizeof other);
        }
    }
}

// Merging two parts of a query's keys gives the same as both at once; the first part may be empty.
static void test_softmax_merge(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        float start[32], part_sum[32], want[32], got[32];
        const struct softmax before = {i ? (float)(5 * i) : -INFINITY, i ? 2 : 0}, part = {7, 3};
        struct softmax reference = before, other;
        fill(start, 32, i ? 1 : 0, 1);
        fill(part_sum, 32, 1, 2);
        memcpy(want, start, sizeof start);
        kernels_scalar.softmax_merge(&reference, want, &part, part_sum, 32);
        const double top = fmax(before.maximum, 7), keep = exp(before.maximum - top), take = exp(7 - top);
        assert_true(reference.maximum == (float)top);
        assert_near(reference.sum, before.sum * keep + 3 * take, 5);
        for (int d = 0; d < 32; d++) assert_near(want[d], start[d] * keep + part_sum[d] * take, 2);
        FOR_EACH_SET(k) {
            memcpy(got, start, sizeof start);
            other = before;
            k->softmax_merge(&other, got, &part, part_sum, 32);
            assert_memory_equal(got, want, sizeof got);
            assert_memory_equal(&other, &reference, sizeof other);
        }
    }
}

static void test_kernels_find(void **state) {
    (void)state;
    setenv("CONFAB_CPU", "scalar", 1);
    assert_ptr_equal(kernels_choose(), &kernels_scalar);
    setenv("CONFAB_CPU", "a typewriter", 1);
    const struct cpu_kernels *best = kernels_choose();
    unsetenv("CONFAB_CPU");
    assert_ptr_equal(kernels_choose(), best);
    assert_null(kernels_find("a typewriter"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalar_products), cmocka_unit_test(test_exact_products),
        cmocka_unit_test(test_products_agree),  cmocka_unit_test(test_many_inputs_agree),
        cmocka_unit_test(test_columns_do_not_matter),
        cmocka_unit_test(test_extremes),        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_quantize_chooses_scales),
        cmocka_unit_test(test_norms),           cmocka_unit_test(test_norms_by_hand),
        cmocka_unit_test(test_activations),     cmocka_unit_test(test_softcap),
        cmocka_unit_test(test_accumulate),      cmocka_unit_test(test_half),
        cmocka_unit_test(test_store),           cmocka_unit_test(test_half_scores),
        cmocka_unit_test(test_weigh),           cmocka_unit_test(test_weigh_nan),
        cmocka_unit_test(test_softmax),         cmocka_unit_test(test_softmax_merge),
        cmocka_unit_test(test_kernels_find),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
