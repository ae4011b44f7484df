#include "app/machine_limits.h"

#include "app/units.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"

#define ROUNDS     24           // the best counts: others may use the machine too
#define READ_BYTES (512u << 20) // far more than caches hold
#define INT8_LOOPS 1000000

// ---- 8-bit integer products ----
// Independent accumulators hide the latency; assembler, so that no compiler spills or drops them.

typedef double int8_loop(void); // returns the operations it did

#if defined(__x86_64__)

#define CLOBBER                                                                                                        \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",         \
        "xmm13", "xmm14", "xmm15"

#define VNNI(n) "vpdpbusd %%zmm15, %%zmm14, %%zmm" #n "\n"

static double int8_avx512_vnni(void) {
    for (long i = 0; i < INT8_LOOPS; i++)
        __asm__ volatile(VNNI(0) VNNI(1) VNNI(2) VNNI(3) VNNI(4) VNNI(5)   //
                         VNNI(6) VNNI(7) VNNI(8) VNNI(9) VNNI(10) VNNI(11) //
                         ::
                             : CLOBBER);
    __asm__ volatile("vzeroupper");
    return INT8_LOOPS * 12.0 * 64 * 2;
}

// Without VNNI three instructions multiply and add 32 bytes; n accumulates, t is scratch.
#define MADD(n, t)                                                                                                     \
    "vpmaddubsw %%ymm15, %%ymm14, %%ymm" #t "\n"                                                                       \
    "vpmaddwd %%ymm" #t ", %%ymm13, %%ymm" #t "\n"                                                                     \
    "vpaddd %%ymm" #t ", %%ymm" #n ", %%ymm" #n "\n"

static double int8_avx2(void) {
    for (long i = 0; i < INT8_LOOPS; i++)
        __asm__ volatile(MADD(0, 6) MADD(1, 7) MADD(2, 8) MADD(3, 9) MADD(4, 10) MADD(5, 11)::: CLOBBER);
    __asm__ volatile("vzeroupper");
    return INT8_LOOPS * 6.0 * 32 * 2;
}

static int8_loop *int8_choose(const char **name) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vnni")) return *name = "AVX-512 VNNI", int8_avx512_vnni;
    if (__builtin_cpu_supports("avx2")) return *name = "AVX2", int8_avx2;
    return *name = "", (int8_loop *)0;
}

#else

static int8_loop *int8_choose(const char **name) { return *name = "", (int8_loop *)0; }

#endif

// ---- reading memory ----

typedef long long vector __attribute__((vector_size(16), may_alias));

static vector read_all(const vector *at, const vector *end) {
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += 4) a ^= at[0], b ^= at[1], c ^= at[2], d ^= at[3];
    return a ^ b ^ c ^ d;
}

// ---- all workers together ----

struct measurement {
    int8_loop *loop;
    char *data;                  // [READ_BYTES] of every worker's share together
    double best_int8, best_read; // a second
    volatile long long sink;     // so that the reading is not dropped
};

static void measure_round(struct worker *w, struct measurement *m) {
    size_t share = READ_BYTES / (size_t)w->count & ~(size_t)4095;
    const vector *begin = (const vector *)(m->data + share * (size_t)w->index);
    worker_barrier(w);
    double start = clock_seconds();
    double operations = m->loop ? m->loop() : 0;
    worker_barrier(w);
    double middle = clock_seconds();
    vector sum = read_all(begin, begin + share / sizeof(vector));
    worker_barrier(w);
    double end = clock_seconds();
    if (w->index) return;
    m->sink = sum[0] ^ sum[1];
    double int8 = operations * w->count / (middle - start), read = (double)share * w->count / (end - middle);
    if (int8 > m->best_int8) m->best_int8 = int8;
    if (read > m->best_read) m->best_read = read;
}

static void measure(struct worker *w, void *argument) {
    struct measurement *m = argument;
    size_t share = READ_BYTES / (size_t)w->count & ~(size_t)4095;
    for (size_t i = 0; i < share; i += 4096) m->data[share * (size_t)w->index + i] = 1; // pages that are there
    for (int round = 0; round < ROUNDS; round++) measure_round(w, m);
}

bool machine_limits_measure(struct machine_limits *out, int n_threads, struct status *st) {
    char bytes[24];
    struct measurement m = {.data = region_alloc(READ_BYTES)};
    if (!m.data)
        return status_fail(st, STATUS_MEMORY, "no %s to measure the memory with", units_bytes(READ_BYTES, bytes));
    *out = (struct machine_limits){.n_threads = n_threads};
    m.loop = int8_choose(&out->int8_name);
    struct thread_pool *pool = thread_pool_open(n_threads);
    thread_pool_run(pool, measure, &m);
    thread_pool_close(pool);
    region_free(m.data, READ_BYTES);
    out->int8_operations = m.best_int8;
    out->read_bytes = m.best_read;
    return true;
}
