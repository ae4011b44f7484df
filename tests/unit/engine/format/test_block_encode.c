// Block encoders: exact if possible, close to the optimum of an exhaustive search, and robust at the limits of the
// range.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/format/block_encode.h"

enum { N = 256, BLOCKS = 40 };

static uint64_t random_state;

static double uniform(void) { // in (0, 1)
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(random_state >> 11) + 0.5) * 0x1p-53;
}

static double gaussian(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

// Typical weights: normal, heavy-tailed, with outliers, uniform, all of one sign.
enum shape { BELL, HEAVY, OUTLIERS, EVEN, ONE_SIGN, SHAPES };

static void fill(float *x, int n, enum shape shape, uint64_t seed) {
    random_state = seed * 77 + (uint64_t)shape;
    for (int i = 0; i < n; i++) {
        double v = gaussian();
        if (shape == HEAVY) v = v * v * v;
        if (shape == OUTLIERS && uniform() < 0.02) v *= 12;
        if (shape == EVEN) v = 2 * uniform() - 1;
        if (shape == ONE_SIGN) v = fabs(v) + 1;
        x[i] = (float)(0.03 * v);
    }
}

static double squared(const float *x, const float *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return sum;
}

static void there_and_back(enum block_id format, const float *x, size_t n, float *y) {
    static uint8_t blocks[4 * 8192 + 1];
    uint8_t *odd = blocks + 1; // unaligned blocks
    block_encoders[format](x, n, odd);
    memmove(blocks, odd, n / block_formats[format].elements * block_formats[format].bytes);
    block_formats[format].decode(blocks, y, n);
}

// ---- exact ----

static void float_formats_round_correctly(void **state) {
    (void)state;
    float x[N], y[N];
    fill(x, N, HEAVY, 1);
    there_and_back(BLOCK_F32, x, N, y);
    assert_memory_equal(x, y, sizeof x);
    there_and_back(BLOCK_F16, x, N, y);
    for (int i = 0; i < N; i++) assert_true(y[i] == f16_to_f32(f16_from_f32(x[i])));
    there_and_back(BLOCK_BF16, x, N, y);
    for (int i = 0; i < N; i++) assert_true(fabsf(y[i] - x[i]) <= fabsf(x[i]) / 256);
    assert_int_equal(bf16_from_f32(1.0f), 0x3f80);
    assert_int_equal(bf16_from_f32(1 + 0x1p-8f), 0x3f80); // ties to even
    assert_int_equal(bf16_from_f32(1 + 0x1.8p-7f), 0x3f82);
    assert_int_equal(bf16_from_f32(-0x1.fffffep127f), 0xff80);
    assert_true(isnan(bf16_to_f32(bf16_from_f32(NAN))));
}

// A block that uses the whole range of its format: codes at both ends, a part with the largest scale and minimum.
static void random_codes(enum block_id format, uint8_t *block) {
    const struct block_format *f = &block_formats[format];
    const uint16_t d = f16_from_f32(0.0078125f * (float)(1 + uniform())), m = f16_from_f32(-0.0625f);
    for (size_t i = 0; i < f->bytes; i++) block[i] = (uint8_t)(uniform() * 256);
    switch (format) {
    case BLOCK_Q8_0:
        for (int i = 0; i < 32; i++)
            if (block[2 + i] == 128) block[2 + i] = 129;
        block[2 + 7] = 129; // −127
        break;
    case BLOCK_Q4_0: block[2 + 5] &= 0xf0; break; // −8
    case BLOCK_Q5_0: block[6 + 5] &= 0xf0, block[2] &= (uint8_t) ~(1 << 5); break;
    case BLOCK_IQ4_NL: block[2 + 5] &= 0xf0; break;
    case BLOCK_MXFP4: block[0] = (uint8_t)(100 + uniform() * 40), block[1] = 0x7f; return;
    case BLOCK_Q4_1: block[4] = 0xf0, memcpy(block + 2, &m, 2); break;
    default: block[8] = 0xf0, block[4] = 2, memcpy(block + 2, &m, 2); break; // Q5_1
    }
    memcpy(block, &d, 2);
}

static void blocks_of_32_come_back(void **state) {
    (void)state;
    static const enum block_id formats[] = {BLOCK_Q8_0, BLOCK_Q4_0, BLOCK_Q5_0, BLOCK_IQ4_NL, BLOCK_MXFP4, BLOCK_Q4_1};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (int i = 0; i < BLOCKS; i++) {
            uint8_t block[64];
            float x[32], y[32];
            random_state = (uint64_t)i;
            random_codes(formats[f], block);
            block_formats[formats[f]].decode(block, x, 32);
            there_and_back(formats[f], x, 32, y);
            for (int j = 0; j < 32; j++)
                if (x[j] != y[j])
                    fail_msg("%s, block %d: %g became %g", block_formats[formats[f]].name, i, (double)x[j],
                             (double)y[j]);
        }
}

// Encoding a second time changes almost nothing.
static void encoding_again_loses_almost_nothing(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
        for (enum shape shape = 0; shape < SHAPES && block_encoders[format]; shape++) {
            float x[N], y[N], z[N];
            fill(x, N, shape, 3);
            there_and_back((enum block_id)format, x, N, y);
            there_and_back((enum block_id)format, y, N, z);
            double first = squared(x, y, N), second = squared(y, z, N);
            if (!(second <= 0.35 * first)) fail_msg("%s: %g, then %g", block_formats[format].name, first, second);
        }
}

// ---- close to the optimum ----

static int code_of(enum block_id format, int i) { // code i of the format; the largest index is code_count − 1
    switch (format) {
    case BLOCK_Q8_0: return i - 127;
    case BLOCK_Q4_0: return i - 8;
    case BLOCK_Q5_0: return i - 16;
    default: return iq4_values[i];
    }
}

static double error_under(enum block_id format, int n_codes, const float *x, double scale) {
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        double best = INFINITY;
        if (format == BLOCK_Q8_0) { // too many codes to try them all
            double q = fmin(fmax(rint(x[i] / scale), -127), 127);
            best = fabs(x[i] - scale * q);
        }
        for (int c = 0; c < n_codes && format != BLOCK_Q8_0; c++)
            best = fmin(best, fabs(x[i] - scale * code_of(format, c)));
        sum += best * best;
    }
    return sum;
}

