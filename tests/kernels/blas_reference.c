#include "tests/kernels/blas_reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/panic.h"

#ifdef CONFAB_BLAS

#include <cblas.h>

void reference_needed(void) {}

void reference_matmul(const struct reference *r, float *out) {
    openblas_set_num_threads(1); // with more, the order of sums would depend on the machine
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, r->n_inputs, r->rows, r->columns, 1, r->inputs, r->columns,
                r->weights, r->columns, 0, out, r->rows);
}

#else

void reference_needed(void) {
    print_message("built without OpenBLAS: skipped\n");
    skip();
}

void reference_matmul(const struct reference *r, float *out) {
    (void)r, (void)out;
    panic("built without OpenBLAS");
}

#endif

static double magnitude(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += fabs((double)a[i] * b[i]);
    return sum;
}

void reference_check(const struct reference *r, const float *results, double allowed, const char *who) {
    float *want = xmalloc((size_t)r->n_inputs * (size_t)r->rows * sizeof *want);
    reference_matmul(r, want);
    for (int c = 0; c < r->n_inputs; c++)
        for (int row = 0; row < r->rows; row++) {
            const size_t at = (size_t)c * (size_t)r->rows + (size_t)row;
            const double scale = magnitude(r->weights + (size_t)row * (size_t)r->columns,
                                           r->inputs + (size_t)c * (size_t)r->columns, r->columns);
            if (!(fabs((double)results[at] - want[at]) <= allowed * scale))
                fail_msg("%s, %d rows of %d, input %d of %d, row %d: got %.9g, expected %.9g", who, r->rows, r->columns,
                         c, r->n_inputs, row, results[at], want[at]);
        }
    free(want);
}
