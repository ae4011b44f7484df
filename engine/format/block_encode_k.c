// Encoders for blocks of 256 elements: parts with small integer scales in units of one or two halves. Layouts:
// block_k.c.
//
// Each part is first searched on its own; the largest scale (and the largest minimum) then sets the unit, and each part
// takes the best integer scale in that unit. With all integers fixed, least squares improves the units; repeat while
// the error falls.
#include <math.h>
#include <string.h>

#include "engine/format/block_encode_parts.h"
#include "engine/format/block_encode_search.h"

enum { ELEMENTS = 256, MAX_PARTS = 16, ROUNDS = 3 };

struct super_shape {
    struct code_set set;
    int low, high; // range of integer scales; minimums, if any, from 0 to `high`
};

// A block before packing: element i of part p is d × scale[p] × code[i] − dmin × minimum[p].
struct super_block {
    uint16_t d, dmin;
    int scale[MAX_PARTS], minimum[MAX_PARTS];
    int8_t code[ELEMENTS];
    float error;
};

static int round_to_range(float value, int low, int high) {
    return value <= (float)low ? low : value >= (float)high ? high : (int)rintf(value);
}

static float quotient(float value, float unit) { return unit != 0 ? value / unit : 0; }

// The half to start with; 0 only if value is.
static uint16_t initial_half(float value) {
    uint16_t half = half_within(value);
    return value != 0 && !(half & 0x7fff) ? (uint16_t)(half | 1) : half;
}

// ---- scales ----

// Gives every part its best integer scale in units of b->d, near its ideal scale.
static void choose_scales(const struct super_shape *shape, const float *x, const float *ideal, struct super_block *b,
                          struct fit *fits) {
    float d = f16_to_f32(b->d);
    b->error = 0;
    for (int p = 0, n = shape->set.n; p < ELEMENTS / n; p++) {
        int middle = round_to_range(quotient(ideal[p], d), shape->low, shape->high);
        fits[p].rr = INFINITY;
        for (int scale = middle - 1; scale <= middle + 1; scale++) {
            if (scale < shape->low || scale > shape->high) continue;
            struct fit f = fit_part(&shape->set, x + p * n, (struct scales){d * (float)scale, 0});
            if (f.rr < fits[p].rr) fits[p] = f, b->scale[p] = scale;
        }
        b->error += fits[p].rr;
    }
}

static void encode_scaled(const struct super_shape *shape, const float *x, struct super_block *best) {
    float part[ELEMENTS], ideal[MAX_PARTS], largest = 0;
    struct fit fits[MAX_PARTS];
    int n = shape->set.n;
    clamp_weights(x, ELEMENTS, part);
    for (int p = 0; p < ELEMENTS / n; p++) {
        ideal[p] = search_scale(&shape->set, part + p * n);
        if (fabsf(ideal[p]) > fabsf(largest)) largest = ideal[p];
    }
    struct super_block b = {.d = initial_half(largest / (float)shape->low)};
    best->error = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        choose_scales(shape, part, ideal, &b, fits);
        if (!(b.error < best->error)) break;
        *best = b;
        float numerator = 0, denominator = 0;
        for (int p = 0; p < ELEMENTS / n; p++) {
            float scale = (float)b.scale[p];
            numerator += scale * fits[p].rq, denominator += scale * scale * fits[p].qq;
        }
        b.d = half_within(f16_to_f32(b.d) + quotient(numerator, denominator));
    }
    for (int p = 0; p < ELEMENTS / n; p++) {
        struct scales s = {f16_to_f32(best->d) * (float)best->scale[p], 0};
        nearest_codes(&shape->set, part + p * n, s, best->code + p * n);
    }
}

// ---- scales and minimums ----

static void choose_pair(const struct super_shape *shape, const float *x, struct scales ideal, struct scales unit,
                        int *scale, int *minimum, struct fit *fit) {
    int s0 = round_to_range(quotient(ideal.scale, unit.scale), 0, shape->high);
    int m0 = round_to_range(quotient(ideal.minimum, unit.minimum), 0, shape->high);
    fit->rr = INFINITY;
    for (int s = s0 - 1; s <= s0 + 1; s++)
        for (int m = m0 - 1; m <= m0 + 1; m++) {
            if (s < 0 || s > shape->high || m < 0 || m > shape->high) continue;
            struct fit f = fit_part(&shape->set, x, (struct scales){unit.scale * (float)s, unit.minimum * (float)m});
            if (f.rr < fit->rr) *fit = f, *scale = s, *minimum = m;
        }
}

