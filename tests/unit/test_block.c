// Block formats: conversions, hand-computed blocks, and real files against their F32 original.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/format/gguf.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_blocks.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// ---- half precision ----

// The value of a half as the standard defines it, by other means than the code under test.
static double half_value(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double magnitude = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void every_half_converts_exactly_and_back(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float value = f16_to_f32((uint16_t)h);
        bool special = (h >> 10 & 31) == 31, is_nan = special && (h & 1023);
        if (is_nan) {
            assert_true(isnan(value));
            assert_true(isnan(f16_to_f32(f16_from_f32(value))));
        } else {
            if (special)
                assert_true(isinf(value) && (value < 0) == (h >> 15));
            else
                assert_true((double)value == half_value((uint16_t)h));
            assert_int_equal(bits_of(value) >> 31, h >> 15); // also of zero
            assert_int_equal(f16_from_f32(value), h);
        }
    }
}

// Between two neighbouring halves everything goes to the nearer one, the middle to the even one.
static void halves_round_to_nearest_even(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float low = f16_to_f32((uint16_t)h), high = f16_to_f32((uint16_t)(h + 1)), middle = low + (high - low) / 2;
        assert_int_equal(f16_from_f32(middle), h % 2 ? h + 1 : h);
        assert_int_equal(f16_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(f16_from_f32(nextafterf(middle, high)), h + 1);
        assert_int_equal(f16_from_f32(-nextafterf(middle, high)), (h + 1) | 0x8000);
    }
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520), 0x7c00);
    assert_int_equal(f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(f16_from_f32(-3e38f), 0xfc00);
    assert_int_equal(f16_from_f32(0x1p-25f), 0);
    assert_int_equal(f16_from_f32(0x1.8p-25f), 1);
    assert_int_equal(f16_from_f32(0x1p-140f), 0);
    assert_int_equal(f16_from_f32(-0.0f), 0x8000);
}

static void bfloats_are_the_upper_half_of_a_float(void **state) {
    (void)state;
    assert_true(bf16_to_f32(0x3f80) == 1);
    assert_true(bf16_to_f32(0xc0a0) == -5);
    assert_true(bf16_to_f32(0x0001) == 0x1p-133f); // subnormal
    assert_true(isinf(bf16_to_f32(0x7f80)));
    assert_true(isnan(bf16_to_f32(0x7fc0)));
}

// ---- the table ----

static void formats_are_found_by_their_type(void **state) {
    (void)state;
    for (int i = 0; i < BLOCK_FORMAT_COUNT; i++) {
        const struct block_format *f = &block_formats[i];
        assert_int_equal(f->id, i);
        assert_ptr_equal(block_format_find(f->gguf_type), f);
        assert_string_equal(block_format_known_name(f->gguf_type), f->name);
        assert_non_null(f->decode);
    }
    assert_null(block_format_find(39));
    assert_null(block_format_find(UINT32_MAX));
}

static void unsupported_types_have_names_too(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
    } known[] = {{3, "Q4_1"},           {4, "Q4_2 (removed)"},
                 {5, "Q4_3 (removed)"}, {6, "Q5_0"},
                 {7, "Q5_1"},           {9, "Q8_1"},
                 {10, "Q2_K"},          {11, "Q3_K"},
                 {13, "Q5_K"},          {15, "Q8_K"},
                 {16, "IQ2_XXS"},       {20, "IQ4_NL"},
                 {23, "IQ4_XS"},        {24, "I8"},
                 {28, "F64"},           {29, "IQ1_M"},
                 {34, "TQ1_0"},         {31, "Q4_0_4_4 (removed)"},
                 {39, "MXFP4"},         {40, "NVFP4"},
                 {35, "TQ2_0"},         {38, "IQ4_NL_8_8 (removed)"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(block_format_known_name(known[i].type), known[i].name);
    assert_null(block_format_known_name(41));
    assert_null(block_format_known_name(UINT32_MAX));
}

// ---- blocks by hand ----

static void plain_formats_decode(void **state) {
    (void)state;
    float out[3];
    block_formats[BLOCK_F32].decode((float[]){1.5f, -2, 0}, out, 3);
    assert_true(out[0] == 1.5f && out[1] == -2 && out[2] == 0);
    block_formats[BLOCK_F16].decode((uint16_t[]){0x3c00, 0xc000, 0x0001}, out, 3);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24f);
    block_formats[BLOCK_BF16].decode((uint16_t[]){0x3f80, 0xc000, 0x4049}, out, 3);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 3.140625f);
}

