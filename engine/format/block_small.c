// Four-bit floats (MXFP4, NVFP4) and ternary values (TQ1_0, TQ2_0).
#include <assert.h>

#include "engine/format/block_unpack.h"

// MXFP4, 17 bytes for 32 elements: 2^(e − 127)·value; a value is a sign, 2 exponent bits and 1 mantissa bit.
//   0   1                17
//   │ e │ q[16]           │      low nibbles are elements 0–15, high nibbles 16–31
static_assert(sizeof(struct block_mxfp4) == 17 && offsetof(struct block_mxfp4, q) == 1, "MXFP4");

// NVFP4, 36 bytes for 64 elements in four sub-blocks of 16: d·value, d an unsigned float with 4 + 3 bits, bias 7.
//   0      4                                36
//   │ d[4] │ q[4][8]                         │      in each sub-block, low nibbles are elements 0–7, high ones 8–15
static_assert(sizeof(struct block_nvfp4) == 36 && offsetof(struct block_nvfp4, q) == 4, "NVFP4");

// TQ2_0, 66 bytes for 256 elements: d·(q − 1), q in 0‥2.
//   0                          64     66
//   │ q[64]                    │ d    │
// Each half of 128 elements has 32 bytes; element l of its quarter k is q[l] at bit 2k.
static_assert(sizeof(struct block_tq2_0) == 66 && offsetof(struct block_tq2_0, d) == 64, "TQ2_0");

// TQ1_0, 54 bytes for 256 elements: d·(q − 1), five q to a byte.
//   0                     48      52     54
//   │ q[48]               │ qh[4] │ d    │
// A byte is the fraction 0.q₀q₁q₂q₃q₄ in base 3, in units of 1/256 and rounded up. Elements 0–159 are digits 0–4 of
// q[0‥31], 32 elements a digit; 160–239 digits 0–4 of q[32‥47], 16 a digit; 240–255 digits 0–3 of qh, 4 a digit.
static_assert(sizeof(struct block_tq1_0) == 54 && offsetof(struct block_tq1_0, qh) == 48 &&
                  offsetof(struct block_tq1_0, d) == 52,
              "TQ1_0");

// Doubled, to be whole.
const int8_t fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float mxfp4_scale(uint8_t e) {
    uint32_t bits = e > 1 ? (uint32_t)(e - 1) << 23 : 0x200000u << e; // 2⁻¹²⁷ and 2⁻¹²⁸ are subnormal
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float nvfp4_scale(uint8_t bits) {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if (bits == 127) return 0; // NaN
    float step = (float)(1 << (exponent ? exponent : 1)) * 0x1p-11f;
    return step * (float)(exponent ? mantissa + 8 : mantissa);
}

void unpack_BLOCK_MXFP4(const void *block, struct block_codes *out) {
    struct block_mxfp4 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, mxfp4_scale(b.e), 0, 32);
    for (int i = 0; i < 32; i++) out->code[i] = fp4_values[b.q[i % 16] >> i / 16 * 4 & 15];
}

void unpack_BLOCK_NVFP4(const void *block, struct block_codes *out) {
    struct block_nvfp4 b;
    memcpy(&b, block, sizeof b);
    out->d = 1;
    no_minimum(out);
    for (int j = 0; j < 4; j++) out->scale[j] = nvfp4_scale(b.d[j]);
    for (int e = 0; e < 64; e++) out->code[e] = fp4_values[b.q[e / 16][e % 8] >> e % 16 / 8 * 4 & 15];
}

void unpack_BLOCK_TQ2_0(const void *block, struct block_codes *out) {
    struct block_tq2_0 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 256);
    for (int j = 0; j < 8; j++)
        for (int l = 0; l < 32; l++) out->code[32 * j + l] = (int8_t)((b.q[j / 4 * 32 + l] >> j % 4 * 2 & 3) - 1);
}

// Digit n of a byte, minus 1: the integer part of 3 × frac(3ⁿ × the byte's fraction).
static int8_t ternary(uint8_t byte, int n) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    uint8_t fraction = (uint8_t)(byte * powers[n]);
    return (int8_t)((fraction * 3 >> 8) - 1);
}

void unpack_BLOCK_TQ1_0(const void *block, struct block_codes *out) {
    struct block_tq1_0 b;
    memcpy(&b, block, sizeof b);
    whole_block(out, f16_to_f32(b.d), 0, 256);
    for (int e = 0; e < 160; e++) out->code[e] = ternary(b.q[e % 32], e / 32);
    for (int e = 160; e < 240; e++) out->code[e] = ternary(b.q[32 + e % 16], (e - 160) / 16);
    for (int e = 240; e < 256; e++) out->code[e] = ternary(b.qh[e % 4], (e - 240) / 4);
}
