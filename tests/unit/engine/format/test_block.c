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
#include "tests/unit/xorshift.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// ---- half precision ----

// The value of a half by the definition of the standard, computed differently from the code under test.
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
            if (special) assert_true(isinf(value) && (value < 0) == (h >> 15));
            else assert_true((double)value == half_value((uint16_t)h));
            assert_int_equal(bits_of(value) >> 31, h >> 15); // including zero
            assert_int_equal(f16_from_f32(value), h);
        }
    }
}

// Values between two neighbouring halves round to the nearer one, the midpoint to the even one.
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
    static const uint32_t lacking[] = {4, 5, 9, 15, 24, 25, 26, 27, 28, 31, 32, 33, 36, 37, 38, 41, 99, UINT32_MAX};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) assert_null(block_format_find(lacking[i]));
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

// Scales 60, 1, 2, 3, 33, 5, 6, 63 and minimums 0, 9, 10, 63, 12, 45, 14, 15, packed by hand.
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

// Sets one element at a time; its position follows from the definition of the format, written out by hand.
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

// Blocks of zeros except for a few bytes. By the definition of the format they decode to `others`, except `base` in one
// sub-block, and `value` in one or two of its elements.
static const struct made {
    enum block_id format;
    struct {
        int at, value;
    } bytes[8];
    int first, n; // the sub-block
    float base;
    int element, n_elements;
    float value, others;
} made[] = {
    // d 1, m 0.5; the high nibble of q[3]
    {BLOCK_Q4_1, {{1, 0x3c}, {3, 0x38}, {7, 0x70}}, 0, 32, 0.5f, 19, 1, 7.5f, 0},
    // d 1; the high nibble of q[3] and bit 19 of qh
    {BLOCK_Q5_0, {{1, 0x3c}, {4, 0x08}, {9, 0x50}}, 0, 32, -16, 19, 1, 5, 0},
    // d 1, m −1; the high nibble of q[15] and bit 31
    {BLOCK_Q5_1, {{1, 0x3c}, {3, 0xbc}, {7, 0x80}, {23, 0xf0}}, 0, 32, -1, 31, 1, 30, 0},
    // d 1, dmin 0.5; scale 3 and minimum 2 of sub-block 9; 2 in half 1, quarter 0, element 22
    {BLOCK_Q2_K, {{81, 0x3c}, {83, 0x38}, {9, 0x23}, {70, 2}}, 144, 16, -1, 150, 1, 5, 0},
    // d 1; scale 5 | 2 << 4 of sub-block 14; 3 and the third bit in half 1, quarter 3, element 6
    {BLOCK_Q3_K, {{109, 0x3c}, {102, 0x50}, {106, 0x80}, {70, 0xc0}, {6, 0x80}}, 224, 16, -20, 230, 1, 15, 128},
    // d and dmin 1; scale 7 and minimum 4 of sub-block 2; 9 and the fifth bit in its element 6
    {BLOCK_Q5_K, {{1, 0x3c}, {3, 0x3c}, {6, 7}, {10, 4}, {22, 4}, {86, 9}}, 64, 32, -4, 70, 1, 171, 0},
    // d 1; the high nibble of q[2]
    {BLOCK_IQ4_NL, {{1, 0x3c}, {4, 0x90}}, 0, 32, -127, 18, 1, 13, 0},
    // d 1; scale 3 | 2 << 4 of sub-block 5; 8 in its element 20
    {BLOCK_IQ4_XS, {{1, 0x3c}, {6, 0x30}, {3, 0x08}, {92, 0x80}}, 160, 32, -381, 180, 1, 3, 4064},
    // d 1 and entry 0, eight times 8; scale 2 of sub-block 3; sign bit 6 of its group 1, and 7 for parity
    {BLOCK_IQ2_XXS, {{1, 0x3c}, {33, 0x20}, {31, 0x20}}, 96, 32, 5, 110, 2, -5, 1},
    // scale 3 of sub-block 5; sign bit 6 of group 11, and 7 for parity
    {BLOCK_IQ2_XS, {{1, 0x3c}, {68, 0x30}, {25, 0x80}}, 80, 16, 7, 94, 2, -7, 1},
    // the same scale; sign bits 2 and 3 of group 11
    {BLOCK_IQ2_S, {{1, 0x3c}, {76, 0x30}, {45, 0x0c}}, 80, 16, 7, 90, 2, -7, 1},
    // d 1 and entry 0, four times 4; scale 2 of sub-block 3; sign bit 6 of its second 8, and 7 for parity
    {BLOCK_IQ3_XXS, {{1, 0x3c}, {81, 0x20}, {79, 0x20}}, 96, 32, 5, 110, 2, -5, 1},
    // d 1 and entry 0, four times 1; scale 2 of sub-block 3; sign bits 3 and 4 of its second 8
    {BLOCK_IQ3_S, {{1, 0x3c}, {107, 0x20}, {87, 0x18}}, 96, 32, 5, 107, 2, -5, 1},
    // d 8 and entry 0, eight times −1, shifted up; scale 3 of sub-block 4, shifted down; entry 1 begins with 1
    {BLOCK_IQ1_S, {{1, 0x48}, {43, 0xb0}, {20, 1}}, 128, 32, -63, 144, 1, 49, -7},
    // d 8 in four places; scale 5 of sub-block 6; entry 1 for its group 1
    {BLOCK_IQ1_M, {{53, 0x80}, {55, 0x40}, {50, 0x40}, {51, 0x01}, {13, 1}}, 96, 16, -77, 104, 1, 99, -7},
    // the same; its group 0 shifted down, with entry 1
    {BLOCK_IQ1_M, {{53, 0x80}, {55, 0x40}, {38, 0x08}, {12, 1}}, 96, 8, -9, 96, 1, 7, -7},
    // 2^1; the low nibble of q[5]
    {BLOCK_MXFP4, {{0, 128}, {6, 0x0e}}, 0, 32, 0, 5, 1, -8, 0},
    // scale 1.5 of sub-block 2; the high nibble of its q[3]
    {BLOCK_NVFP4, {{2, 0x3c}, {23, 0xd0}}, 32, 16, 0, 43, 1, -4.5f, 0},
    // d 1; 0.00200 in base 3 is 18/243, rounded up to 19/256, in q[35]
    {BLOCK_TQ1_0, {{53, 0x3c}, {35, 19}}, 0, 256, -1, 195, 1, 1, 0},
    // d 1; 2 in half 1, quarter 2, element 8
    {BLOCK_TQ2_0, {{65, 0x3c}, {40, 0x20}}, 0, 256, -1, 200, 1, 1, 0},
};

