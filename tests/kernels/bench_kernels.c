// Benchmarks every kernel on one thread, as a share of its limit: the longest of the times that its multiplications,
// divisions, loads and stores would take alone, at the machine's peak rates measured in the same run. Also prints the
// speedup over the scalar kernel.
//     bench_kernels [KERNELS [NAME]]     e.g. bench_kernels avx512 Q4_0, bench_kernels avx2 softmax
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench/machine_limits.h"
#include "app/bench/peak_loops.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/cpu/kv_page.h"
#include "engine/cpu/packed_values.h"
#include "tests/kernels/harness.h"

// --- the machine -----------------------------------------------------------------------------------------------------

struct limits {
    double memory;           // bytes per second
    double peak[PEAK_COUNT]; // work per second, of one instruction set
};

static void measure_peaks(const char *cpu, struct limits *limits) {
    enum { ROUNDS = 12 }; // the best counts, as others may use the machine too
    const struct peak_loops *loops = peak_loops_find(cpu);
    for (int peak = 0; peak < PEAK_COUNT; peak++) {
        limits->peak[peak] = 0;
        for (int i = 0; loops && i < ROUNDS; i++) {
            const double start = clock_seconds(), work = peak_loops_run(loops, peak);
            limits->peak[peak] = fmax(limits->peak[peak], work / (clock_seconds() - start));
        }
    }
}

// The minimum time for some work, and what determines it.
struct bound {
    double seconds;
    const char *by;
};

static void bound_add(struct bound *b, double work, double speed, const char *by) {
    if (speed > 0 && work / speed > b->seconds) *b = (struct bound){work / speed, by};
}

// --- matrix kernels --------------------------------------------------------------------------------------------------

enum { ROWS = 65536, SCALAR_ROWS = 64, COLUMNS = 2048, REPEATS = 4, MOST_INPUTS = 2 * MANY_INPUTS };
static const int input_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 48, MOST_INPUTS};
enum { N_COUNTS = sizeof input_counts / sizeof *input_counts };

static double trial_seconds(struct trial *t, const struct cpu_kernels *k, int n_inputs, float *out) {
    double best = INFINITY;
    trial_inputs(t, k, n_inputs);
    for (int i = 0; i < REPEATS; i++) {
        const double start = clock_seconds();
        trial_run(t, k, out);
        best = fmin(best, clock_seconds() - start);
    }
    return best;
}

static double scalar_row_seconds(enum block_id format) { // of one row and input
    float out[SCALAR_ROWS];
    struct trial t = trial_open(format, SCALAR_ROWS, COLUMNS, 1, 1);
    const double seconds = trial_seconds(&t, &kernels_scalar, 1, out);
    trial_close(&t);
    return seconds / SCALAR_ROWS;
}

static void bench_format(enum block_id format, const struct cpu_kernels *k, const struct limits *limits) {
    struct trial t = trial_open(format, ROWS, COLUMNS, MOST_INPUTS, 1);
    float *out = xmalloc((size_t)ROWS * MOST_INPUTS * sizeof *out);
    const double bytes = (double)t.matrix.strip_bytes * matrix_strips(&t.matrix), scalar = scalar_row_seconds(format);
    const enum peak arithmetic = t.matrix.packed ? PEAK_INT8 : PEAK_MULTIPLY;
    double seconds = 0, first = 0;
    printf("  %-8s", t.format->name);
    for (int i = 0; i < N_COUNTS; i++) {
        const int n = input_counts[i];
        struct bound bound = {0, " "};
        bound_add(&bound, bytes, limits->memory, "m");
        bound_add(&bound, 2.0 * ROWS * COLUMNS * n, limits->peak[arithmetic], "a");
        seconds = trial_seconds(&t, k, n, out);
        if (i == 0) first = seconds;
        printf(" %4.0f%s", 100 * bound.seconds / seconds, bound.by);
    }
    printf("  %6.1f GB/s %6.3f TOP/s  × %.0f, %.0f\n", bytes / first / 1e9,
           2e-12 * ROWS * COLUMNS * MOST_INPUTS / seconds, scalar * ROWS / first,
           scalar * ROWS * MOST_INPUTS / seconds);
    free(out);
    trial_close(&t);
}

// --- other kernels ---------------------------------------------------------------------------------------------------

enum { N = 2048, HEAD = 64, PAGE = KV_PAGE_TOKENS, PAGES = KV_BLOCK_PAGES, TILES = HEAD / 32, MOST_QUERIES = 16 };

