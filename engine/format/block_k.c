// Blocks of 256 elements, in sub-blocks with small integer scales under one or two 16-bit scales.
#include <assert.h>

#include "engine/format/block_unpack.h"

// Q2_K, 84 bytes, sub-blocks of 16: d·scale·q − dmin·min. The scale is the low nibble of its byte, the minimum the high
// one.
//   0            16                          80     82     84
//   │ scales[16] │ q[64]                     │ d    │ dmin │
// Each half of 128 elements has 32 bytes of q; element l of its quarter k (32 elements each) is q[l] at bit 2k.
static_assert(sizeof(struct block_q2_k) == 84 && offsetof(struct block_q2_k, d) == 80, "Q2_K");

// Q3_K, 110 bytes, sub-blocks of 16: d·(scale − 32)·(q − 4).
//   0         32                          96           108    110
//   │ qh[32]  │ q[64]                     │ scales[12] │ d    │
// The low two bits as in Q2_K. The third bit of element l of quarter k of half h is qh[l] at bit 4h + k.
// Sixteen 6-bit scales s in 12 bytes:
//   byte j      (j < 8)  │ s[j+8] 3‥0            │ s[j] 3‥0              │
//   byte j + 8  (j < 4)  │ s[j+12] 5‥4 │ s[j+8] 5‥4 │ s[j+4] 5‥4 │ s[j] 5‥4 │
static_assert(sizeof(struct block_q3_k) == 110 && offsetof(struct block_q3_k, q) == 32 &&
                  offsetof(struct block_q3_k, scales) == 96 && offsetof(struct block_q3_k, d) == 108,
              "Q3_K");

// Q4_K, 144 bytes, sub-blocks of 32: d·scale·q − dmin·min.
//   0      2      4               16                                144
//   │ d    │ dmin │ scales[12]     │ q[128]                          │
// Sub-blocks 2k and 2k + 1 are the low and the high nibbles of the 32 bytes at q + 32k.
// Eight 6-bit scales s and minimums m in 12 bytes; the top two bits of the last four are stored above the first four:
//   byte j      (j < 4)  │ s[j+4] 5‥4 │ s[j] 5‥0               │
//   byte j + 4  (j < 4)  │ m[j+4] 5‥4 │ m[j] 5‥0               │
//   byte j + 8  (j < 4)  │ m[j+4] 3‥0       │ s[j+4] 3‥0       │
static_assert(sizeof(struct block_q4_k) == 144 && offsetof(struct block_q4_k, scales) == 4 &&
                  offsetof(struct block_q4_k, q) == 16,
              "Q4_K");

// Q5_K, 176 bytes, as Q4_K: d·scale·q − dmin·min.
//   0      2      4               16        48                                176
//   │ d    │ dmin │ scales[12]     │ qh[32]  │ q[128]                          │
// The fifth bit of element l of sub-block j is qh[l] at bit j.
static_assert(sizeof(struct block_q5_k) == 176 && offsetof(struct block_q5_k, qh) == 16 &&
                  offsetof(struct block_q5_k, q) == 48,
              "Q5_K");

// Q6_K, 210 bytes, sub-blocks of 16: d·scale·(q − 32).
//   0              128        192          208    210
//   │ ql[128]      │ qh[64]   │ scales[16] │ d    │
// Each half of 128 elements has 64 bytes of ql, 32 of qh and 8 scales. Element l of its quarter k (32 elements each)
// has its low four bits in ql[l + 32·(k mod 2)], nibble k / 2, and its high two bits in qh[l] at bit 2k.
static_assert(sizeof(struct block_q6_k) == 210 && offsetof(struct block_q6_k, qh) == 128 &&
                  offsetof(struct block_q6_k, scales) == 192 && offsetof(struct block_q6_k, d) == 208,
              "Q6_K");

// IQ4_XS, 136 bytes, sub-blocks of 32: d·(scale − 32)·iq4_values[q].
//   0      2             4               8                                136
//   │ d    │ scales_high │ scales_low[4] │ q[128]                          │
// Sub-block j: 16 bytes at q + 16j, low nibbles first; its scale has its low four bits in nibble j of scales_low, the
// high two in scales_high at bit 2j.
static_assert(sizeof(struct block_iq4_xs) == 136 && offsetof(struct block_iq4_xs, scales_low) == 4 &&
                  offsetof(struct block_iq4_xs, q) == 8,
              "IQ4_XS");

