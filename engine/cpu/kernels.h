// Kernels: the inner loops of the CPU backend, once per instruction set, behind one table.
//
// Every kernel defines its result to the last bit: each output is accumulated in one order that depends neither on the
// instruction set nor on how many inputs are computed together. kernels_scalar.c is the specification; AVX2, with
// and without VNNI, and AVX-512 agree with it bit for bit. So a row's result is the same alone and in any batch. Only
// OpenBLAS (kernels_blas.h) promises none of that.
#ifndef CONFAB_CPU_KERNELS_H
#define CONFAB_CPU_KERNELS_H

#include <string.h>

#include "engine/backend.h"
#include "engine/base/exponential.h"

enum {
    STRIP_ROWS = 32,     // weight rows that a matrix kernel computes at once
    BLOCK_COLUMNS = 32,  // columns that share a scale
    PANEL_INPUTS = 6,    // batch rows that a matrix kernel computes at once, at most
    MANY_INPUTS = 128,   // batch rows from which on unpacking weights for them pays
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
    int32_t start;    // the bits of base and 16 × zero: what sums begin from that do both, of weights + 128
    float minimum;    // −scale × Σ q, for weights with a minimum
};
_Static_assert(sizeof(struct activation_block) == 56, "panels are packed");

// Of the SCALE_CHOICES smallest scales that fit a block takes the one that leaves the least squared error: about a
// tenth less than the smallest leaves.
enum { SCALE_STEPS = 64, SCALE_STEP_BITS = (1 << 23) / SCALE_STEPS, SCALE_CHOICES = 4 };

// The smallest scale for inputs of at most `maximum`, in its bits; the next is SCALE_STEP_BITS more. The largest input
// becomes at most 127.49, which rounds down.
static inline uint32_t activation_scale_bits(float maximum) {
    const float scale = maximum / 127.49f;
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    return (bits + SCALE_STEP_BITS - 1) & ~(uint32_t)(SCALE_STEP_BITS - 1);
}

// The first of the least of some numbers ≥ 0, of which the last two bits do not count: without a branch, which nobody
// could foretell.
static inline int least_error(const float errors[SCALE_CHOICES]) {
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < SCALE_CHOICES; i++) {
        uint32_t bits;
        memcpy(&bits, &errors[i], sizeof bits);
        bits = (bits & ~(uint32_t)(SCALE_CHOICES - 1)) | i;
        least = bits < least ? bits : least;
    }
    return (int)(least % SCALE_CHOICES);
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
    memcpy(&block->start, &block->base, sizeof block->start);
    block->start += 16 * block->zero;
    block->minimum = scale * (float)-sum;
}

// One strip of a matrix times inputs, rows of the batch: out[c][r] = Σ weight[r][i] × input[c][i]. For `strip` they are
// one panel or less, for `many` any number of panels.
struct strip {
    const struct block_format *format;
    const void *weights; // packed blocks, packed.h; or rows of the file's blocks, row_bytes apart
    // Packed weights that are multiplied later, `ahead` bytes on, for kernels that go by it: if `fetches`, every
    // turns-th block of columns, from block `turn` on, is fetched meanwhile; turns is the number of panels that share
    // this out.
    size_t ahead;
    bool fetches;
    int turn, turns;
    size_t row_bytes; // of weights that are not repacked
    int rows;         // of this strip, 1–32; repacked strips are padded to 32
    int columns;
    int width, panel;                      // inputs, and how many of them make a panel, 1–PANEL_INPUTS
    const struct activation_block *blocks; // panels of [columns / 32][inputs], for packed weights
    const float *values;                   // [width][columns], for others
    float *out;                            // [width][32]
};

// An online softmax: the running maximum and sum of a query's scores.
struct softmax {
    float maximum, sum;
};

enum { KV_BLOCK_PAGES = 4, KV_HALVES = KV_BF16 + 1 }; // pages that go through a softmax together; types that are halves