// Every half from 0.4 to 2.5 times the scale that maps the largest weight to the outermost code, of either sign.
static double exhaustive(enum block_id format, int n_codes, const float *x) {
    float largest = 0;
    for (int i = 0; i < 32; i++) largest = fmaxf(largest, fabsf(x[i]));
    largest /= (float)-code_of(format, 0);
    double best = INFINITY;
    for (uint32_t half = f16_from_f32(0.4f * largest); half <= f16_from_f32(2.5f * largest); half++) {
        double scale = (double)f16_to_f32((uint16_t)half);
        best = fmin(best, fmin(error_under(format, n_codes, x, scale), error_under(format, n_codes, x, -scale)));
    }
    return best;
}

static void scales_are_close_to_the_optimum(void **state) {
    (void)state;
    static const struct {
        enum block_id format;
        int n_codes;
        double most; // maximum error relative to the optimum
    } formats[] = {{BLOCK_Q4_0, 16, 1.02}, {BLOCK_Q5_0, 32, 1.04}, {BLOCK_IQ4_NL, 16, 1.02}, {BLOCK_Q8_0, 255, 1.25}};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (enum shape shape = 0; shape < SHAPES; shape++) {
            double error = 0, least = 0;
            for (int i = 0; i < 12; i++) {
                float x[32], y[32];
                fill(x, 32, shape, (uint64_t)i);
                there_and_back(formats[f].format, x, 32, y);
                error += squared(x, y, 32);
                least += exhaustive(formats[f].format, formats[f].n_codes, x);
            }
            if (!(error <= formats[f].most * least) || !(error >= 0.999 * least))
                fail_msg("%s, shape %d: %g times the least error", block_formats[formats[f].format].name, shape,
                         error / least);
        }
}

