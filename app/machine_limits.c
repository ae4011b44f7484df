#include "app/machine_limits.h"

#include "app/peak_loops.h"
#include "app/units.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"

#define ROUNDS     24           // the best counts: others may use the machine too
#define READ_BYTES (512u << 20) // far more than caches hold

// ---- reading memory ----

typedef long long vector __attribute__((vector_size(16), may_alias));

static vector read_all(const vector *at, const vector *end) {
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += 4) a ^= at[0], b ^= at[1], c ^= at[2], d ^= at[3];
    return a ^ b ^ c ^ d;
}

// ---- all workers together ----

struct measurement {
    const struct peak_loops *loops; // or NULL
    char *data;                     // [READ_BYTES] of every worker's share together
    double best_int8, best_read;    // a second
    volatile long long sink;        // so that the reading is not dropped
};

static void measure_round(struct worker *w, struct measurement *m) {
    size_t share = READ_BYTES / (size_t)w->count & ~(size_t)4095;
    const vector *begin = (const vector *)(m->data + share * (size_t)w->index);
    worker_barrier(w);
    double start = clock_seconds();
    double operations = m->loops ? peak_loops_run(m->loops, PEAK_INT8) : 0;
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
    struct measurement m = {.loops = peak_loops_find(NULL), .data = region_alloc(READ_BYTES)};
    if (!m.data)
        return status_fail(st, STATUS_MEMORY, "no %s to measure the memory with", units_bytes(READ_BYTES, bytes));
    *out = (struct machine_limits){.n_threads = n_threads, .int8_name = m.loops ? m.loops->name : ""};
    struct thread_pool *pool = thread_pool_open(n_threads);
    thread_pool_run(pool, measure, &m);
    thread_pool_close(pool);
    region_free(m.data, READ_BYTES);
    out->int8_operations = m.best_int8;
    out->read_bytes = m.best_read;
    return true;
}
