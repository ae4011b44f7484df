// The specification of the kernels of packed weights, in plain C.
#include <math.h>

#include "engine/cpu/packed.h"

// 32 columns of one row: integers under one scale and perhaps a minimum, or under one of each for either half.
struct part {
    int q[32];
    float scale[2], min[2];
};
enum shape { ONE_SCALE, ONE_SCALE_MIN, TWO_SCALES, TWO_SCALES_MIN };

static float multiply(const struct part *p, const struct activation_block *a, enum shape shape, float total) {
    int sum[2] = {0, 0};
    for (int i = 0; i < 32; i++) sum[i / 16] += p->q[i] * a->q[i];
    if (shape <= ONE_SCALE_MIN) {
        total = fmaf((float)(sum[0] + sum[1]), p->scale[0] * a->scale, total);
        return shape == ONE_SCALE ? total : fmaf(p->min[0], a->minimum, total);
    }
    float both = (float)sum[0] * p->scale[0];
    both = fmaf((float)sum[1], p->scale[1], both);
    if (shape == TWO_SCALES_MIN) { // the inputs' sums are there times −8
        both = fmaf((float)a->zero_low, p->min[0] * 0.125f, both);
        both = fmaf((float)(a->zero - a->zero_low), p->min[1] * 0.125f, both);
    }
    return fmaf(both, a->scale, total);
}

#define STRIP(name, shape)                                                                                             \
    void strip_##name##_scalar(const struct strip *s) {                                                                \
        for (int c = 0; c < s->width; c++)                                                                             \
            for (int r = 0; r < STRIP_ROWS; r++) {                                                                     \
                float total = 0;                                                                                       \
                for (int b = 0; b < s->columns / BLOCK_COLUMNS; b++) {                                                 \
                    struct part p;                                                                                     \
                    read_##name(s->weights, b, r, &p);                                                                 \
                    total = multiply(&p, &s->blocks[b * s->width + c], shape, total);                                  \
                }                                                                                                      \
                s->out[c * STRIP_ROWS + r] = total;                                                                    \
            }                                                                                                          \
    }

static int byte_at(const uint8_t lines[][2][64], int r, int i) { return lines[i / 4][r / 16][r % 16 * 4 + i % 4]; }
static int nibble_at(const uint8_t q[4][2][64], int r, int i) { return byte_at(q, r, i % 16) >> i / 16 * 4 & 15; }
static int pair_at(const uint8_t q[2][2][64], int r, int i) { return byte_at(q, r, i % 8) >> i / 8 * 2 & 3; }
static int five_at(const uint8_t q[4][2][64], const uint8_t high[2][64], int r, int i) {
    return nibble_at(q, r, i) | (high[r / 16][r % 16 * 4 + i % 4] >> i / 4 & 1) << 4;
}

static void read_q4_0(const struct packed_q4_0 *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]);
    for (int i = 0; i < 32; i++) p->q[i] = nibble_at(packed[b].q, r, i) - 8;
}
STRIP(q4_0, ONE_SCALE)

static void read_q8_0(const struct packed_q8_0 *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]);
    for (int i = 0; i < 32; i++) p->q[i] = byte_at(packed[b].q, r, i) - 128;
}
STRIP(q8_0, ONE_SCALE)

static void read_q4_1(const struct packed_q4_1 *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]), p->min[0] = f16_to_f32(packed[b].min[r]);
    for (int i = 0; i < 32; i++) p->q[i] = nibble_at(packed[b].q, r, i);
}
STRIP(q4_1, ONE_SCALE_MIN)

static void read_q5_0(const struct packed_q5_0 *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]);
    for (int i = 0; i < 32; i++) p->q[i] = five_at(packed[b].q, packed[b].high, r, i) - 16;
}
STRIP(q5_0, ONE_SCALE)

static void read_q5_1(const struct packed_q5_1 *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]), p->min[0] = f16_to_f32(packed[b].min[r]);
    for (int i = 0; i < 32; i++) p->q[i] = five_at(packed[b].q, packed[b].high, r, i);
}
STRIP(q5_1, ONE_SCALE_MIN)