// Inputs and outputs, small enough for the L1 cache. Kernels that work in place leave values of the same magnitude from
// the second run on.
struct buffers {
    float x[N], y[N], weight[N], bias[N], none[N], minus_one[N];
    float queries[MOST_QUERIES * HEAD], scores[PAGES * MOST_QUERIES * PAGE], sums[MOST_QUERIES * HEAD];
    uint16_t half[N];
    _Alignas(64) uint8_t keys[KV_TYPES][HEAD * PAGE * sizeof(uint16_t)]; // room for any type
    _Alignas(64) uint8_t values[KV_TYPES][PAGES][HEAD * PAGE * sizeof(uint16_t)];
    struct activation_block blocks[N / BLOCK_COLUMNS];
    struct softmax state;
};

// Each runs one kernel for some rows; kind: an index into the table of kernels.
static void run_norm(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)rows;
    k->norm[kind](b->x, b->weight, kind == NORM_LAYER ? b->bias : NULL, b->y, N, 1e-5f);
}
static void run_quantize(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)kind, (void)rows;
    k->quantize(b->x, N / BLOCK_COLUMNS, b->blocks, 1);
}
static void run_activate(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)rows;
    k->activate[kind](b->y, kind == ACTIVATION_SILU_CLAMPED ? b->minus_one : b->none, N);
}
static void run_softcap(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)kind, (void)rows;
    k->softcap(b->y, N, 30);
}
static void run_accumulate(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)kind, (void)rows;
    k->accumulate(b->y, b->x, N, 1e-9f);
}
static void run_scale(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)kind, (void)rows;
    k->scale(b->y, N, 1);
}
static void run_to_half(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)rows;
    k->to_half[kind](b->x, b->half, N);
}
static void run_scores(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    const uint16_t *keys = (const uint16_t *)(const void *)b->keys[kind];
    k->half_scores[kind](&(struct scoring){keys, keys, HEAD, rows, b->queries, b->scores});
}
static void run_weigh(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    struct weighing w = {.n_pages = PAGES, .end = PAGES * PAGE, .rows = rows, .size = HEAD, .weights = b->scores};
    for (int p = 0; p < PAGES; p++) w.pages[p] = w.ahead[p] = b->values[kind][p];
    w.page_stride = rows * PAGE;
    w.out = b->sums;
    k->weigh[kind](&w);
}
static void run_softmax(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    (void)kind, (void)rows;
    k->softmax(b->scores, PAGE, PAGES, 0, PAGES * PAGE, &b->state);
}
static void run_merge(const struct cpu_kernels *k, struct buffers *b, int kind, int rows) {
    const struct softmax part = {1, 1};
    (void)kind, (void)rows;
    k->softmax_merge(&b->state, b->sums, &part, b->queries, HEAD);
}

// The minimum work of each. An exponential takes nine multiplications: one to find the power of two, two to subtract
// it, six for the polynomial.
enum { EXPONENTIAL = 9 };
#define FLOATS(n) ((double)sizeof(float) * (n))
#define HALVES(n) ((double)sizeof(uint16_t) * (n))

// Scores of one page, every key element times every row; weighted values of several pages.
#define SCORES(name, type, n)                                                                                          \
    {name, run_scores, type, n, HEAD *PAGE *(n), 0, HEAD *PAGE *(n), 0, HALVES(HEAD *PAGE), FLOATS(PAGE *(n))}
#define WEIGH_HALVES(name, type, n)                                                                                    \
    {name, run_weigh, type, n, PAGES *PAGE *HEAD *(n), 0, PAGES *PAGE *HEAD *(n), 0, HALVES(PAGES *PAGE *HEAD),        \
     FLOATS(HEAD *(n))}
// Quantised: for every row and packed block, weights are multiplied by scales and rounded to bytes, sums are scaled;
// two divisions.
#define WEIGH_TILES(name, type, packed, n)                                                                             \
    {name, run_weigh, type, n, PAGES *PAGE *HEAD *(n), PAGES *PAGE *HEAD *(n), PAGES *TILES *(2 * PAGE + 32) * (n),    \
     PAGES *TILES * 2 * (n), (double)sizeof(struct packed) * PAGES *TILES, FLOATS(HEAD *(n))}