// One least-squares step on the units, with all integers fixed.
static void improve_units(const struct super_shape *shape, struct super_block *b, const struct fit *fits) {
    float ss = 0, sm = 0, mm = 0, sr = 0, mr = 0, n = (float)shape->set.n;
    for (int p = 0; p < ELEMENTS / shape->set.n; p++) {
        float s = (float)b->scale[p], m = (float)b->minimum[p];
        ss += s * s * fits[p].qq, sm += s * m * fits[p].q, mm += m * m * n;
        sr += s * fits[p].rq, mr += m * fits[p].r;
    }
    float determinant = ss * mm - sm * sm, d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    if (determinant > 1e-6f * ss * mm) {
        d += (mm * sr - sm * mr) / determinant;
        dmin += (sm * sr - ss * mr) / determinant;
    } else {
        d += quotient(sr, ss);
    }
    b->d = half_within(d);
    b->dmin = half_within(dmin);
}

static void encode_ranged(const struct super_shape *shape, const float *x, struct super_block *best) {
    float part[ELEMENTS];
    struct scales ideal[MAX_PARTS], largest = {0};
    struct fit fits[MAX_PARTS];
    int n = shape->set.n;
    clamp_weights(x, ELEMENTS, part);
    for (int p = 0; p < ELEMENTS / n; p++) {
        ideal[p] = search_range(&shape->set, part + p * n, true);
        largest.scale = fmaxf(largest.scale, ideal[p].scale),
        largest.minimum = fmaxf(largest.minimum, ideal[p].minimum);
    }
    struct super_block b = {.d = initial_half(largest.scale / (float)shape->high),
                            .dmin = initial_half(largest.minimum / (float)shape->high)};
    best->error = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        struct scales unit = {f16_to_f32(b.d), f16_to_f32(b.dmin)};
        b.error = 0;
        for (int p = 0; p < ELEMENTS / n; p++) {
            choose_pair(shape, part + p * n, ideal[p], unit, &b.scale[p], &b.minimum[p], &fits[p]);
            b.error += fits[p].rr;
        }
        if (!(b.error < best->error)) break;
        *best = b;
        improve_units(shape, &b, fits);
    }
    for (int p = 0; p < ELEMENTS / n; p++) {
        struct scales s = {f16_to_f32(best->d) * (float)best->scale[p],
                           f16_to_f32(best->dmin) * (float)best->minimum[p]};
        nearest_codes(&shape->set, part + p * n, s, best->code + p * n);
    }
}

// ---- packing ----

// Two-bit values: four quarters of 32 elements share the 32 bytes of each half.
static void pack_quarters(const int8_t *code, uint8_t q[64]) {
    memset(q, 0, 64);
    for (int i = 0; i < ELEMENTS; i++) q[i / 128 * 32 + i % 32] |= (uint8_t)((code[i] & 3) << i / 32 % 4 * 2);
}

// Nibbles of Q4_K and Q5_K: sub-blocks 2k and 2k + 1 share 32 bytes.
static void pack_nibbles(const int8_t *code, uint8_t q[128]) {
    for (int i = 0; i < 128; i++) {
        const int8_t *pair = code + i / 32 * 64 + i % 32;
        q[i] = (uint8_t)((pair[0] & 15) | (pair[32] & 15) << 4);
    }
}

static void pack_scale_min(const struct super_block *s, uint8_t packed[12]) {
    for (int j = 0; j < 4; j++) {
        packed[j] = (uint8_t)(s->scale[j] | s->scale[j + 4] >> 4 << 6);
        packed[j + 4] = (uint8_t)(s->minimum[j] | s->minimum[j + 4] >> 4 << 6);
        packed[j + 8] = (uint8_t)((s->scale[j + 4] & 15) | (s->minimum[j + 4] & 15) << 4);
    }
}

static void pack_q2_k(const struct super_block *s, struct block_q2_k *b) {
    b->d = s->d, b->dmin = s->dmin;
    for (int p = 0; p < 16; p++) b->scales[p] = (uint8_t)(s->scale[p] | s->minimum[p] << 4);
    pack_quarters(s->code, b->q);
}

