#include "tests/unit/tiny_blocks.h"

#include <math.h>
#include <string.h>

static float largest(const float *x, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    return most;
}

// The step nearest to x / scale within [low, high]; 0 where the scale is.
static int step(float x, float scale, int low, int high) {
    if (scale == 0) return 0;
    float q = rintf(x / scale);
    return q < (float)low ? low : q > (float)high ? high : (int)q;
}

static uint16_t bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void quantise_q8_0(const float *x, struct block_q8_0 *b) {
    b->d = f16_from_f32(largest(x, 32) / 127);
    float d = f16_to_f32(b->d);
    for (int j = 0; j < 32; j++) b->q[j] = (int8_t)step(x[j], d, -127, 127);
}

static void quantise_q4_0(const float *x, struct block_q4_0 *b) {
    b->d = f16_from_f32(largest(x, 32) / 7.5f);
    float d = f16_to_f32(b->d);
    for (int j = 0; j < 16; j++) b->q[j] = (uint8_t)((step(x[j], d, -8, 7) + 8) | (step(x[j + 16], d, -8, 7) + 8) << 4);
}

static void pack_q4_k_scales(const uint8_t scale[8], const uint8_t min[8], uint8_t packed[12]) {
    for (int j = 0; j < 4; j++) {
        packed[j] = (uint8_t)(scale[j] | scale[j + 4] >> 4 << 6);
        packed[j + 4] = (uint8_t)(min[j] | min[j + 4] >> 4 << 6);
        packed[j + 8] = (uint8_t)((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
    }
}

static void quantise_q4_k(const float *x, struct block_q4_k *b) {
    float width[8], base[8]; // of one step, and how far below zero the sub-block begins
    for (int j = 0; j < 8; j++) {
        float low = 0, high = 0;
        for (int l = 0; l < 32; l++) low = fminf(low, x[32 * j + l]), high = fmaxf(high, x[32 * j + l]);
        width[j] = (high - low) / 15, base[j] = -low;
    }
    b->d = f16_from_f32(largest(width, 8) / 63), b->dmin = f16_from_f32(largest(base, 8) / 63);
    float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    uint8_t scale[8], min[8];
    memset(b->q, 0, sizeof b->q);
    for (int j = 0; j < 8; j++) {
        scale[j] = (uint8_t)step(width[j], d, 0, 63), min[j] = (uint8_t)step(base[j], dmin, 0, 63);
        for (int l = 0; l < 32; l++)
            b->q[j / 2 * 32 + l] |= (uint8_t)(step(x[32 * j + l] + dmin * min[j], d * scale[j], 0, 15) << 4 * (j % 2));
    }
    pack_q4_k_scales(scale, min, b->scales);
}

static void quantise_q6_k(const float *x, struct block_q6_k *b) {
    float width[16];
    for (int j = 0; j < 16; j++) width[j] = largest(x + 16 * j, 16) / 31;
    b->d = f16_from_f32(largest(width, 16) / 127);
    float d = f16_to_f32(b->d);
    memset(b->ql, 0, sizeof b->ql);
    memset(b->qh, 0, sizeof b->qh);
    for (int j = 0; j < 16; j++) b->scales[j] = (int8_t)step(width[j], d, 0, 127);
    for (int e = 0; e < 256; e++) {
        int half = e / 128, k = e % 128 / 32, l = e % 32, q = step(x[e], d * b->scales[e / 16], -32, 31) + 32;
        b->ql[64 * half + 32 * (k % 2) + l] |= (uint8_t)((q & 15) << 4 * (k / 2));
        b->qh[32 * half + l] |= (uint8_t)(q >> 4 << 2 * k);
    }
}

void tiny_quantise(enum block_id format, const float *values, size_t n, void *blocks) {
    uint16_t *half = blocks;
    switch (format) {
    case BLOCK_F32:
        memcpy(blocks, values, n * sizeof *values);
        break;
    case BLOCK_F16:
        for (size_t i = 0; i < n; i++) half[i] = f16_from_f32(values[i]);
        break;
    case BLOCK_BF16:
        for (size_t i = 0; i < n; i++) half[i] = bf16_from_f32(values[i]);
        break;
    case BLOCK_Q8_0:
        for (size_t i = 0; i < n / 32; i++) quantise_q8_0(values + 32 * i, (struct block_q8_0 *)blocks + i);
        break;
    case BLOCK_Q4_0:
        for (size_t i = 0; i < n / 32; i++) quantise_q4_0(values + 32 * i, (struct block_q4_0 *)blocks + i);
        break;
    case BLOCK_Q4_K:
        for (size_t i = 0; i < n / 256; i++) quantise_q4_k(values + 256 * i, (struct block_q4_k *)blocks + i);
        break;
    case BLOCK_Q6_K:
        for (size_t i = 0; i < n / 256; i++) quantise_q6_k(values + 256 * i, (struct block_q6_k *)blocks + i);
        break;
    case BLOCK_FORMAT_COUNT:
        break;
    }
}