static void blocks_made_by_hand_decode(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        const struct made *m = &made[i];
        const struct block_format *f = &block_formats[m->format];
        _Alignas(16) uint8_t block[256] = {0};
        float out[256];
        for (int k = 0; k < 8; k++) block[m->bytes[k].at] |= (uint8_t)m->bytes[k].value;
        f->decode(block, out, f->elements);
        for (int e = 0; e < (int)f->elements; e++) {
            bool in_part = e >= m->first && e < m->first + m->n;
            bool chosen = e >= m->element && e < m->element + m->n_elements;
            float want = chosen ? m->value : in_part ? m->base : m->others;
            if (out[e] != want) fail_msg("%s, row %zu, element %d: %g instead of %g", f->name, i, e, out[e], want);
        }
    }
}

static void scales_of_four_bit_floats(void **state) {
    (void)state;
    for (int e = 0; e < 256; e++) assert_true(mxfp4_scale((uint8_t)e) == (float)ldexp(1, e - 128));
    assert_true(nvfp4_scale(0) == 0);
    assert_true(nvfp4_scale(1) == 0x1p-10f); // the smallest, 2⁻⁹, halved
    assert_true(nvfp4_scale(8) == 0x1p-7f);
    assert_true(nvfp4_scale(0x38) == 0.5f);
    assert_true(nvfp4_scale(126) == 224);
    assert_true(nvfp4_scale(127) == 0);
    assert_true(nvfp4_scale(0x38 | 0x80) == 0.5f);
}

// ---- codebooks and whole blocks, compared with the reference engine ----

