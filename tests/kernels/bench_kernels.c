// Times the matrix kernels on one thread: weights larger than any cache, several numbers of inputs, as GB/s of weights
// and as a share of the machine's int8 peak measured in the same run.
//     bench_kernels [KERNELS [FORMAT]]     e.g. bench_kernels avx512 Q4_0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/machine_limits.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/kernels/harness.h"

enum { ROWS = 65536, COLUMNS = 2048, REPEATS = 4, MOST_INPUTS = 48 };
static const int input_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 48};

static double best_seconds(const struct trial *t, const struct cpu_kernels *k, float *out) {
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        const double start = clock_seconds();
        trial_run(t, k, out);
        const double seconds = clock_seconds() - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

static void bench_format(enum block_id format, const struct cpu_kernels *k, const struct machine_limits *limits) {
    struct trial t = trial_open(format, ROWS, COLUMNS, MOST_INPUTS, 1);
    float *out = xmalloc((size_t)ROWS * MOST_INPUTS * sizeof *out);
    const double bytes = (double)t.matrix.strip_bytes * matrix_strips(&t.matrix);
    for (size_t i = 0; i < sizeof input_counts / sizeof *input_counts; i++) {
        const int n = input_counts[i];
        trial_inputs(&t, k, n);
        const double seconds = best_seconds(&t, k, out), operations = 2.0 * ROWS * COLUMNS * n;
        printf("%-14s %-5s %3d inputs  %6.2f GB/s  %6.3f TOP/s", k->name, t.format->name, n, bytes / seconds / 1e9,
               operations / seconds / 1e12);
        if (limits->int8_operations > 0) printf("  %5.1f %% of int8 peak", 100 * operations / seconds / limits->int8_operations);
        printf("\n");
    }
    free(out);
    trial_close(&t);
}

int main(int argc, char **argv) {
    struct machine_limits limits = {0};
    struct status st = {0};
    if (!machine_limits_measure(&limits, 1, &st)) panic("%s", st.text);
    printf("this machine, one thread: %.2f GB/s, %.3f TOP/s int8 (%s)\n", limits.read_bytes / 1e9,
           limits.int8_operations / 1e12, limits.int8_name);
    const char *const names[] = {"avx512", "avx2"};
    for (int i = 0; i < 2; i++) {
        const struct cpu_kernels *k = kernels_find(names[i]);
        if (!k || (argc > 1 && strcmp(argv[1], names[i]))) continue;
        for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
            if (argc < 3 || !strcmp(argv[2], block_formats[format].name)) bench_format(format, k, &limits);
    }
    return 0;
}