// All 255 powers of two, with every code.
static void powers_of_two_are_optimal(void **state) {
    (void)state;
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (int i = 0; i < BLOCKS; i++) {
            float x[32], y[32];
            double best = INFINITY;
            fill(x, 32, shape, (uint64_t)i);
            for (int e = 0; e < 255; e++) {
                double sum = 0;
                for (int j = 0; j < 32; j++) {
                    double least = INFINITY;
                    for (int c = 0; c < 16; c++) least = fmin(least, fabs(x[j] - ldexp(fp4_values[c], e - 128)));
                    sum += least * least;
                }
                best = fmin(best, sum);
            }
            there_and_back(BLOCK_MXFP4, x, 32, y);
            double error = squared(x, y, 32);
            if (!(error <= best * (1 + 1e-6))) fail_msg("%g, but %g is possible", error, best);
        }
}

// Relative errors for normal weights; an exhaustive search is not feasible for these formats.
static void errors_are_small(void **state) {
    (void)state;
    static const struct {
        enum block_id format;
        double most;
    } formats[] = {{BLOCK_Q2_K, 0.075},  {BLOCK_Q3_K, 0.024},    {BLOCK_Q4_K, 0.0052}, {BLOCK_Q5_K, 0.0013},
                   {BLOCK_Q6_K, 3.1e-4}, {BLOCK_IQ4_XS, 0.0056}, {BLOCK_Q4_1, 0.0053}, {BLOCK_Q5_1, 0.0012}};
    static float x[8192], y[8192], zero[8192];
    fill(x, 8192, BELL, 5);
    double power = squared(x, zero, 8192);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        there_and_back(formats[f].format, x, 8192, y);
        double error = squared(x, y, 8192) / power;
        if (!(error <= formats[f].most)) fail_msg("%s: %g", block_formats[formats[f].format].name, error);
    }
}

// ---- the ends of the range ----

static void zeros_stay_zeros(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        float x[N] = {0}, y[N];
        if (!block_encoders[format]) continue;
        for (int i = 0; i < N; i += 2) x[i] = -0.0f;
        there_and_back((enum block_id)format, x, N, y);
        for (int i = 0; i < N; i++) assert_true(y[i] == 0);
    }
}

// From the smallest float to the largest: always finite, never worse than zeros, and as good as anywhere else while
// scales are normal halves.
static void every_magnitude_is_encoded(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++) {
        bool floats = block_formats[format].elements == 1;
        for (int exponent = -149; exponent <= 127 && block_encoders[format] && !floats; exponent++)
            for (enum shape shape = 0; shape < SHAPES; shape++) {
                float x[N], y[N], zero[N] = {0};
                fill(x, N, shape, (uint64_t)(exponent + 200));
                for (int i = 0; i < N; i++) x[i] = fmaxf(fminf(ldexpf(x[i], exponent), FLT_MAX), -FLT_MAX);
                there_and_back((enum block_id)format, x, N, y);
                for (int i = 0; i < N; i++) assert_true(isfinite(y[i]));
                double error = squared(x, y, N), power = squared(x, zero, N);
                bool normal = exponent > 1 && exponent < 12;
                if (!(error <= power * (normal ? 0.1 : 1 + 1e-9)))
                    fail_msg("%s, 2^%d: error %g of %g", block_formats[format].name, exponent, error, power);
            }
    }
}

static void f16_has_infinities(void **state) {
    (void)state;
    float x[2] = {65504, 1e6f}, y[2];
    there_and_back(BLOCK_F16, x, 2, y);
    assert_true(y[0] == 65504 && isinf(y[1]));
}

// One outlier, in every position.
static void outliers_are_preserved(void **state) {
    (void)state;
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
        for (int place = 0; place < N && block_encoders[format]; place += 17) {
            float x[N], y[N];
            fill(x, N, BELL, 9);
            x[place] = place % 2 ? 5 : -5;
            there_and_back((enum block_id)format, x, N, y);
            assert_true(fabsf(y[place] - x[place]) < 1.7f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_formats_round_correctly),
        cmocka_unit_test(blocks_of_32_come_back),
        cmocka_unit_test(encoding_again_loses_almost_nothing),
        cmocka_unit_test(scales_are_close_to_the_optimum),
        cmocka_unit_test(powers_of_two_are_optimal),
        cmocka_unit_test(errors_are_small),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(every_magnitude_is_encoded),
        cmocka_unit_test(f16_has_infinities),
        cmocka_unit_test(outliers_are_preserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
