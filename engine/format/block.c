#include "engine/format/block.h"

#include <assert.h>
#include <string.h>

#include "engine/format/block_unpack.h"

#define X(id, gguf, name, bytes, elements)                                                                             \
    static_assert(bytes <= 256 && elements <= 256 && (elements & (elements - 1)) == 0,                                 \
                  name " does not fit struct block_codes");
BLOCK_FORMATS(X)
#undef X

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float f16_to_f32(uint16_t half) {
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ffu;
    if (exponent == 0x1f) return float_of_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float subnormal = (float)mantissa * 0x1p-24f; // exact
    return sign ? -subnormal : subnormal;
}

// A magnitude below 2⁻¹⁴ in units of 2⁻²⁴, rounded to nearest even; may carry into the smallest normal number.
static uint32_t f16_subnormal(uint32_t magnitude) {
    uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    if (shift > 24) return 0;
    uint32_t whole = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), tie = 1u << (shift - 1);
    return whole + (rest > tie || (rest == tie && whole & 1));
}

uint16_t f16_from_f32(float value) {
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu)); // NaN, made quiet
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);                             // 65520 and above
    if (magnitude < 0x38800000u) return (uint16_t)(sign | f16_subnormal(magnitude));
    magnitude += 0xfffu + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

float bf16_to_f32(uint16_t half) { return float_of_bits((uint32_t)half << 16); }

// Named after their enumerators, for the table at the end of this file.
static void decode_BLOCK_F32(const void *blocks, float *out, size_t n) { memcpy(out, blocks, n * sizeof *out); }

static void decode_BLOCK_F16(const void *blocks, float *out, size_t n) {
    const uint16_t *half = blocks;
    for (size_t i = 0; i < n; i++) out[i] = f16_to_f32(half[i]);
}

static void decode_BLOCK_BF16(const void *blocks, float *out, size_t n) {
    const uint16_t *half = blocks;
    for (size_t i = 0; i < n; i++) out[i] = bf16_to_f32(half[i]);
}

static void decode_codes(const struct block_codes *c, float *out, size_t elements) {
    for (size_t part = 0; part < elements / 16; part++) {
        float scale = c->d * c->scale[part], minimum = c->dmin * c->minimum[part];
        for (size_t i = 16 * part; i < 16 * part + 16; i++) out[i] = scale * (float)c->code[i] - minimum;
    }
}

#define X(id, gguf, name, bytes, elements)                                                                             \
    static void decode_##id(const void *blocks, float *out, size_t n) {                                                \
        struct block_codes codes;                                                                                      \
        for (const uint8_t *block = blocks; n >= elements; block += bytes, out += elements, n -= elements) {           \
            unpack_##id(block, &codes);                                                                                \
            decode_codes(&codes, out, elements);                                                                       \
        }                                                                                                              \
    }
QUANTISED_FORMATS(X)
#undef X

const struct block_format block_formats[BLOCK_FORMAT_COUNT] = {
#define X(id, gguf, name, bytes, elements) [id] = {id, gguf, name, bytes, elements, decode_##id, NULL},
    FLOAT_FORMATS(X)
#undef X
#define X(id, gguf, name, bytes, elements) [id] = {id, gguf, name, bytes, elements, decode_##id, unpack_##id},
        QUANTISED_FORMATS(X)
#undef X
};

const struct block_format *block_format_find(uint32_t gguf_type) {
    for (int i = 0; i < BLOCK_FORMAT_COUNT; i++)
        if (block_formats[i].gguf_type == gguf_type) return &block_formats[i];
    return NULL;
}

const char *block_format_known_name(uint32_t gguf_type) {
    static const char *const names[] = {
        // 0
        "F32", "F16", "Q4_0", "Q4_1", "Q4_2 (removed)", "Q4_3 (removed)", "Q5_0", "Q5_1", "Q8_0", "Q8_1",
        // 10
        "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
        // 20
        "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8", "I16", "I32", "I64", "F64", "IQ1_M",
        // 30
        "BF16", "Q4_0_4_4 (removed)", "Q4_0_4_8 (removed)", "Q4_0_8_8 (removed)", "TQ1_0", "TQ2_0",
        "IQ4_NL_4_4 (removed)", "IQ4_NL_4_8 (removed)", "IQ4_NL_8_8 (removed)", "MXFP4",
        // 40
        "NVFP4"};
    return gguf_type < sizeof names / sizeof *names ? names[gguf_type] : NULL;
}