static void q8_0_by_hand(void **state) {
    (void)state;
    struct block_q8_0 b[2] = {{.d = 0x3800}, {.d = 0xc000}}; // 0.5 and −2
    float out[64];
    for (int j = 0; j < 32; j++) b[0].q[j] = (int8_t)(j - 16), b[1].q[j] = (int8_t)(j == 31 ? -128 : 127 - j);
    block_formats[BLOCK_Q8_0].decode(b, out, 64);
    for (int j = 0; j < 32; j++) assert_true(out[j] == 0.5f * (float)(j - 16));
    for (int j = 0; j < 31; j++) assert_true(out[32 + j] == -2.0f * (float)(127 - j));
    assert_true(out[63] == 256);
}

static void q4_0_by_hand(void **state) {
    (void)state;
    struct block_q4_0 b = {.d = 0x4000}; // 2
    float out[32];
    for (int j = 0; j < 16; j++) b.q[j] = (uint8_t)(j | (15 - j) << 4);
    block_formats[BLOCK_Q4_0].decode(&b, out, 32);
    for (int j = 0; j < 16; j++) {
        assert_true(out[j] == 2 * (float)(j - 8));
        assert_true(out[j + 16] == 2 * (float)(7 - j));
    }
}

// Scales 60, 1, 2, 3, 33, 5, 6, 63 and minima 0, 9, 10, 63, 12, 45, 14, 15 packed by hand.
static const uint8_t packed[12] = {60 | 2 << 6, 1 | 0 << 6,  2 | 0 << 6,  3 | 3 << 6,  0 | 0 << 6,  9 | 2 << 6,
                                   10 | 0 << 6, 63 | 0 << 6, 1 | 12 << 4, 5 | 13 << 4, 6 | 14 << 4, 15 | 15 << 4};
static const uint8_t unpacked_scales[8] = {60, 1, 2, 3, 33, 5, 6, 63};
static const uint8_t unpacked_minima[8] = {0, 9, 10, 63, 12, 45, 14, 15};

static void q4_k_scales_unpack(void **state) {
    (void)state;
    for (int j = 0; j < 8; j++) {
        uint8_t scale, min;
        q4_k_scale_min(packed, j, &scale, &min);
        assert_int_equal(scale, unpacked_scales[j]);
        assert_int_equal(min, unpacked_minima[j]);
    }
}

static void q4_k_by_hand(void **state) {
    (void)state;
    struct block_q4_k b = {.d = 0x3c00, .dmin = 0x3800}; // 1 and 0.5
    float out[256];
    memcpy(b.scales, packed, sizeof packed);
    for (int i = 0; i < 128; i++) b.q[i] = (uint8_t)(i % 16 | (15 - i % 7) << 4);
    block_formats[BLOCK_Q4_K].decode(&b, out, 256);
    for (int k = 0; k < 4; k++)
        for (int l = 0; l < 32; l++) {
            int low = (32 * k + l) % 16, high = 15 - (32 * k + l) % 7;
            assert_true(out[64 * k + l] == (float)(unpacked_scales[2 * k] * low) - 0.5f * unpacked_minima[2 * k]);
            assert_true(out[64 * k + 32 + l] ==
                        (float)(unpacked_scales[2 * k + 1] * high) - 0.5f * unpacked_minima[2 * k + 1]);
        }
}

// One element at a time is given a value; its place follows from the format's definition, written out by hand.
static void q6_k_by_hand(void **state) {
    (void)state;
    static const struct {
        int element, ql, nibble, qh, shift;
    } places[] = {{0, 0, 0, 0, 0},     {31, 31, 0, 31, 0},   {32, 32, 0, 0, 2},   {63, 63, 0, 31, 2},
                  {64, 0, 4, 0, 4},    {95, 31, 4, 31, 4},   {96, 32, 4, 0, 6},   {127, 63, 4, 31, 6},
                  {128, 64, 0, 32, 0}, {170, 106, 0, 42, 2}, {200, 72, 4, 40, 4}, {255, 127, 4, 63, 6}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct block_q6_k b = {.d = 0x3800}; // 0.5
        float out[256];
        for (int j = 0; j < 16; j++) b.scales[j] = (int8_t)(j - 8);
        int q = 43; // 11 in the low bits, 2 in the high ones
        b.ql[places[i].ql] = (uint8_t)(11 << places[i].nibble);
        b.qh[places[i].qh] = (uint8_t)(2 << places[i].shift);
        block_formats[BLOCK_Q6_K].decode(&b, out, 256);
        for (int e = 0; e < 256; e++)
            assert_true(out[e] == 0.5f * (float)(e / 16 - 8) * (float)((e == places[i].element ? q : 0) - 32));
    }
}

