// Kernels: the inner loops of the CPU backend, once per instruction set, behind one table.
//
// Every kernel defines its result to the last bit: each output is accumulated in one order that depends neither on the
// instruction set nor on how many columns are computed together. kernels_scalar.c is the specification; AVX2 and
// AVX-512 agree with it bit for bit. So a row's result is the same alone and in any batch.
#ifndef CONFAB_CPU_KERNELS_H
#define CONFAB_CPU_KERNELS_H

#include <string.h>

#include "engine/model/model.h"

enum {
    STRIP_ROWS = 32,     // weight rows that a matrix kernel computes at once
    BLOCK_COLUMNS = 32,  // inputs that share a scale
    PANEL_COLUMNS = 6,   // batch rows that a matrix kernel computes at once, at most
    SUPER_COLUMNS = 256, // columns of a K-quant block
};

// 32 consecutive inputs of one batch row as a quantised matrix reads them: value = scale × q. Scales have SCALE_STEPS
// steps from one power of two to the next, so that what they make of a weight's scale can be kept for many inputs.
struct activation_block {
    int8_t q[BLOCK_COLUMNS]; // in [−127, 127]
    float scale;
    float base;       // 1.5 × 2^23 × the power of two: a sum added to its bits makes base + the power × sum
    int32_t zero;     // −8 × Σ q: what integer sums start from, so that weights can be unsigned
    int32_t zero_low; // the same of q[0..15]
    float minimum;    // −scale × Σ q, for weights with a minimum
};
_Static_assert(sizeof(struct activation_block) == 52, "panels are packed");

enum { SCALE_STEPS = 64 };

// The scale for inputs of at most `maximum`, rounded up to a step. The largest becomes at most 127.49, which rounds down.
static inline float activation_scale(float maximum) {
    const uint32_t below = (1u << 23) / SCALE_STEPS - 1;
    float scale = maximum / 127.49f;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + below) & ~below;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

// What a block of inputs with these sums of q[0..15] and q[0..31] has besides q; scale 0 or NaN where q is all zero.
static inline void activation_finish(struct activation_block *block, float scale, int low, int sum) {
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits & 0x7F800000) + 0x0BC00000;
    memcpy(&block->base, &bits, sizeof bits);
    block->base += scale - scale; // NaN if scale is
    block->scale = scale;
    block->zero = -8 * sum;
    block->zero_low = -8 * low;
    block->minimum = scale * (float)-sum;
}

// One strip of a matrix times one panel of inputs: out[c][r] = Σ weight[r][i] × input[c][i].
struct strip {
    const struct block_format *format;
    const void *weights; // prepared tiles, tiles.h; or rows of the file's blocks, row_bytes apart
    // Prepared weights that are multiplied later, of as many bytes: if `fetches`, every turns-th block of columns, from
    // block `turn` on, is fetched meanwhile; turns is the number of panels that share this out.
    const void *ahead;
    bool fetches;
    int turn, turns;
    size_t row_bytes;    // of weights that are not prepared
    int rows;            // of this strip, 1–32; prepared strips are padded to 32
    int columns;
    int width, panel; // inputs, and how many of them make a panel: all for strip, 1–PANEL_COLUMNS
    const struct activation_block *blocks; // panels of [columns / 32][inputs], for prepared weights
    const float *values;                   // [width][columns], for others
    float *out;                            // [width][32]
};

// An online softmax: the running maximum and sum of a query's scores.
struct softmax {
    float maximum, sum;
};

enum { NORM_KINDS = NORM_LAYER + 1, ACTIVATION_KINDS = ACTIVATION_SILU_CLAMPED + 1 };

struct cpu_kernels {
    const char *name;
    void (*strip[BLOCK_FORMAT_COUNT])(const struct strip *s);
    // Any number of panels, faster than one by one when they are several; NULL where that is not so.
    void (*many[BLOCK_FORMAT_COUNT])(const struct strip *s);
    // By enum norm_kind; bias may be NULL and is NORM_LAYER's. x and y may be the same.
    void (*norm[NORM_KINDS])(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon);
    // n_blocks × 32 values to out[0], out[stride] …; a block that holds a NaN or QUANTIZE_HUGE becomes NaN.
    void (*quantize)(const float *x, int n_blocks, struct activation_block *out, int stride);
    // By enum activation: gate = f(gate) × up, or what else its comment says; n a multiple of 16.
    void (*activate[ACTIVATION_KINDS])(float *gate, const float *up, int n);
    void (*softcap)(float *x, int n, float cap);                         // x = cap × tanh(x / cap); n a multiple of 16
    void (*accumulate)(float *sum, const float *x, int n, float factor); // sum += factor × x
    void (*to_half)(const float *x, uint16_t *out, int n);
    // out[i][0..31] += Σ_j a[i][j] × b[j][0..31] for i < rows, j < n; strides in elements.
    void (*half_product)(const uint16_t *b, int b_stride, int n, const float *a, int a_stride, int rows, float *out,
                         int out_stride);
    // scores[0..31] become weights relative to the new maximum, 0 outside [first, end), which is not empty; returns
    // what earlier sums and outputs must be multiplied by.
    float (*softmax_page)(float *scores, int first, int end, struct softmax *state);
    void (*scale)(float *x, int n, float factor); // n a multiple of 16
};

extern const struct cpu_kernels kernels_scalar, kernels_avx2, kernels_avx512;
extern const struct cpu_kernels kernels_exact; // double accumulation, decoded weights; no half or integer kernels

// The best that this processor runs, or what CONFAB_CPU names (scalar, avx2, avx512) if it can run that.
const struct cpu_kernels *kernels_choose(void);
// The named table if this processor runs it, or NULL.
const struct cpu_kernels *kernels_find(const char *name);

// e^x, the same polynomial in every instruction set: x is clamped to [EXP_LOW, EXP_HIGH], then 2^n × p(r).
#define EXP_LOW      -87.0f
#define EXP_HIGH     88.0f
#define EXP_LOG2E    1.44269504f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW  -2.12194440e-4f
// p(r) = Σ r^k / k!, k = 0 … 6: |r| ≤ ln 2 / 2, relative error about 1e-7.
#define EXP_C2 (1.0f / 2)
#define EXP_C3 (1.0f / 6)
#define EXP_C4 (1.0f / 24)
#define EXP_C5 (1.0f / 120)
#define EXP_C6 (1.0f / 720)

// GELU in its tanh form is x·σ(x·(LINEAR + CUBIC·x²)); gpt-oss's activation is min(g, LIMIT)·σ(SLOPE·g)·(u + 1).
#define GELU_LINEAR   1.59576912f   // 2·√(2/π)
#define GELU_CUBIC    0.0713548163f // 0.044715 of that
#define CLAMPED_LIMIT 7.0f
#define CLAMPED_SLOPE 1.702f

// Smaller inputs count as zero, so that products of scales are normal numbers; larger ones as infinite, so that a
// block's `base` is finite.
#define QUANTIZE_TINY 1e-20f
#define QUANTIZE_HUGE 1e30f

#endif
