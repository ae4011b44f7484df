// Matmuls: matrices times the rows of a batch, shared out among all workers by strips and, where those are few, by
// panels of rows as well.
#ifndef CONFAB_CPU_MATMUL_H
#define CONFAB_CPU_MATMUL_H

#include "engine/base/thread_pool.h"
#include "engine/cpu/matrix.h"

// out[row × stride + i] = or += cap((result i + bias[i]) × scale)
struct matmul {
    const struct matrix *matrix;
    const struct input *in;
    float *out;
    int stride;
    const float *bias; // or NULL
    float scale;
    float softcap; // 0: none
    bool add;
};

// The first half of a feed-forward: out = activation(gate × in + bias) × (up × in + bias), or activation(up × in +
// bias) where there is no gate.
struct gated {
    const struct matrix *gate, *up; // gate->format NULL: none
    const float *gate_bias, *up_bias;
    const struct input *in, *out;
};

// Both are for all workers of a run, between two barriers.
void matmul_run(struct worker *w, const struct cpu_kernels *k, const struct matmul *matmuls, int n);
void gated_run(struct worker *w, const struct cpu_kernels *k, enum activation activation, const struct gated *gated,
               int n);

#endif