#define FOR_ROW_COUNTS(bench, ...)                                                                                     \
    bench(__VA_ARGS__, 1), bench(__VA_ARGS__, 4), bench(__VA_ARGS__, 8), bench(__VA_ARGS__, MOST_QUERIES)

static const struct {
    const char *name;
    void (*run)(const struct cpu_kernels *k, struct buffers *b, int kind, int rows);
    int kind, rows;
    int n; // elements
    // Multiplications of bytes and of floats, fused or not; divisions; bytes read and written; all per run.
    double matmuls, multiply, divide, read, written;
} benches[] = {
    {"norm rms", run_norm, NORM_RMS, 1, N, 0, 3 * N, 0, FLOATS(3 * N), FLOATS(N)},
    {"norm layer", run_norm, NORM_LAYER, 1, N, 0, 3 * N, 0, FLOATS(5 * N), FLOATS(N)},
    {"quantize", run_quantize, 0, 1, N, 0, N, 2 * N / BLOCK_COLUMNS, FLOATS(N),
     sizeof(struct activation_block) * N / BLOCK_COLUMNS},
    {"activate silu", run_activate, ACTIVATION_SILU, 1, N, 0, (EXPONENTIAL + 1) * N, N, FLOATS(2 * N), FLOATS(N)},
    {"activate gelu", run_activate, ACTIVATION_GELU, 1, N, 0, (EXPONENTIAL + 4) * N, N, FLOATS(2 * N), FLOATS(N)},
    {"activate clamped", run_activate, ACTIVATION_SILU_CLAMPED, 1, N, 0, (EXPONENTIAL + 2) * N, N, FLOATS(2 * N),
     FLOATS(N)},
    {"softcap", run_softcap, 0, 1, N, 0, (EXPONENTIAL + 2) * N, N, FLOATS(N), FLOATS(N)},
    {"accumulate", run_accumulate, 0, 1, N, 0, N, 0, FLOATS(2 * N), FLOATS(N)},
    {"scale", run_scale, 0, 1, N, 0, N, 0, FLOATS(N), FLOATS(N)},
    {"to_half f16", run_to_half, KV_F16, 1, N, 0, 0, 0, FLOATS(N), HALVES(N)},
    {"to_half bf16", run_to_half, KV_BF16, 1, N, 0, 0, 0, FLOATS(N), HALVES(N)},
    FOR_ROW_COUNTS(SCORES, "scores f16", KV_F16),
    FOR_ROW_COUNTS(SCORES, "scores bf16", KV_BF16),
    FOR_ROW_COUNTS(WEIGH_HALVES, "weigh f16", KV_F16),
    FOR_ROW_COUNTS(WEIGH_HALVES, "weigh bf16", KV_BF16),
    FOR_ROW_COUNTS(WEIGH_TILES, "weigh q8_0", KV_Q8_0, packed_values_q8_0),
    FOR_ROW_COUNTS(WEIGH_TILES, "weigh q4_0", KV_Q4_0, packed_values_q4_0),
    {"softmax", run_softmax, 0, 1, PAGES *PAGE, 0, EXPONENTIAL *(PAGES * PAGE + 1), 0, FLOATS(PAGES *PAGE),
     FLOATS(PAGES *PAGE)},
    {"softmax_merge", run_merge, 0, 1, HEAD, 0, 2 * HEAD + 2 * EXPONENTIAL, 0, FLOATS(2 * HEAD), FLOATS(HEAD)},
};
enum { N_BENCHES = sizeof benches / sizeof *benches };

static void fill(float *x, int n, uint64_t *state) {
    for (int i = 0; i < n; i++) x[i] = random_value(state);
}

// Pages of random keys and values in every type.
static void fill_pages(struct buffers *b, uint64_t *state) {
    float key[HEAD], value[HEAD], scratch[2 * HEAD];
    if (kv_store_scratch(HEAD) > sizeof scratch / sizeof *scratch) panic("storing needs more scratch space");
    for (int type = 0; type < KV_TYPES; type++) {
        const struct kv_layout layout = kv_layout_of((enum kv_type)type, false, HEAD);
        if (layout.key_bytes > sizeof b->keys[type] || layout.value_bytes > sizeof b->values[type][0])
            panic("a page is larger than one of 16-bit floats");
        for (int t = 0; t < PAGES * PAGE; t++) {
            fill(key, HEAD, state), fill(value, HEAD, state);
            kv_store(&layout, &kernels_scalar, b->keys[type], b->values[type][t / PAGE], t % PAGE, key, value, scratch);
        }
    }
}

