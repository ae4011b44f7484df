// Test quantisers of the blocks of 256 with integer scales.
#include <math.h>
#include <string.h>

#include "tests/unit/tiny_blocks_parts.h"

// Sub-blocks of n values in `most` steps up from a minimum: their scales and minimums, and the codes.
struct sub_blocks {
    uint16_t d, dmin;
    uint8_t scale[16], min[16], codes[256];
};

static void from_minimums(const float *x, int n, int most, int most_scale, struct sub_blocks *out) {
    float width[16] = {0}, base[16] = {0}; // of one step, and how far below zero the sub-block begins
    for (int j = 0; j < 256 / n; j++) {
        float low = 0, high = 0;
        for (int l = 0; l < n; l++) low = fminf(low, x[n * j + l]), high = fmaxf(high, x[n * j + l]);
        width[j] = (high - low) / (float)most, base[j] = -low;
    }
    out->d = f16_from_f32(tiny_largest(width, 256 / n) / (float)most_scale);
    out->dmin = f16_from_f32(tiny_largest(base, 256 / n) / (float)most_scale);
    float d = f16_to_f32(out->d), dmin = f16_to_f32(out->dmin);
    for (int j = 0; j < 256 / n; j++) {
        out->scale[j] = (uint8_t)tiny_step(width[j], d, 0, most_scale);
        out->min[j] = (uint8_t)tiny_step(base[j], dmin, 0, most_scale);
    }
    for (int e = 0; e < 256; e++)
        out->codes[e] = (uint8_t)tiny_step(x[e] + dmin * out->min[e / n], d * out->scale[e / n], 0, most);
}

// The scales of sub-blocks whose codes reach `most`, and their common d.
static uint16_t sub_scales(const float *x, int n, float most, int most_scale, int scales[16]) {
    float width[16] = {0};
    for (int j = 0; j < 256 / n; j++) width[j] = tiny_largest(x + n * j, n) / most;
    uint16_t d = f16_from_f32(tiny_largest(width, 256 / n) / (float)most_scale);
    for (int j = 0; j < 256 / n; j++) scales[j] = tiny_step(width[j], f16_to_f32(d), 0, most_scale);
    return d;
}

static void pack_q4_k_scales(const uint8_t scale[8], const uint8_t min[8], uint8_t packed[12]) {
    for (int j = 0; j < 4; j++) {
        packed[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        packed[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        packed[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

void tiny_BLOCK_Q2_K(const float *x, void *block) {
    struct block_q2_k *b = block;
    struct sub_blocks s;
    from_minimums(x, 16, 3, 15, &s);
    b->d = s.d, b->dmin = s.dmin;
    memset(b->q, 0, sizeof b->q);
    for (int j = 0; j < 16; j++) b->scales[j] = (uint8_t)(s.scale[j] | s.min[j] << 4);
    for (int e = 0; e < 256; e++) b->q[e / 128 * 32 + e % 32] |= (uint8_t)(s.codes[e] << e % 128 / 32 * 2);
}

void tiny_BLOCK_Q3_K(const float *x, void *block) {
    struct block_q3_k *b = block;
    int scales[16];
    memset(b, 0, sizeof *b);
    b->d = sub_scales(x, 16, 3.5f, 31, scales);
    for (int e = 0; e < 256; e++) {
        int q = tiny_step(x[e], f16_to_f32(b->d) * (float)scales[e / 16], -4, 3) + 4;
        b->q[e / 128 * 32 + e % 32] |= (uint8_t)((q & 3) << e % 128 / 32 * 2);
        b->qh[e % 32] |= (uint8_t)(q >> 2 << e / 32);
    }
    for (int j = 0; j < 16; j++) {
        b->scales[j % 8] |= (uint8_t)(((scales[j] + 32) & 15) << j / 8 * 4);
        b->scales[8 + j % 4] |= (uint8_t)((scales[j] + 32) >> 4 << j / 4 * 2);
    }
}

// Sub-blocks of 32 as Q4_K and Q5_K have them: their scales packed, and the lowest four bits of their codes.
static struct sub_blocks put_sub_blocks_of_32(const float *x, int most, uint8_t scales[12], uint8_t q[128]) {
    struct sub_blocks s;
    from_minimums(x, 32, most, 63, &s);
    pack_q4_k_scales(s.scale, s.min, scales);
    memset(q, 0, 128);
    for (int e = 0; e < 256; e++) q[e / 64 * 32 + e % 32] |= (uint8_t)((s.codes[e] & 15) << e / 32 % 2 * 4);
    return s;
}

void tiny_BLOCK_Q4_K(const float *x, void *block) {
    struct block_q4_k *b = block;
    struct sub_blocks s = put_sub_blocks_of_32(x, 15, b->scales, b->q);
    b->d = s.d, b->dmin = s.dmin;
}

void tiny_BLOCK_Q5_K(const float *x, void *block) {
    struct block_q5_k *b = block;
    struct sub_blocks s = put_sub_blocks_of_32(x, 31, b->scales, b->q);
    b->d = s.d, b->dmin = s.dmin;
    memset(b->qh, 0, sizeof b->qh);
    for (int e = 0; e < 256; e++) b->qh[e % 32] |= (uint8_t)(s.codes[e] >> 4 << e / 32);
}

void tiny_BLOCK_Q6_K(const float *x, void *block) {
    struct block_q6_k *b = block;
    int scales[16];
    memset(b, 0, sizeof *b);
    b->d = sub_scales(x, 16, 31, 127, scales);
    for (int j = 0; j < 16; j++) b->scales[j] = (int8_t)scales[j];
    for (int e = 0; e < 256; e++) {
        int half = e / 128, k = e % 128 / 32, l = e % 32;
        int q = tiny_step(x[e], f16_to_f32(b->d) * b->scales[e / 16], -32, 31) + 32;
        b->ql[64 * half + 32 * (k % 2) + l] |= (uint8_t)((q & 15) << 4 * (k / 2));
        b->qh[32 * half + l] |= (uint8_t)(q >> 4 << 2 * k);
    }
}

void tiny_BLOCK_IQ4_XS(const float *x, void *block) {
    struct block_iq4_xs *b = block;
    int scales[16];
    memset(b, 0, sizeof *b);
    b->d = sub_scales(x, 32, 113, 31, scales);
    for (int j = 0; j < 8; j++) {
        b->scales_low[j / 2] |= (uint8_t)(((scales[j] + 32) & 15) << j % 2 * 4);
        b->scales_high |= (uint16_t)((scales[j] + 32) >> 4 << 2 * j);
    }
    for (int e = 0; e < 256; e++) {
        int q = tiny_nearest(x[e], f16_to_f32(b->d) * (float)scales[e / 32], iq4_values);
        b->q[e / 32 * 16 + e % 16] |= (uint8_t)(q << e % 32 / 16 * 4);
    }
}
