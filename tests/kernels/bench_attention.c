// Benchmarks attention for every type of KV cache: one row of a long conversation in GB/s of keys and values, and
// chunks of a prompt in GFLOP/s. Uses generated models whose layers are mostly attention, and subtracts the time of the
// stage at position 0, which is that of its matmuls. Pages are contiguous, as in a conversation that ran alone, or
// scattered over memory.
//     bench_attention [TYPE [SHAPE [THREADS [decode|prefill [scattered]]]]]     e.g. bench_attention q8_0 0 2
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/bench/machine_limits.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/cpu/cpu.h"
#include "tests/unit/tiny_model.h"

enum { LAYERS = 2, CONTEXT = 32768, CHUNK = 512, FILLED = 64, REPEATS = 7 };

static const struct {
    const char *name;
    int n_head, n_head_kv, head_size;
} shapes[] = {{"32/4 heads of 64", 32, 4, 64},
              {"32/8 heads of 128", 32, 8, 128},
              {"8/1 heads of 256", 8, 1, 256},
              {"16/16 heads of 64", 16, 16, 64}};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const char *const type_names[KV_TYPES] = {"f16", "bf16", "q8_0", "q4_0"};

struct bench {
    struct model model;
    struct gguf gguf;
    void *bytes;
    int n_threads;
    struct backend *backend;
    int32_t pages[CONTEXT / KV_PAGE_TOKENS];
};

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Seconds for n rows from a position on. With one thread its CPU time, which other programs affect less.
static double run(struct bench *b, int position, int n, struct backend_work *work) {
    struct batch_row rows[CHUNK];
    for (int i = 0; i < n; i++)
        rows[i] = (struct batch_row){.token = (i * 7 + 3) % b->model.spec.n_vocab,
                                     .output = i == n - 1 ? ROW_LOGITS : 0};
    const struct batch_segment segment = {0, n, position, b->pages};
    const struct batch batch = {.n_rows = n, .n_segments = 1, .rows = rows, .segments = &segment};
    struct backend_result result;
    struct status st = {0};
    const double start = processor_seconds();
    if (!cpu_backend.run(b->backend, &batch, &result, &st)) panic("%s", st.text);
    *work = result.work;
    return b->n_threads == 1 ? processor_seconds() - start : work->stages[STAGE_ATTEND].seconds;
}

static double best(struct bench *b, int position, int n, struct backend_work *work) {
    double least = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        const double seconds = run(b, position, n, work);
        if (seconds < least) least = seconds;
    }
    return least;
}

static bool scattered;

static void open_bench(struct bench *b, int shape, enum kv_type type, int threads) {
    struct status st = {0};
    size_t size;
    const int head = shapes[shape].head_size;
    const struct tiny_model_options options = {.format = BLOCK_Q4_0,
                                               .n_layer = LAYERS,
                                               .n_embd = 256,
                                               .n_ff = 32,
                                               .n_head = shapes[shape].n_head,
                                               .n_head_kv = shapes[shape].n_head_kv,
                                               .head_size = head,
                                               .n_context = CONTEXT,
                                               .family = TINY_QWEN3};
    b->bytes = tiny_model_bytes(options, &size);
    b->n_threads = threads;
    if (!gguf_open_memory(&b->gguf, "bench", b->bytes, size, &st) || !model_open(&b->model, &b->gguf, 0, &st))
        panic("%s", st.text);
    const struct backend_params params = {.model = &b->model,
                                          .n_threads = threads,
                                          .n_pages = CONTEXT / KV_PAGE_TOKENS,
                                          .max_rows = CHUNK,
                                          .max_logits = 1,
                                          .context = CONTEXT,
                                          .options.kv_type = type};
    if (!(b->backend = cpu_backend.open(&params, &st))) panic("%s", st.text);
    for (int i = 0; i < CONTEXT / KV_PAGE_TOKENS; i++)
        b->pages[i] = scattered ? i * 331 % (CONTEXT / KV_PAGE_TOKENS) : i;
    struct backend_work work;
    run(b, 0, FILLED, &work);
    struct page_copy copies[CONTEXT / KV_PAGE_TOKENS];
    int n = 0;
    for (int i = FILLED / KV_PAGE_TOKENS; i < CONTEXT / KV_PAGE_TOKENS; i++)
        copies[n++] = (struct page_copy){.to = b->pages[i], .from = b->pages[i % (FILLED / KV_PAGE_TOKENS)]};
    struct backend_result result;
    if (!cpu_backend.run(b->backend, &(struct batch){.n_copies = n, .copies = copies}, &result, &st))
        panic("%s", st.text);
}

static void close_bench(struct bench *b) {
    cpu_backend.close(b->backend);
    model_close(&b->model);
    gguf_close(&b->gguf);
    free(b->bytes);
}

static void bench_shape(int shape, enum kv_type type, int threads, const char *only,
                        const struct machine_limits *limits) {
    static struct bench b;
    struct backend_work none, work;
    open_bench(&b, shape, type, threads);
    const double one = best(&b, 0, 1, &none);
    for (int context = 2048; context <= CONTEXT && strcmp(only, "prefill"); context *= 4) {
        const double seconds = best(&b, context - 1, 1, &work) - one,
                     bytes = work.stages[STAGE_ATTEND].bytes - none.stages[STAGE_ATTEND].bytes;
        printf("%-5s %-18s decode1@%-5d %7.3f ms per layer %6.2f GB/s %5.1f %% of memory's\n", type_names[type],
               shapes[shape].name, context, seconds * 1e3 / LAYERS, bytes / seconds / 1e9,
               100 * bytes / seconds / limits->read_bytes);
    }
    for (int context = CHUNK; context <= 8192 && strcmp(only, "decode"); context *= 4) {
        const double seconds = best(&b, context - CHUNK, CHUNK, &work);
        double operations = 0; // of all layers except the last, which computes attention for the last row only
        for (int i = 0; i < CHUNK; i++)
            operations += 4.0 * (context - CHUNK + i + 1) * shapes[shape].n_head * shapes[shape].head_size;
        printf("%-5s %-18s prefill512@%-5d %7.2f ms per layer %7.1f GFLOP/s\n", type_names[type], shapes[shape].name,
               context, seconds * 1e3 / (LAYERS - 1), (LAYERS - 1) * operations / seconds / 1e9);
    }
    close_bench(&b);
}

int main(int argc, char **argv) {
    struct machine_limits limits = {0};
    struct status st = {0};
    const int threads = argc > 3 ? atoi(argv[3]) : thread_pool_default_size();
    scattered = argc > 5 && !strcmp(argv[5], "scattered");
    if (!machine_limits_measure(&limits, threads, &st)) panic("%s", st.text);
    printf("this machine, %d threads: %.2f GB/s\n", threads, limits.read_bytes / 1e9);
    for (int type = 0; type < KV_TYPES; type++)
        for (int shape = 0; shape < SHAPES; shape++)
            if ((argc < 2 || !strcmp(argv[1], type_names[type])) && (argc < 3 || shape == atoi(argv[2])))
                bench_shape(shape, (enum kv_type)type, threads, argc > 4 ? argv[4] : "", &limits);
    return 0;
}
