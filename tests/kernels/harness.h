// Harness: sets up a matmul to test or time, with random weights in a format, random inputs and any kernel table.
#ifndef CONFAB_TESTS_HARNESS_H
#define CONFAB_TESTS_HARNESS_H

#include "engine/cpu/matrix.h"

// Like kernels_find, but returns "avxvnni" in the EVEX encoding if the processor supports only that.
const struct cpu_kernels *kernels_to_try(const char *name);

struct trial {
    const struct block_format *format;
    int rows, columns, n_inputs;
    struct weight weight; // random bits with moderate scales, so that every code of the format occurs
    struct matrix matrix;
    struct input input;   // float and quantised
    float *values;        // [n_inputs][columns] the original input
    void *packed;         // the weights as the backend repacks them, a region
    size_t packed_bytes;
};

// n_inputs ≤ most_inputs, which trial_inputs may choose later.
struct trial trial_open(enum block_id format, int rows, int columns, int most_inputs, uint64_t seed);
void trial_close(struct trial *t);
// Uses the first n inputs, quantised by these kernels.
void trial_inputs(struct trial *t, const struct cpu_kernels *k, int n);
// Multiplies all strips by all panels; out [rows][n_inputs].
void trial_run(const struct trial *t, const struct cpu_kernels *k, float *out);

// Sets all scales of a quantised block as a whole to a power of two.
void block_set_scale(uint8_t *block, enum block_id format, float scale);

// Uniform in [−1, 1).
float random_value(uint64_t *state);
uint64_t random_bits(uint64_t *state);

#endif
