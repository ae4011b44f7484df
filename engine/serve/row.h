// Rows of logits: the passes over a whole vocabulary, once per instruction set, behind one table.
//
// A row is cut into blocks of 64, of which the maxima are kept, so that a search for the largest skips most blocks.
// Every result is defined to the last bit: sums go by sixteen lanes, which are added as a tree (l with l + 8, l + 4,
// l + 2, l + 1), whatever a vector holds, and nothing is contracted. So the same logits and seed give the same token on
// every processor. A logit of −∞ is a masked token: of probability 0, and never drawn.
#ifndef CONFAB_SERVE_ROW_H
#define CONFAB_SERVE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/instruction_set.h"

enum { ROW_BLOCK = 64 };

static inline int row_blocks(int n) { return (n + ROW_BLOCK - 1) / ROW_BLOCK; }

struct row {
    const float *logits; // [n]
    int n;
    float *block_max; // [row_blocks(n)]
    float max;        // of all; finite
};

struct row_sums {
    double weight, weighted; // Σ e^d and Σ d·e^d over all logits, d = logit − max, at least −1000
};

struct candidate { // a token that may be drawn
    float logit, weight;
    int32_t id;
};

struct row_kernels {
    // Fills block_max [row_blocks(n)]; false when a logit is NaN or +∞.
    bool (*maxima)(const float *logits, int n, float *block_max);
    struct row_sums (*sums)(const struct row *r);
    // block_weight[b] = Σ e^((logit − max) × sharpness) over the logits of block b that are greater than `least`, which
    // may be −∞; returns the sum of all.
    double (*weigh)(const struct row *r, float sharpness, float least, float *block_weight);
    // Makes candidates, of weight 1, of all logits from `least` to `most`, by id; returns how many. Masked tokens are
    // among them where `least` is −∞.
    int (*collect)(const struct row *r, float least, float most, struct candidate *out);
};

extern const struct row_kernels row_kernels_scalar, row_kernels_avx2, row_kernels_avx512;

float row_largest(const float *block_max, int n_blocks);
// Number `skip` of the logits equal to `value`; −1: there are not so many.
int32_t row_equal_to(const struct row *r, float value, int skip);

// The table for an instruction set that this processor runs.
const struct row_kernels *row_kernels_for(enum instruction_set set);

// e^x for x ≤ 0 with a relative error below 3e-7; 0 below −87. The same in every kernel.
float row_exp(float x);

#endif
