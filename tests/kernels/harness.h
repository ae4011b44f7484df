// A matmul to check and to time: random weights in a format, random inputs, any kernel table.
#ifndef CONFAB_TESTS_HARNESS_H
#define CONFAB_TESTS_HARNESS_H

#include "engine/cpu/matrix.h"

// The named table, or NULL: kernels_find's; or "avxvnni" in the EVEX encoding, where the processor has only that.
const struct cpu_kernels *kernels_to_try(const char *name);

struct trial {
    const struct block_format *format;
    int rows, columns, n_inputs;
    struct weight weight; // random bits under tame scales: every code of the format occurs
    struct matrix matrix;
    struct input input;   // in both forms
    float *values;        // [n_inputs][columns] what the input was made from
    void *packed; // a region, as the backend has it
    size_t packed_bytes;
};

// n_inputs ≤ most_inputs, which trial_inputs may choose later.
struct trial trial_open(enum block_id format, int rows, int columns, int most_inputs, uint64_t seed);
void trial_close(struct trial *t);
// Takes the first n inputs, quantised by these kernels.
void trial_inputs(struct trial *t, const struct cpu_kernels *k, int n);
// out [rows][n_inputs]: all strips times all panels.
void trial_run(const struct trial *t, const struct cpu_kernels *k, float *out);

// Puts a power of two into every place of a quantised block that scales it as a whole.
void block_set_scale(uint8_t *block, enum block_id format, float scale);

// Uniform in [−1, 1).
float random_value(uint64_t *state);
uint64_t random_bits(uint64_t *state);

#endif