// out[i][0..31] = Σ_j queries[i][j] × keys[j][0..31]: the scores of a page's tokens, of keys that are halves.
struct scoring {
    const uint16_t *keys; // [size][32 tokens]
    const void *ahead;    // of another page: what will be read later, to be fetched meanwhile
    int size, rows;
    const float *queries; // [rows][size]
    float *out;           // [rows][32]
};

// out[i][0..size) += Σ_t weights[i][t] × value[t][0..size) for the rows i of some pages of one kv head, slot by slot in
// order. Scores and weights of row i and page p lie at p × page_stride + 32 i.
struct weighing {
    const void *pages[KV_BLOCK_PAGES]; // values: [32 tokens][size] halves, or size / 32 packed blocks
    const void *ahead[KV_BLOCK_PAGES]; // the same of pages that will be read later, to be fetched meanwhile
    int n_pages, first, end;           // slots of all these pages together; of halves, others are not read
    int rows, size;                    // size: a multiple of 32
    const float *weights;              // of quantised values a weight of 0 is a slot that is not seen
    int page_stride;
    float *out; // [rows][size]
};

enum { NORM_KINDS = NORM_LAYER + 1, ACTIVATION_KINDS = ACTIVATION_SILU_CLAMPED + 1 };

struct cpu_kernels {
    const char *name;
    void (*strip[BLOCK_FORMAT_COUNT])(const struct strip *s);
    // Any number of panels, faster than one by one from many_inputs inputs on; NULL where that is not so.
    void (*many[BLOCK_FORMAT_COUNT])(const struct strip *s);
    int many_inputs;
    bool in_place;    // weights are not repacked
    bool rows_differ; // a row's result may depend on those it is computed with
    // By enum norm_kind; bias may be NULL and is NORM_LAYER's. x and y may be the same.
    void (*norm[NORM_KINDS])(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon);
    // n_blocks × 32 values to out[0], out[stride] …; a block that holds a NaN or QUANTIZE_HUGE becomes NaN.
    void (*quantize)(const float *x, int n_blocks, struct activation_block *out, int stride);
    // By enum activation: gate = f(gate) × up, or what else its comment says; n a multiple of 16.
    void (*activate[ACTIVATION_KINDS])(float *gate, const float *up, int n);
    void (*softcap)(float *x, int n, float cap);                         // x = cap × tanh(x / cap); n a multiple of 16
    void (*accumulate)(float *sum, const float *x, int n, float factor); // sum += factor × x
    void (*to_half[KV_HALVES])(const float *x, uint16_t *out, int n);
    void (*half_scores[KV_HALVES])(const struct scoring *s);
    void (*weigh[KV_TYPES])(const struct weighing *w);
    // A query's scores of some pages, page_stride apart, become weights relative to the new maximum, 0 outside the
    // slots [first, end), which are not none; returns what earlier sums and outputs must be multiplied by.
    float (*softmax)(float *scores, int page_stride, int n_pages, int first, int end, struct softmax *state);
    // state and sum[n] take up another part of the same query's keys; n a multiple of 16.
    void (*softmax_merge)(struct softmax *state, float *sum, const struct softmax *part, const float *part_sum, int n);
    void (*scale)(float *x, int n, float factor); // n a multiple of 16
};

// Where a slot of several pages lies in page p of them, or would if the page went on.
static inline int slot_in_page(int slot, int p) {
    slot -= p * KV_PAGE_TOKENS;
    return slot < 0 ? 0 : slot > KV_PAGE_TOKENS ? KV_PAGE_TOKENS : slot;
}

// To the nearest, halves to even; a NaN stays one.
static inline uint16_t bf16_rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

extern const struct cpu_kernels kernels_scalar, kernels_avx2, kernels_avxvnni, kernels_avx512;
extern const struct cpu_kernels kernels_exact; // double accumulation, decoded weights; no half or integer kernels

// The best that this processor runs, or what CONFAB_CPU names (scalar, blas, avx2, avxvnni, avx512) if it can run that.
const struct cpu_kernels *kernels_choose(void);
// The named table if this processor runs it, or NULL.
const struct cpu_kernels *kernels_find(const char *name);

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
