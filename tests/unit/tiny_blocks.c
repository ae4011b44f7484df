#include "tests/unit/tiny_blocks.h"

#include <math.h>
#include <string.h>

#include "tests/unit/tiny_blocks_parts.h"

float tiny_largest(const float *x, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    return most;
}

int tiny_step(float x, float scale, int low, int high) {
    if (scale == 0) return 0;
    float q = rintf(x / scale);
    return q < (float)low ? low : q > (float)high ? high : (int)q;
}

int tiny_nearest(float x, float scale, const int8_t values[16]) {
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (fabsf(x - scale * values[i]) < fabsf(x - scale * values[best])) best = i;
    return best;
}

static uint16_t bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --- 32 elements -----------------------------------------------------------------------------------------------------

static void range(const float *x, int n, float *low, float *high) {
    *low = *high = x[0];
    for (int i = 1; i < n; i++) *low = fminf(*low, x[i]), *high = fmaxf(*high, x[i]);
}

static void put_nibbles(const int codes[32], uint8_t q[16]) {
    for (int j = 0; j < 16; j++) q[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

static void put_fifth_bits(const int codes[32], uint8_t qh[4]) {
    memset(qh, 0, 4);
    for (int j = 0; j < 32; j++) qh[j / 8] |= (uint8_t)((codes[j] >> 4 & 1) << j % 8);
}

void tiny_BLOCK_Q8_0(const float *x, void *block) {
    struct block_q8_0 *b = block;
    b->d = f16_from_f32(tiny_largest(x, 32) / 127);
    for (int j = 0; j < 32; j++) b->q[j] = (int8_t)tiny_step(x[j], f16_to_f32(b->d), -127, 127);
}

void tiny_BLOCK_Q4_0(const float *x, void *block) {
    struct block_q4_0 *b = block;
    int codes[32];
    b->d = f16_from_f32(tiny_largest(x, 32) / 7.5f);
    for (int j = 0; j < 32; j++) codes[j] = tiny_step(x[j], f16_to_f32(b->d), -8, 7) + 8;
    put_nibbles(codes, b->q);
}

void tiny_BLOCK_Q5_0(const float *x, void *block) {
    struct block_q5_0 *b = block;
    int codes[32];
    b->d = f16_from_f32(tiny_largest(x, 32) / 15.5f);
    for (int j = 0; j < 32; j++) codes[j] = tiny_step(x[j], f16_to_f32(b->d), -16, 15) + 16;
    put_nibbles(codes, b->q);
    put_fifth_bits(codes, b->qh);
}

// d, m and the codes of 32 values in steps of their range.
static void from_minimum(const float *x, int most, uint16_t *d, uint16_t *m, int codes[32]) {
    float low, high;
    range(x, 32, &low, &high);
    *d = f16_from_f32((high - low) / (float)most), *m = f16_from_f32(low);
    for (int j = 0; j < 32; j++) codes[j] = tiny_step(x[j] - f16_to_f32(*m), f16_to_f32(*d), 0, most);
}

void tiny_BLOCK_Q4_1(const float *x, void *block) {
    struct block_q4_1 *b = block;
    int codes[32];
    from_minimum(x, 15, &b->d, &b->m, codes);
    put_nibbles(codes, b->q);
}

void tiny_BLOCK_Q5_1(const float *x, void *block) {
    struct block_q5_1 *b = block;
    int codes[32];
    from_minimum(x, 31, &b->d, &b->m, codes);
    put_nibbles(codes, b->q);
    put_fifth_bits(codes, b->qh);
}

void tiny_BLOCK_IQ4_NL(const float *x, void *block) {
    struct block_iq4_nl *b = block;
    int codes[32];
    b->d = f16_from_f32(tiny_largest(x, 32) / 113);
    for (int j = 0; j < 32; j++) codes[j] = tiny_nearest(x[j], f16_to_f32(b->d), iq4_values);
    put_nibbles(codes, b->q);
}

// --- four-bit floats and ternary values ------------------------------------------------------------------------------

void tiny_BLOCK_MXFP4(const float *x, void *block) {
    struct block_mxfp4 *b = block;
    int codes[32];
    float most = tiny_largest(x, 32);
    b->e = (uint8_t)(most > 0 ? 127 + (int)ceilf(log2f(most / 6)) : 0);
    for (int j = 0; j < 32; j++) codes[j] = tiny_nearest(x[j], mxfp4_scale(b->e), fp4_values);
    put_nibbles(codes, b->q);
}

void tiny_BLOCK_NVFP4(const float *x, void *block) {
    struct block_nvfp4 *b = block;
    for (int part = 0; part < 4; part++, x += 16) {
        float most = tiny_largest(x, 16);
        b->d[part] = 0;
        while (b->d[part] < 126 && nvfp4_scale(b->d[part]) * 12 < most) b->d[part]++;
        for (int j = 0; j < 8; j++)
            b->q[part][j] = (uint8_t)(tiny_nearest(x[j], nvfp4_scale(b->d[part]), fp4_values) |
                                      tiny_nearest(x[j + 8], nvfp4_scale(b->d[part]), fp4_values) << 4);
    }
}

static uint16_t ternary(const float *x, int codes[256]) {
    uint16_t d = f16_from_f32(tiny_largest(x, 256) / 1.5f);
    for (int e = 0; e < 256; e++) codes[e] = tiny_step(x[e], f16_to_f32(d), -1, 1) + 1;
    return d;
}

void tiny_BLOCK_TQ2_0(const float *x, void *block) {
    struct block_tq2_0 *b = block;
    int codes[256];
    b->d = ternary(x, codes);
    memset(b->q, 0, sizeof b->q);
    for (int e = 0; e < 256; e++) b->q[e / 128 * 32 + e % 32] |= (uint8_t)(codes[e] << e % 128 / 32 * 2);
}

// Codes `stride` apart as the digits of a fraction in base 3, which a byte holds rounded up.
static uint8_t fraction(const int *codes, int stride, int n) {
    int number = 0;
    for (int i = 0; i < 5; i++) number = 3 * number + (i < n ? codes[i * stride] : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

void tiny_BLOCK_TQ1_0(const float *x, void *block) {
    struct block_tq1_0 *b = block;
    int codes[256];
    b->d = ternary(x, codes);
    for (int j = 0; j < 32; j++) b->q[j] = fraction(codes + j, 32, 5);
    for (int j = 0; j < 16; j++) b->q[32 + j] = fraction(codes + 160 + j, 16, 5);
    for (int j = 0; j < 4; j++) b->qh[j] = fraction(codes + 240 + j, 4, 4);
}

// --- all -------------------------------------------------------------------------------------------------------------

static void (*const quantisers[BLOCK_FORMAT_COUNT])(const float *x, void *block) = {
#define X(id, gguf, name, bytes, elements) [id] = tiny_##id,
    QUANTISED_FORMATS(X)
#undef X
};

void tiny_quantise(enum block_id format, const float *values, size_t n, void *blocks) {
    const struct block_format *f = &block_formats[format];
    uint16_t *half = blocks;
    if (format == BLOCK_F32) memcpy(blocks, values, n * sizeof *values);
    if (format == BLOCK_F16)
        for (size_t i = 0; i < n; i++) half[i] = f16_from_f32(values[i]);
    if (format == BLOCK_BF16)
        for (size_t i = 0; i < n; i++) half[i] = bf16_from_f32(values[i]);
    if (quantisers[format])
        for (size_t b = 0; b < n / f->elements; b++)
            quantisers[format](values + b * f->elements, (uint8_t *)blocks + b * f->bytes);
}
