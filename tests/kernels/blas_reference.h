// Reference for matmuls of floats: OpenBLAS, which the tests of every backend compare with.
#ifndef CONFAB_TESTS_BLAS_REFERENCE_H
#define CONFAB_TESTS_BLAS_REFERENCE_H

struct reference {
    const float *weights, *inputs; // [rows][columns], [n_inputs][columns]
    int rows, columns, n_inputs;
};

// Skips the test, and says so, if it was built without OpenBLAS.
void reference_needed(void);
// out[n_inputs][rows]: every input times every row of the weights.
void reference_matmul(const struct reference *r, float *out);
// Fails the test if a result [n_inputs][rows] is further from the reference than by `allowed` times the sum of its
// absolute products.
void reference_check(const struct reference *r, const float *results, double allowed, const char *who);

// What rounding explains. Each addition is off by 2^-24 of that sum at most; as errors have either sign, those of K
// additions come to √K of that: 33 for the 1,100 columns that tests have at most.
#define REFERENCE_ALLOWED 2e-6

#endif