// Quarter k of a half: the two-bit values of Q2_K and Q3_K.
static void put_quarter(int8_t code[32], const uint8_t q[32], int k) {
    for (int l = 0; l < 32; l++) code[l] = q[l] >> 2 * k & 3;
}

// Thirty-two low or high nibbles.
static void put_nibbles(int8_t code[32], const uint8_t q[32], int high) {
    for (int l = 0; l < 32; l++) code[l] = q[l] >> 4 * high & 15;
}

// Adds bit `from` of qh to 32 codes as their bit `to`.
static void add_bit(int8_t code[32], const uint8_t qh[32], int from, int to) {
    for (int l = 0; l < 32; l++) code[l] |= (int8_t)((qh[l] >> from & 1) << to);
}

void unpack_BLOCK_Q2_K(const void *block, struct block_codes *out) {
    struct block_q2_k b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d), out->dmin = f16_to_f32(b.dmin);
    for (int j = 0; j < 16; j++) {
        out->scale[j] = (float)(b.scales[j] & 15);
        out->minimum[j] = (float)(b.scales[j] >> 4);
    }
    for (int j = 0; j < 8; j++) put_quarter(out->code + 32 * j, b.q + j / 4 * 32, j % 4);
}

void unpack_BLOCK_Q3_K(const void *block, struct block_codes *out) {
    struct block_q3_k b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d);
    no_minimum(out);
    for (int j = 0; j < 16; j++) {
        int low = b.scales[j % 8] >> j / 8 * 4 & 15, high = b.scales[8 + j % 4] >> j / 4 * 2 & 3;
        out->scale[j] = (float)((low | high << 4) - 32);
    }
    for (int j = 0; j < 8; j++) {
        put_quarter(out->code + 32 * j, b.q + j / 4 * 32, j % 4);
        add_bit(out->code + 32 * j, b.qh, j, 2);
    }
    for (int e = 0; e < 256; e++) out->code[e] = (int8_t)(out->code[e] - 4);
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

static void eight_scales(const uint8_t packed[12], struct block_codes *out) {
    for (int j = 0; j < 8; j++) {
        uint8_t scale, min;
        q4_k_scale_min(packed, j, &scale, &min);
        out->scale[2 * j] = out->scale[2 * j + 1] = scale;
        out->minimum[2 * j] = out->minimum[2 * j + 1] = min;
    }
}

void unpack_BLOCK_Q4_K(const void *block, struct block_codes *out) {
    struct block_q4_k b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d), out->dmin = f16_to_f32(b.dmin);
    eight_scales(b.scales, out);
    for (int j = 0; j < 8; j++) put_nibbles(out->code + 32 * j, b.q + j / 2 * 32, j % 2);
}

void unpack_BLOCK_Q5_K(const void *block, struct block_codes *out) {
    struct block_q5_k b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d), out->dmin = f16_to_f32(b.dmin);
    eight_scales(b.scales, out);
    for (int j = 0; j < 8; j++) {
        put_nibbles(out->code + 32 * j, b.q + j / 2 * 32, j % 2);
        add_bit(out->code + 32 * j, b.qh, j, 4);
    }
}

void unpack_BLOCK_Q6_K(const void *block, struct block_codes *out) {
    struct block_q6_k b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d);
    no_minimum(out);
    for (int j = 0; j < 16; j++) out->scale[j] = b.scales[j];
    for (int j = 0; j < 8; j++) {
        const uint8_t *qh = b.qh + j / 4 * 32;
        int8_t *code = out->code + 32 * j;
        put_nibbles(code, b.ql + j / 4 * 64 + j % 2 * 32, j % 4 / 2);
        for (int l = 0; l < 32; l++) code[l] = (int8_t)((code[l] | (qh[l] >> j % 4 * 2 & 3) << 4) - 32);
    }
}

int iq4_xs_scale(const uint8_t low[4], uint16_t high, int j) {
    return ((low[j / 2] >> j % 2 * 4 & 15) | (high >> 2 * j & 3) << 4) - 32;
}

void unpack_BLOCK_IQ4_XS(const void *block, struct block_codes *out) {
    struct block_iq4_xs b;
    memcpy(&b, block, sizeof b);
    out->d = f16_to_f32(b.d);
    no_minimum(out);
    for (int j = 0; j < 8; j++)
        out->scale[2 * j] = out->scale[2 * j + 1] = (float)iq4_xs_scale(b.scales_low, b.scales_high, j);
    for (int e = 0; e < 256; e++) out->code[e] = iq4_values[b.q[e / 32 * 16 + e % 16] >> e % 32 / 16 * 4 & 15];
}