static void pack_q3_k(const struct super_block *s, struct block_q3_k *b) {
    *b = (struct block_q3_k){.d = s->d};
    pack_quarters(s->code, b->q); // code + 4 and code agree in the low two bits
    for (int i = 0; i < ELEMENTS; i++) b->qh[i % 32] |= (uint8_t)((s->code[i] >= 0) << i / 32);
    for (int p = 0; p < 16; p++) {
        int scale = s->scale[p] + 32;
        b->scales[p % 8] |= (uint8_t)((scale & 15) << p / 8 * 4);
        b->scales[8 + p % 4] |= (uint8_t)(scale >> 4 << p / 4 * 2);
    }
}

static void pack_q4_k(const struct super_block *s, struct block_q4_k *b) {
    b->d = s->d, b->dmin = s->dmin;
    pack_scale_min(s, b->scales);
    pack_nibbles(s->code, b->q);
}

static void pack_q5_k(const struct super_block *s, struct block_q5_k *b) {
    b->d = s->d, b->dmin = s->dmin;
    pack_scale_min(s, b->scales);
    pack_nibbles(s->code, b->q);
    memset(b->qh, 0, sizeof b->qh);
    for (int i = 0; i < ELEMENTS; i++) b->qh[i % 32] |= (uint8_t)((s->code[i] >> 4 & 1) << i / 32);
}

static void pack_q6_k(const struct super_block *s, struct block_q6_k *b) {
    *b = (struct block_q6_k){.d = s->d};
    for (int p = 0; p < 16; p++) b->scales[p] = (int8_t)s->scale[p];
    for (int i = 0; i < ELEMENTS; i++) {
        int half = i / 128, quarter = i / 32 % 4, code = s->code[i] + 32;
        b->ql[64 * half + quarter % 2 * 32 + i % 32] |= (uint8_t)((code & 15) << quarter / 2 * 4);
        b->qh[32 * half + i % 32] |= (uint8_t)(code >> 4 << quarter * 2);
    }
}

static void pack_iq4_xs(const struct super_block *s, struct block_iq4_xs *b) {
    *b = (struct block_iq4_xs){.d = s->d};
    for (int p = 0; p < 8; p++) {
        int scale = s->scale[p] + 32;
        b->scales_low[p / 2] |= (uint8_t)((scale & 15) << p % 2 * 4);
        b->scales_high |= (uint16_t)(scale >> 4 << 2 * p);
    }
    for (int i = 0; i < 128; i++) {
        const int8_t *pair = s->code + i / 16 * 32 + i % 16;
        b->q[i] = (uint8_t)(pair[0] | pair[16] << 4);
    }
}

// X(enumerator, struct, packer, search, shape)
#define SUPER_FORMATS(X)                                                                                               \
    X(BLOCK_Q2_K, block_q2_k, pack_q2_k, encode_ranged, {{.n = 16, .low = 0, .high = 3}, 0, 15})                       \
    X(BLOCK_Q3_K, block_q3_k, pack_q3_k, encode_scaled, {{16, -4, 3, false, 0.7f, 0.1f, 8}, -32, 31})                  \
    X(BLOCK_Q4_K, block_q4_k, pack_q4_k, encode_ranged, {{.n = 32, .low = 0, .high = 15}, 0, 63})                      \
    X(BLOCK_Q5_K, block_q5_k, pack_q5_k, encode_ranged, {{.n = 32, .low = 0, .high = 31}, 0, 63})                      \
    X(BLOCK_Q6_K, block_q6_k, pack_q6_k, encode_scaled, {{16, -32, 31, false, 0.9f, 0.02f, 10}, -128, 127})            \
    X(BLOCK_IQ4_XS, block_iq4_xs, pack_iq4_xs, encode_scaled, {{32, -127, 113, true, 0.8f, 0.06f, 8}, -32, 31})

#define X(id, layout, pack, search, ...)                                                                               \
    void encode_##id(const float *x, size_t n, void *blocks) {                                                         \
        static const struct super_shape shape = __VA_ARGS__;                                                           \
        struct layout b;                                                                                               \
        uint8_t *out = blocks;                                                                                         \
        struct super_block s;                                                                                          \
        for (; n >= ELEMENTS; n -= ELEMENTS, x += ELEMENTS, out += sizeof b) {                                         \
            search(&shape, x, &s);                                                                                     \
            pack(&s, &b);                                                                                              \
            memcpy(out, &b, sizeof b);                                                                                 \
        }                                                                                                              \
    }
SUPER_FORMATS(X)
#undef X