static uint64_t digest(const void *data, size_t size) { // FNV-1a
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static void codebooks_match_the_reference_engine(void **state) {
    (void)state;
    const struct block_grids *g = block_grids();
    static const int8_t middle_xxs[8] = {8, 43, 8, 8, 8, 43, 43, 8}, middle_iq1[8] = {0, 1, -1, 0, 0, 0, 0, 0};
    static const int8_t middle_iq3[4] = {4, 62, 28, 20};
    assert_memory_equal(g->iq2_xxs[128], middle_xxs, 8);
    assert_memory_equal(g->iq3_xxs[128], middle_iq3, 4);
    assert_memory_equal(g->iq1[1024], middle_iq1, 8);
    assert_true(digest(g->iq2_xxs, sizeof g->iq2_xxs) == 0xbb4ee025b5ac6e8e);
    assert_true(digest(g->iq2_xs, sizeof g->iq2_xs) == 0xc9b1ee61e79909bd);
    assert_true(digest(g->iq2_s, sizeof g->iq2_s) == 0x123edd38a3b62b90);
    assert_true(digest(g->iq3_xxs, sizeof g->iq3_xxs) == 0xdfa5dc83d6a155d5);
    assert_true(digest(g->iq3_s, sizeof g->iq3_s) == 0xfa37020c25b44829);
    assert_true(digest(g->iq1, sizeof g->iq1) == 0x6703ed863501ae2e);
}

// Digests of random_blocks decoded by the reference engine.
static const uint64_t reference[BLOCK_FORMAT_COUNT] = {
    [BLOCK_Q8_0] = 0xdb96d395c23af530,   [BLOCK_Q4_0] = 0x86bfb56dce13a5b7,    [BLOCK_Q4_1] = 0xa3200473393f061d,
    [BLOCK_Q5_0] = 0xd674fd6adf0ecd8a,   [BLOCK_Q5_1] = 0xda23b4ca2ee8c531,    [BLOCK_Q2_K] = 0x5cbbccc32719e15f,
    [BLOCK_Q3_K] = 0xe7b12f3d06615475,   [BLOCK_Q4_K] = 0x4803141d58ad3cab,    [BLOCK_Q5_K] = 0x8c3be2f7ff9250a1,
    [BLOCK_Q6_K] = 0xe5f88d83d6af6fa6,   [BLOCK_IQ4_NL] = 0xbe4dac41bf2b96b4,  [BLOCK_IQ4_XS] = 0xe050bcd3b1f977f0,
    [BLOCK_IQ3_S] = 0x0e1703cc60c7ce90,  [BLOCK_IQ3_XXS] = 0xc5cff2097db06bc1, [BLOCK_IQ2_S] = 0x76b204b0e81d1415,
    [BLOCK_IQ2_XS] = 0x91b068aa1a367098, [BLOCK_IQ2_XXS] = 0xb229df16ea7d61ba, [BLOCK_IQ1_M] = 0xf7cc6cce3f6a494d,
    [BLOCK_IQ1_S] = 0xcc8937e4d015e30b,  [BLOCK_MXFP4] = 0xc528135eb802347f,   [BLOCK_NVFP4] = 0x0e20108ca6680c94,
    [BLOCK_TQ1_0] = 0xe40d3184dbfad178,  [BLOCK_TQ2_0] = 0x116bf52a9aad09f4,
};

// Offset of the high byte of a 16-bit scale, −1 for none; bit 14 is cleared, so that the scale is finite.
static const int scale_bytes[BLOCK_FORMAT_COUNT][2] = {
    [BLOCK_Q8_0] = {1, 1},    [BLOCK_Q4_0] = {1, 1},     [BLOCK_Q4_1] = {1, 3},     [BLOCK_Q5_0] = {1, 1},
    [BLOCK_Q5_1] = {1, 3},    [BLOCK_Q2_K] = {81, 83},   [BLOCK_Q3_K] = {109, 109}, [BLOCK_Q4_K] = {1, 3},
    [BLOCK_Q5_K] = {1, 3},    [BLOCK_Q6_K] = {209, 209}, [BLOCK_IQ4_NL] = {1, 1},   [BLOCK_IQ4_XS] = {1, 1},
    [BLOCK_IQ3_S] = {1, 1},   [BLOCK_IQ3_XXS] = {1, 1},  [BLOCK_IQ2_S] = {1, 1},    [BLOCK_IQ2_XS] = {1, 1},
    [BLOCK_IQ2_XXS] = {1, 1}, [BLOCK_IQ1_M] = {55, 55},  [BLOCK_IQ1_S] = {1, 1},    [BLOCK_MXFP4] = {-1, -1},
    [BLOCK_NVFP4] = {-1, -1}, [BLOCK_TQ1_0] = {53, 53},  [BLOCK_TQ2_0] = {65, 65},
};

static void random_blocks(const struct block_format *f, size_t n, uint8_t *blocks) {
    uint64_t random = 1;
    for (size_t b = 0; b < n; b++, blocks += f->bytes) {
        for (size_t i = 0; i < f->bytes; i++) blocks[i] = (uint8_t)(xorshift(&random) >> 56);
        for (int k = 0; k < 2; k++)
            if (scale_bytes[f->id][k] >= 0) blocks[scale_bytes[f->id][k]] &= 0xbf;
        if (f->id == BLOCK_MXFP4) blocks[0] &= 0x7f;
    }
}

static void random_blocks_decode_like_the_reference_engine(void **state) {
    (void)state;
    enum { N = 64 * 256 };
    static _Alignas(16) uint8_t blocks[N / 32 * 40];
    static float out[N];
    for (int id = BLOCK_Q8_0; id < BLOCK_FORMAT_COUNT; id++) {
        const struct block_format *f = &block_formats[id];
        random_blocks(f, N / f->elements, blocks);
        f->decode(blocks, out, N);
        if (digest(out, sizeof out) != reference[id])
            fail_msg("%s decodes to other values: 0x%llx", f->name, (unsigned long long)digest(out, sizeof out));
    }
}

// decode and unpack must not rely on more alignment than files guarantee, nor write past the elements.
static void blocks_unpack_at_any_address(void **state) {
    (void)state;
    for (int id = BLOCK_Q8_0; id < BLOCK_FORMAT_COUNT; id++) {
        const struct block_format *f = &block_formats[id];
        _Alignas(16) uint8_t block[257], moved[257];
        struct block_codes a, b;
        random_blocks(f, 1, block);
        memcpy(moved + 1, block, f->bytes);
        memset(&a, 0x55, sizeof a), memset(&b, 0x55, sizeof b);
        f->unpack(block, &a);
        f->unpack(moved + 1, &b);
        assert_memory_equal(&a, &b, sizeof a);
        for (size_t e = f->elements; e < 256; e++) assert_int_equal(a.code[e], 0x55);
    }
}

// ---- quantised and back ----

// The maximum error of a format for uniform values, relative to their mean square.
static const double most_error[BLOCK_FORMAT_COUNT] = {
    [BLOCK_F32] = 0,         [BLOCK_F16] = 3.9e-08,   [BLOCK_BF16] = 2.6e-06,  [BLOCK_Q8_0] = 1.5e-05,
    [BLOCK_Q4_0] = 0.005,    [BLOCK_Q4_1] = 0.0041,   [BLOCK_Q5_0] = 0.0011,   [BLOCK_Q5_1] = 0.00094,
    [BLOCK_Q2_K] = 0.087,    [BLOCK_Q3_K] = 0.022,    [BLOCK_Q4_K] = 0.0041,   [BLOCK_Q5_K] = 0.00097,
    [BLOCK_Q6_K] = 0.00024,  [BLOCK_IQ4_NL] = 0.0062, [BLOCK_IQ4_XS] = 0.0062, [BLOCK_IQ3_S] = 0.035,
    [BLOCK_IQ3_XXS] = 0.062, [BLOCK_IQ2_S] = 0.091,   [BLOCK_IQ2_XS] = 0.13,   [BLOCK_IQ2_XXS] = 0.16,
    [BLOCK_IQ1_M] = 0.27,    [BLOCK_IQ1_S] = 0.29,    [BLOCK_MXFP4] = 0.011,   [BLOCK_NVFP4] = 0.014,
    [BLOCK_TQ1_0] = 0.12,    [BLOCK_TQ2_0] = 0.12,
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
        double error = 0, square = 0;
        tiny_quantise((enum block_id)f, values, N, blocks);
        block_formats[f].decode(blocks, back, N);
        for (int i = 0; i < N; i++) {
            double difference = (double)values[i] - (double)back[i];
            error += difference * difference, square += (double)values[i] * (double)values[i];
        }
        if (!(error <= most_error[f] * square)) fail_msg("%s: %g", block_formats[f].name, error / square);
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

// The error of a tensor relative to its mean square.
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

// The error of each format for a normal distribution is known within a few percent.
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
    {"models/tiny-llama-q4_1.gguf", BLOCK_Q4_1, 5.70e-03, 6.60e-03},
    {"models/tiny-llama-q5_0.gguf", BLOCK_Q5_0, 1.70e-03, 2.00e-03},
    {"models/tiny-llama-q5_1.gguf", BLOCK_Q5_1, 1.35e-03, 1.50e-03},
    {"models/tiny-llama-q2_k.gguf", BLOCK_Q2_K, 8.20e-02, 9.40e-02},
    {"models/tiny-llama-q3_k.gguf", BLOCK_Q3_K, 2.10e-02, 2.45e-02},
    {"models/tiny-llama-q5_k.gguf", BLOCK_Q5_K, 1.20e-03, 1.40e-03},
    {"models/tiny-llama-iq4_nl.gguf", BLOCK_IQ4_NL, 5.50e-03, 6.10e-03},
    {"models/tiny-llama-iq4_xs.gguf", BLOCK_IQ4_XS, 5.60e-03, 6.20e-03},
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
        cmocka_unit_test(blocks_made_by_hand_decode),
        cmocka_unit_test(scales_of_four_bit_floats),
        cmocka_unit_test(codebooks_match_the_reference_engine),
        cmocka_unit_test(random_blocks_decode_like_the_reference_engine),
        cmocka_unit_test(blocks_unpack_at_any_address),
        cmocka_unit_test(the_tests_own_quantiser_agrees_with_the_decoders),
        cmocka_unit_test(quantised_files_come_close_to_their_original),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
