// Encoders for blocks of 32 elements: a scale (Q8_0, Q4_0, Q5_0, IQ4_NL), a scale and a minimum (Q4_1, Q5_1), or a
// power of two (MXFP4). Layouts: block_plain.c and block_small.c.
#include <math.h>
#include <string.h>

#include "engine/format/block_encode_parts.h"
#include "engine/format/block_encode_search.h"

enum { ELEMENTS = 32 };

static void pack_nibbles(const int8_t code[32], uint8_t q[16]) {
    for (int j = 0; j < 16; j++) q[j] = (uint8_t)((code[j] & 15) | (code[j + 16] & 15) << 4);
}

static void pack_fifth_bits(const int8_t code[32], uint8_t qh[4]) {
    memset(qh, 0, 4);
    for (int j = 0; j < 32; j++) qh[j / 8] |= (uint8_t)((code[j] >> 4 & 1) << j % 8);
}

// ---- one scale ----

// Tries scales around the one that maps the largest weight to the outermost code, refines the best by least squares,
// then takes the best of the neighbouring halves.
static uint16_t encode_scaled(const struct code_set *set, const float *x, int8_t code[32]) {
    float part[ELEMENTS];
    clamp_weights(x, ELEMENTS, part);
    uint16_t d = nearest_half(set, part, search_scale(set, part), 0);
    nearest_codes(set, part, (struct scales){f16_to_f32(d), 0}, code);
    return d;
}

static void encode_q8_0(const float *x, struct block_q8_0 *b) {
    static const struct code_set set = {ELEMENTS, -127, 127, false, 0.96f, 0.008f, 8};
    b->d = encode_scaled(&set, x, b->q);
}

static void encode_q4_0(const float *x, struct block_q4_0 *b) {
    static const struct code_set set = {ELEMENTS, -8, 7, false, 0.8f, 0.045f, 10};
    int8_t code[ELEMENTS];
    b->d = encode_scaled(&set, x, code);
    for (int i = 0; i < ELEMENTS; i++) code[i] = (int8_t)(code[i] + 8);
    pack_nibbles(code, b->q);
}

static void encode_q5_0(const float *x, struct block_q5_0 *b) {
    static const struct code_set set = {ELEMENTS, -16, 15, false, 0.85f, 0.03f, 10};
    int8_t code[ELEMENTS];
    b->d = encode_scaled(&set, x, code);
    for (int i = 0; i < ELEMENTS; i++) code[i] = (int8_t)(code[i] + 16);
    pack_nibbles(code, b->q);
    pack_fifth_bits(code, b->qh);
}

static void encode_iq4_nl(const float *x, struct block_iq4_nl *b) {
    static const struct code_set set = {ELEMENTS, -127, 113, true, 0.8f, 0.06f, 8};
    int8_t code[ELEMENTS];
    b->d = encode_scaled(&set, x, code);
    pack_nibbles(code, b->q);
}

// ---- a scale and a minimum ----

static void encode_ranged(const struct code_set *set, const float *x, int8_t code[32], uint16_t *d, uint16_t *m) {
    float part[ELEMENTS];
    clamp_weights(x, ELEMENTS, part);
    struct scales s = search_range(set, part, false);
    *m = half_within(-s.minimum);
    s.minimum = -f16_to_f32(*m);
    *d = nearest_half(set, part, s.scale, s.minimum);
    s.scale = f16_to_f32(*d);
    nearest_codes(set, part, s, code);
}

static void encode_q4_1(const float *x, struct block_q4_1 *b) {
    static const struct code_set set = {.n = ELEMENTS, .low = 0, .high = 15};
    int8_t code[ELEMENTS];
    encode_ranged(&set, x, code, &b->d, &b->m);
    pack_nibbles(code, b->q);
}

static void encode_q5_1(const float *x, struct block_q5_1 *b) {
    static const struct code_set set = {.n = ELEMENTS, .low = 0, .high = 31};
    int8_t code[ELEMENTS];
    encode_ranged(&set, x, code, &b->d, &b->m);
    pack_nibbles(code, b->q);
    pack_fifth_bits(code, b->qh);
}

// ---- a power of two ----

// The index of the nearest of fp4_values; bit 3 is the sign.
static int8_t nearest_fp4(float v) {
    static const float middles[7] = {0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10};
    int8_t index = 0;
    for (int i = 0; i < 7; i++) index = (int8_t)(index + (fabsf(v) > middles[i]));
    return v < 0 ? (int8_t)(index | 8) : index;
}

static float fp4_error(const float *x, float scale) {
    float error = 0, inverse = 1 / scale;
    for (int i = 0; i < ELEMENTS; i++) {
        float r = x[i] - scale * (float)fp4_values[nearest_fp4(x[i] * inverse)];
        error += r * r;
    }
    return error;
}

// Tries four powers of two. The largest weight, 2^(exponent − 1) to 2^exponent, then scales to between 1.3 and 10 or
// so; the largest code is 6.
static void encode_mxfp4(const float *x, struct block_mxfp4 *b) {
    float largest = 0, scaled[ELEMENTS], error = INFINITY, best = 0;
    int exponent;
    b->e = 0;
    for (int i = 0; i < ELEMENTS; i++) largest = fmaxf(largest, fabsf(x[i]));
    frexpf(largest, &exponent);
    double unit = ldexp(1, -exponent);
    for (int i = 0; i < ELEMENTS; i++) scaled[i] = (float)(x[i] * unit); // |scaled| < 1; squares do not underflow
    for (int e = -5; e <= -2; e++) {
        if (exponent + e < -128) continue;
        float trial = fp4_error(scaled, ldexpf(1, e));
        if (trial < error) error = trial, best = ldexpf(1, -e), b->e = (uint8_t)(exponent + e + 128);
    }
    int8_t code[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) code[i] = nearest_fp4(scaled[i] * best);
    pack_nibbles(code, b->q);
}

// ---- all formats ----

// X(enumerator, struct, encoder)
#define PLAIN_FORMATS(X)                                                                                               \
    X(BLOCK_Q8_0, block_q8_0, encode_q8_0)                                                                             \
    X(BLOCK_Q4_0, block_q4_0, encode_q4_0)                                                                             \
    X(BLOCK_Q5_0, block_q5_0, encode_q5_0)                                                                             \
    X(BLOCK_IQ4_NL, block_iq4_nl, encode_iq4_nl)                                                                       \
    X(BLOCK_Q4_1, block_q4_1, encode_q4_1)                                                                             \
    X(BLOCK_Q5_1, block_q5_1, encode_q5_1)                                                                             \
    X(BLOCK_MXFP4, block_mxfp4, encode_mxfp4)

#define X(id, layout, encode)                                                                                          \
    void encode_##id(const float *x, size_t n, void *blocks) {                                                         \
        struct layout b;                                                                                               \
        uint8_t *out = blocks;                                                                                         \
        for (; n >= ELEMENTS; n -= ELEMENTS, x += ELEMENTS, out += sizeof b) {                                         \
            encode(x, &b);                                                                                             \
            memcpy(out, &b, sizeof b);                                                                                 \
        }                                                                                                              \
    }
PLAIN_FORMATS(X)
#undef X
