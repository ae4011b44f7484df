// Tests the matmuls of every set of kernels in F32, F16 and BF16 against OpenBLAS, and OpenBLAS as a set of kernels in
// all formats.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/kernels/blas_reference.h"
#include "tests/kernels/harness.h"

// Whole strips and parts of one, fewer columns than a vector has and more than are decoded at once.
static const struct shape { int rows, columns; } shapes[] = {{1, 1}, {5, 15}, {32, 64}, {33, 77}, {70, 1100}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
static const int input_counts[] = {1, 2, 6, 7, 15, 16, 17, MANY_INPUTS + 5};
enum { N_COUNTS = sizeof input_counts / sizeof *input_counts, MOST_INPUTS = MANY_INPUTS + 5 };

static void check_count(struct trial *t, const struct cpu_kernels *k, const float *weights, int n) {
    const size_t rows = (size_t)t->rows, inputs = (size_t)n;
    float *out = xmalloc(rows * inputs * sizeof *out), *results = xmalloc(rows * inputs * sizeof *results);
    char who[64];
    trial_inputs(t, &kernels_scalar, n);
    trial_run(t, k, out);
    for (size_t c = 0; c < inputs; c++)
        for (size_t r = 0; r < rows; r++) results[c * rows + r] = out[r * inputs + c];
    snprintf(who, sizeof who, "%s, %s", k->name, t->format->name);
    reference_check(&(struct reference){weights, t->values, t->rows, t->columns, n}, results, REFERENCE_ALLOWED, who);
    free(out), free(results);
}

static void check_shape(const struct cpu_kernels *k, enum block_id format, int rows, int columns) {
    struct trial t = trial_open(format, rows, columns, MOST_INPUTS, 3);
    float *weights = xmalloc((size_t)rows * (size_t)columns * sizeof *weights);
    t.matrix = matrix_in_place(&t.weight);
    for (size_t r = 0; r < (size_t)rows; r++)
        t.format->decode((const uint8_t *)t.weight.data + r * t.weight.row_bytes, weights + r * (size_t)columns,
                         (size_t)columns);
    for (int i = 0; i < N_COUNTS; i++) check_count(&t, k, weights, input_counts[i]);
    free(weights);
    trial_close(&t);
}

static void test_floats(void **state) {
    (void)state;
    reference_needed();
    const struct cpu_kernels *const sets[] = {&kernels_exact, &kernels_scalar, kernels_find("blas"),
                                              kernels_find("avx2"), kernels_find("avx512")};
    for (size_t set = 0; set < sizeof sets / sizeof *sets; set++)
        for (int format = 0; sets[set] && block_formats[format].elements == 1; format++)
            for (int i = 0; i < N_SHAPES; i++) check_shape(sets[set], format, shapes[i].rows, shapes[i].columns);
}

static void test_decoded_blocks(void **state) {
    (void)state;
    reference_needed();
    const struct cpu_kernels *k = kernels_find("blas");
    assert_non_null(k);
    for (int format = BLOCK_Q8_0; format < BLOCK_FORMAT_COUNT; format++)
        check_shape(k, format, 70, 5 * (int)block_formats[format].elements);
}

// OpenBLAS is never chosen where there are kernels of ours, unless it is asked for.
static void test_choice(void **state) {
    (void)state;
    const struct cpu_kernels *blas = kernels_find("blas"), *ours = kernels_find("avx2");
    unsetenv("CONFAB_CPU");
    const struct cpu_kernels *chosen = kernels_choose();
    if (ours) assert_true(chosen != blas && chosen != &kernels_scalar);
    else assert_ptr_equal(chosen, blas ? blas : &kernels_scalar);
    setenv("CONFAB_CPU", "blas", 1);
    assert_ptr_equal(kernels_choose(), blas ? blas : chosen);
    setenv("CONFAB_CPU", "scalar", 1);
    assert_ptr_equal(kernels_choose(), &kernels_scalar);
    unsetenv("CONFAB_CPU");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_decoded_blocks),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