static void read_q4_k(const struct packed_q4_k *packed, int b, int r, struct part *p) {
    const struct packed_q4_k *t = &packed[b / 8];
    p->scale[0] = f16_to_f32(t->d[r]) * t->part[b % 8].scale[r];
    p->min[0] = f16_to_f32(t->dmin[r]) * t->part[b % 8].min[r];
    for (int i = 0; i < 32; i++) p->q[i] = nibble_at(t->part[b % 8].q, r, i);
}
STRIP(q4_k, ONE_SCALE_MIN)

static void read_q5_k(const struct packed_q5_k *packed, int b, int r, struct part *p) {
    const struct packed_q5_k *t = &packed[b / 8];
    p->scale[0] = f16_to_f32(t->d[r]) * t->part[b % 8].scale[r];
    p->min[0] = f16_to_f32(t->dmin[r]) * t->part[b % 8].min[r];
    for (int i = 0; i < 32; i++) p->q[i] = five_at(t->part[b % 8].q, t->part[b % 8].high, r, i);
}
STRIP(q5_k, ONE_SCALE_MIN)

static void read_q2_k(const struct packed_q2_k *packed, int b, int r, struct part *p) {
    const struct packed_q2_k *t = &packed[b / 8];
    for (int half = 0; half < 2; half++) {
        p->scale[half] = f16_to_f32(t->d[r]) * (float)(t->part[b % 8].scale[half][r] & 15);
        p->min[half] = f16_to_f32(t->dmin[r]) * (float)(t->part[b % 8].scale[half][r] >> 4);
    }
    for (int i = 0; i < 32; i++) p->q[i] = pair_at(t->part[b % 8].q, r, i);
}
STRIP(q2_k, TWO_SCALES_MIN)

static void read_q6_k(const struct packed_q6_k *packed, int b, int r, struct part *p) {
    const struct packed_q6_k *t = &packed[b / 8];
    for (int half = 0; half < 2; half++) p->scale[half] = f16_to_f32(t->d[r]) * t->part[b % 8].scale[half][r];
    for (int i = 0; i < 32; i++)
        p->q[i] = (nibble_at(t->part[b % 8].low, r, i) | pair_at(t->part[b % 8].high, r, i) << 4) - 32;
}
STRIP(q6_k, TWO_SCALES)

static void read_iq4_nl(const struct packed_iq4_nl *packed, int b, int r, struct part *p) {
    p->scale[0] = f16_to_f32(packed[b].d[r]);
    for (int i = 0; i < 32; i++) p->q[i] = iq4_values[nibble_at(packed[b].q, r, i)];
}
STRIP(iq4_nl, ONE_SCALE)

static void read_iq4_xs(const struct packed_iq4_xs *packed, int b, int r, struct part *p) {
    const struct packed_iq4_xs *t = &packed[b / 8];
    p->scale[0] = f16_to_f32(t->d[r]) * t->part[b % 8].scale[r];
    for (int i = 0; i < 32; i++) p->q[i] = iq4_values[nibble_at(t->part[b % 8].q, r, i)];
}
STRIP(iq4_xs, ONE_SCALE)

static void read_mxfp4(const struct packed_mxfp4 *packed, int b, int r, struct part *p) {
    p->scale[0] = mxfp4_scale(packed[b].e[r]);
    for (int i = 0; i < 32; i++) p->q[i] = fp4_values[nibble_at(packed[b].q, r, i)];
}
STRIP(mxfp4, ONE_SCALE)

static void read_nvfp4(const struct packed_nvfp4 *packed, int b, int r, struct part *p) {
    const struct packed_nvfp4 *t = &packed[b / 2];
    for (int half = 0; half < 2; half++) p->scale[half] = nvfp4_scale(t->part[b % 2].scale[half][r]);
    for (int i = 0; i < 32; i++) p->q[i] = fp4_values[nibble_at(t->part[b % 2].q, r, i)];
}
STRIP(nvfp4, TWO_SCALES)

static void read_bytes(const struct packed_bytes *packed, int b, int r, struct part *p) {
    const struct packed_bytes *t = &packed[b / 8];
    for (int half = 0; half < 2; half++) p->scale[half] = t->d[r] * t->part[b % 8].scale[half][r];
    for (int i = 0; i < 32; i++) p->q[i] = byte_at(t->part[b % 8].q, r, i) - 128;
}
STRIP(bytes, TWO_SCALES)