static double bench_seconds(int i, const struct cpu_kernels *k) {
    enum { RUNS = 200, ROUNDS = 40 };
    static struct buffers b;
    uint64_t state = 1;
    double best = INFINITY;
    b = (struct buffers){.state = {-INFINITY, 0}};
    fill(b.x, N, &state), fill(b.y, N, &state), fill(b.weight, N, &state), fill(b.bias, N, &state);
    fill(b.queries, MOST_QUERIES * HEAD, &state), fill(b.scores, PAGES * MOST_QUERIES * PAGE, &state);
    for (int j = 0; j < PAGES * MOST_QUERIES * PAGE; j++) b.scores[j] = fabsf(b.scores[j]); // weights too
    for (int j = 0; j < N; j++) b.minus_one[j] = -1;
    fill_pages(&b, &state);
    for (int round = 0; round < (k == &kernels_scalar ? 2 : ROUNDS); round++) {
        const double start = clock_seconds();
        for (int run = 0; run < RUNS; run++) benches[i].run(k, &b, benches[i].kind, benches[i].rows);
        best = fmin(best, (clock_seconds() - start) / RUNS);
    }
    return best;
}

static void bench_kernel(int i, const struct cpu_kernels *k, const struct limits *limits) {
    struct bound bound = {0, ""};
    bound_add(&bound, 2 * benches[i].matmuls, limits->peak[PEAK_INT8], "multiplying");
    bound_add(&bound, 2 * benches[i].multiply, limits->peak[PEAK_MULTIPLY], "multiplying");
    bound_add(&bound, benches[i].divide, limits->peak[PEAK_DIVIDE], "dividing");
    bound_add(&bound, benches[i].read, limits->peak[PEAK_READ], "loading");
    bound_add(&bound, benches[i].written, limits->peak[PEAK_WRITE], "storing");
    const double seconds = bench_seconds(i, k), scalar = bench_seconds(i, &kernels_scalar);
    printf("  %-18s %4d %5d %10.1f %8.0f %% %-12s × %.1f\n", benches[i].name, benches[i].rows, benches[i].n,
           seconds * 1e9, 100 * bound.seconds / seconds, bound.by, scalar / seconds);
}

// --- one instruction set ---------------------------------------------------------------------------------------------

static bool named(const char *name, const char *wanted) { return !wanted || !strncmp(name, wanted, strlen(wanted)); }

static void bench_set(const char *cpu, const struct cpu_kernels *k, const char *wanted, struct limits *limits) {
    measure_peaks(cpu, limits);
    const double *peak = limits->peak;
    printf("\n%s: %.3f TOP/s int8, %.3f TFLOP/s f32, %.2f G divisions/s; L1 cache: loads %.0f, stores %.0f "
           "GB/s\n",
           k->name, peak[PEAK_INT8] / 1e12, peak[PEAK_MULTIPLY] / 1e12, peak[PEAK_DIVIDE] / 1e9, peak[PEAK_READ] / 1e9,
           peak[PEAK_WRITE] / 1e9);
    printf("  matrix    %% of the limit, memory or arithmetic, by inputs                one input   %d inputs      × "
           "scalar\n  %8s",
           MOST_INPUTS, "");
    for (int i = 0; i < N_COUNTS; i++) printf(" %4d ", input_counts[i]);
    printf("\n");
    for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
        if (named(block_formats[format].name, wanted)) bench_format(format, k, limits);
    printf("  kernel             rows     n         ns          limit             scalar\n");
    for (int i = 0; i < N_BENCHES; i++)
        if (named(benches[i].name, wanted)) bench_kernel(i, k, limits);
}

int main(int argc, char **argv) {
    const char *const sets[] = {"avx512", "avxvnni", "avx2"};
    struct machine_limits machine = {0};
    struct status st = {0};
    if (!machine_limits_measure(&machine, 1, &st)) panic("%s", st.text);
    struct limits limits = {.memory = machine.read_bytes};
    printf("this machine, one thread: %.2f GB/s from memory\n", limits.memory / 1e9);
    for (int i = 0; i < 3; i++) {
        const struct cpu_kernels *k = kernels_to_try(sets[i]);
        if (k && (argc < 2 || !strcmp(argv[1], sets[i]))) bench_set(sets[i], k, argc < 3 ? NULL : argv[2], &limits);
    }
    return 0;
}