// ---- quantised and back ----

// The most that a format may be off, as a share of the largest value of a block of normal numbers.
static const double tolerance[BLOCK_FORMAT_COUNT] = {
    [BLOCK_F32] = 0,     [BLOCK_F16] = 0.0005, [BLOCK_BF16] = 0.004, [BLOCK_Q8_0] = 0.0045,
    [BLOCK_Q4_0] = 0.07, [BLOCK_Q4_K] = 0.08,  [BLOCK_Q6_K] = 0.025,
};

static void the_tests_own_quantiser_agrees_with_the_decoders(void **state) {
    (void)state;
    enum { N = 1024 };
    float values[N], back[N];
    uint64_t random = 99;
    for (int i = 0; i < N; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        values[i] = (float)((double)(random >> 40) * 0x1p-23 - 1);
    }
    for (int f = 0; f < BLOCK_FORMAT_COUNT; f++) {
        _Alignas(16) unsigned char blocks[4 * N];
        tiny_quantise((enum block_id)f, values, N, blocks);
        block_formats[f].decode(blocks, back, N);
        for (int i = 0; i < N; i++) assert_true(fabs((double)values[i] - (double)back[i]) <= tolerance[f]);
    }
}

// ---- real files ----

static float *decoded(const struct gguf *g, const char *name, size_t *n) {
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    assert_non_null(t);
    *n = t->dims[0] * t->dims[1];
    float *values = xmalloc(*n * sizeof *values);
    t->format->decode(t->data, values, *n);
    return values;
}

// The error of a tensor against the original, as a share of its own mean square.
static double relative_error(const struct gguf *g, const struct gguf *original, const char *name) {
    size_t n, m;
    float *values = decoded(g, name, &n), *exact = decoded(original, name, &m);
    assert_int_equal(n, m);
    double error = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = (double)values[i] - (double)exact[i];
        error += difference * difference, square += (double)exact[i] * (double)exact[i];
    }
    free(values);
    free(exact);
    return error / square;
}

// What each format leaves of a normal distribution is known within a few percent.
static const struct {
    const char *file;
    enum block_id format;
    double low, high;
} files[] = {
    {"models/tiny-llama-f16.gguf", BLOCK_F16, 4.0e-8, 4.7e-8},
    {"models/tiny-llama-bf16.gguf", BLOCK_BF16, 2.5e-6, 3.0e-6},
    {"models/tiny-llama-q8_0.gguf", BLOCK_Q8_0, 2.6e-5, 3.1e-5},
    {"models/tiny-llama-q4_0.gguf", BLOCK_Q4_0, 6.7e-3, 8.0e-3},
    {"models/tiny-llama-q4_k.gguf", BLOCK_Q4_K, 4.7e-3, 5.5e-3},
    {"models/tiny-llama-q6_k.gguf", BLOCK_Q6_K, 2.9e-4, 3.4e-4},
};

static void quantised_files_come_close_to_their_original(void **state) {
    (void)state;
    struct status st = {0};
    struct gguf original, g;
    assert_true(gguf_open(&original, shared_file("models/tiny-llama-f32.gguf"), &st));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_true(gguf_open(&g, shared_file(files[i].file), &st));
        int compared = 0;
        for (uint64_t k = 0; k < g.n_tensors; k++) {
            char name[128];
            snprintf(name, sizeof name, "%.*s", (int)g.tensors[k].name.size, g.tensors[k].name.data);
            double error = relative_error(&g, &original, name);
            if (g.tensors[k].format->id == BLOCK_F32) assert_true(error == 0);
            if (g.tensors[k].format->id != files[i].format) continue;
            if (error < files[i].low || error > files[i].high) fail_msg("%s, %s: %g", files[i].file, name, error);
            compared++;
        }
        assert_true(compared >= 20);
        gguf_close(&g);
    }
    gguf_close(&original);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_converts_exactly_and_back),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(bfloats_are_the_upper_half_of_a_float),
        cmocka_unit_test(formats_are_found_by_their_type),
        cmocka_unit_test(unsupported_types_have_names_too),
        cmocka_unit_test(plain_formats_decode),
        cmocka_unit_test(q8_0_by_hand),
        cmocka_unit_test(q4_0_by_hand),
        cmocka_unit_test(q4_k_scales_unpack),
        cmocka_unit_test(q4_k_by_hand),
        cmocka_unit_test(q6_k_by_hand),
        cmocka_unit_test(the_tests_own_quantiser_agrees_with_the_decoders),
        cmocka_unit_test(quantised_files_come_close_to_their_original),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
