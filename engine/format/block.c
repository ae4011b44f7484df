#include "engine/format/block.h"

#include <assert.h>
#include <string.h>

// Q8_0, 34 bytes for 32 elements: d·q.
//   0      2                                34
//   │ d    │ q[32], signed                   │
static_assert(sizeof(struct block_q8_0) == 34 && offsetof(struct block_q8_0, q) == 2, "Q8_0");

// Q4_0, 18 bytes for 32 elements: d·(q − 8). Element j is the low nibble of byte j, element j + 16 its high nibble.
//   0      2                18
//   │ d    │ q[16]           │
static_assert(sizeof(struct block_q4_0) == 18 && offsetof(struct block_q4_0, q) == 2, "Q4_0");

// Q4_K, 144 bytes for 256 elements in eight sub-blocks of 32: d·scale·q − dmin·min.
//   0      2      4               16                                144
//   │ d    │ dmin │ scales[12]     │ q[128]                          │
// Sub-blocks 2k and 2k + 1 are the low and the high nibbles of the 32 bytes at q + 32k.
// Eight 6-bit scales s and minima m in 12 bytes, the top two bits of the last four lying above those of the first four:
//   byte j      (j < 4)  │ s[j+4] 5‥4 │ s[j] 5‥0               │
//   byte j + 4  (j < 4)  │ m[j+4] 5‥4 │ m[j] 5‥0               │
//   byte j + 8  (j < 4)  │ m[j+4] 3‥0       │ s[j+4] 3‥0       │
static_assert(sizeof(struct block_q4_k) == 144 && offsetof(struct block_q4_k, scales) == 4 &&
                  offsetof(struct block_q4_k, q) == 16,
              "Q4_K");

// Q6_K, 210 bytes for 256 elements in sixteen sub-blocks of 16: d·scale·(q − 32).
//   0              128        192          208    210
//   │ ql[128]      │ qh[64]   │ scales[16] │ d    │
// Each half of 128 elements has 64 bytes of ql, 32 of qh and 8 scales. Element l of its quarter k (32 elements each)
// has its low four bits in ql[l + 32·(k mod 2)], nibble k / 2, and its high two bits in qh[l] at bit 2k.
static_assert(sizeof(struct block_q6_k) == 210 && offsetof(struct block_q6_k, qh) == 128 &&
                  offsetof(struct block_q6_k, scales) == 192 && offsetof(struct block_q6_k, d) == 208,
              "Q6_K");

#define X(id, gguf, name, bytes, elements)                                                                             \
    static_assert(bytes <= 256 && elements > 0 && (elements & (elements - 1)) == 0, name " has an odd geometry");
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

float bf16_to_f32(uint16_t half) {
    return float_of_bits((uint32_t)half << 16);
}

// Named after their enumerators, so that the table at the foot pairs them.
static void decode_BLOCK_F32(const void *blocks, float *out, size_t n) {
    memcpy(out, blocks, n * sizeof *out);
}

static void decode_BLOCK_F16(const void *blocks, float *out, size_t n) {
    const uint16_t *half = blocks;
    for (size_t i = 0; i < n; i++) out[i] = f16_to_f32(half[i]);
}

static void decode_BLOCK_BF16(const void *blocks, float *out, size_t n) {
    const uint16_t *half = blocks;
    for (size_t i = 0; i < n; i++) out[i] = bf16_to_f32(half[i]);
}

static void decode_BLOCK_Q8_0(const void *blocks, float *out, size_t n) {
    for (const struct block_q8_0 *b = blocks; n >= 32; b++, out += 32, n -= 32) {
        float d = f16_to_f32(b->d);
        for (int j = 0; j < 32; j++) out[j] = d * (float)b->q[j];
    }
}

static void decode_BLOCK_Q4_0(const void *blocks, float *out, size_t n) {
    for (const struct block_q4_0 *b = blocks; n >= 32; b++, out += 32, n -= 32) {
        float d = f16_to_f32(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->q[j] & 15) - 8);
            out[j + 16] = d * (float)((b->q[j] >> 4) - 8);
        }
    }
}

void q4_k_scale_min(const uint8_t packed[12], int j, uint8_t *scale, uint8_t *min) {
    if (j < 4) {
        *scale = packed[j] & 63;
        *min = packed[j + 4] & 63;
    } else {
        *scale = (uint8_t)((packed[j + 4] & 15) | packed[j - 4] >> 6 << 4);
        *min = (uint8_t)(packed[j + 4] >> 4 | packed[j] >> 6 << 4);
    }
}

static void decode_BLOCK_Q4_K(const void *blocks, float *out, size_t n) {
    for (const struct block_q4_k *b = blocks; n >= 256; b++, n -= 256) {
        float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
        for (int j = 0; j < 8; j++, out += 32) {
            uint8_t scale, min;
            q4_k_scale_min(b->scales, j, &scale, &min);
            float step = d * scale, base = dmin * min;
            for (int l = 0; l < 32; l++) out[l] = step * (float)(b->q[j / 2 * 32 + l] >> 4 * (j % 2) & 15) - base;
        }
    }
}

static void decode_BLOCK_Q6_K(const void *blocks, float *out, size_t n) {
    for (const struct block_q6_k *b = blocks; n >= 256; b++, n -= 256) {
        float d = f16_to_f32(b->d);
        for (int half = 0; half < 2; half++) {
            const uint8_t *ql = b->ql + 64 * half, *qh = b->qh + 32 * half;
            for (int k = 0; k < 4; k++, out += 32) {
                const int8_t *scales = b->scales + 8 * half + 2 * k;
                for (int l = 0; l < 32; l++) {
                    int low = ql[l + 32 * (k % 2)] >> 4 * (k / 2) & 15, high = qh[l] >> 2 * k & 3;
                    out[l] = d * scales[l / 16] * (float)((low | high << 4) - 32);
                }
            }
        }
    }
}

const struct block_format block_formats[BLOCK_FORMAT_COUNT] = {
#define X(id, gguf, name, bytes, elements) [id] = {id, gguf, name, bytes, elements, decode_##id},
    BLOCK_FORMATS(X)
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
