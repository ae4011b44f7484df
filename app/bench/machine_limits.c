#include "app/bench/machine_limits.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/units.h"
#include "app/bench/peak_loops.h"
#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/thread_pool.h"
#include "engine/device.h"

#define MIN_BYTES      (256u << 20) // to read, all threads together
#define SLICE_BYTES    (1u << 20)   // read between looks at the clock
#define LOOP_TURNS     5000         // between looks at the clock
#define LOOP_SHARE     0.125        // of a sample's time, for each kind of arithmetic
#define SAMPLES        24           // of machine_limits_measure: the best counts, as others may use the machine too
#define SAMPLE_SECONDS 0.04

double machine_limits_operations(const struct machine_limits *l, double float_share) {
    double seconds = 0; // per operation; infinite if a rate is unknown
    if (float_share < 1)
        seconds += (1 - float_share) / (l->int8_operations > 0 ? l->int8_operations : l->float_operations);
    if (float_share > 0) seconds += float_share / l->float_operations;
    return 1 / seconds;
}

void machine_limits_raise(struct machine_limits *l, const struct machine_limits *other) {
    if (other->int8_operations > l->int8_operations) l->int8_operations = other->int8_operations;
    if (other->float_operations > l->float_operations) l->float_operations = other->float_operations;
    if (other->read_bytes > l->read_bytes) l->read_bytes = other->read_bytes;
}

// ---- reading memory ----

typedef long long vector __attribute__((vector_size(16), may_alias));

static vector read_all(const vector *at, const vector *end) {
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += 4) a ^= at[0], b ^= at[1], c ^= at[2], d ^= at[3];
    return a ^ b ^ c ^ d;
}

// ---- all workers together ----

// Each worker measures its own rates and waits for none of the others, so that none is idle while another is held up.
struct worker_rates {
    _Alignas(128) double int8, floats, read; // per second
    size_t next;                             // slice of its part of the data
    long long sink;                          // keeps the compiler from dropping the reads
};

struct machine_limits_probe {
    struct thread_pool *pool;       // NULL: a device is measured, and nothing of the rest is there but `best`
    const struct peak_loops *loops; // NULL: none for this processor
    char *data;
    size_t bytes, slices;       // slices: of each worker's part; the parts follow each other
    struct worker_rates *rates; // [workers]
    double seconds;             // of the current sample
    const atomic_bool *stop;    // may be NULL
    struct machine_limits best;
};

static bool stopped(const struct machine_limits_probe *p) {
    return p->stop && atomic_load_explicit(p->stop, memory_order_relaxed);
}

static double run_loop(const struct machine_limits_probe *p, enum peak peak, double seconds) {
    alignas(64) char memory[PEAK_LOOP_BYTES] = {0};
    double operations = 0, start = clock_seconds(), now;
    do {
        p->loops->loops[peak].run(LOOP_TURNS, memory);
        operations += LOOP_TURNS * p->loops->loops[peak].work;
    } while ((now = clock_seconds()) < start + seconds && !stopped(p));
    return operations / (now - start);
}

static double run_read(const struct machine_limits_probe *p, const char *part, struct worker_rates *r,
                       double seconds) {
    double bytes = 0, start = clock_seconds(), now;
    do {
        const vector *slice = (const vector *)(part + r->next * SLICE_BYTES);
        vector sum = read_all(slice, slice + SLICE_BYTES / sizeof(vector));
        r->sink ^= sum[0] ^ sum[1];
        r->next = (r->next + 1) % p->slices;
        bytes += SLICE_BYTES;
    } while ((now = clock_seconds()) < start + seconds && !stopped(p));
    return bytes / (now - start);
}

static void sample(struct worker *w, void *argument) {
    struct machine_limits_probe *p = argument;
    struct worker_rates *r = &p->rates[w->index];
    const char *part = p->data + (size_t)w->index * p->slices * SLICE_BYTES;
    worker_barrier(w);
    if (p->loops) r->int8 = run_loop(p, PEAK_INT8, p->seconds * LOOP_SHARE);
    worker_barrier(w);
    if (p->loops) r->floats = run_loop(p, PEAK_MULTIPLY, p->seconds * LOOP_SHARE);
    worker_barrier(w);
    r->read = run_read(p, part, r, p->seconds * (1 - 2 * LOOP_SHARE));
}

static struct machine_limits sample_device(struct machine_limits_probe *p) {
    struct machine_limits limits = p->best;
    struct device_limits of = {0};
    struct status ignored;
    if (!device_limits(p->best.device, &of, &ignored)) of = (struct device_limits){0};
    limits.read_bytes = of.read_bytes;
    limits.float_operations = of.float_operations;
    limits.int8_operations = of.int8_operations;
    machine_limits_raise(&p->best, &limits);
    return limits;
}

struct machine_limits machine_limits_sample(struct machine_limits_probe *p, double seconds) {
    if (!p->pool) return sample_device(p);
    p->seconds = seconds;
    thread_pool_run(p->pool, sample, p);
    struct machine_limits limits = p->best;
    limits.int8_operations = limits.float_operations = limits.read_bytes = 0;
    for (int i = 0; i < limits.n_threads; i++) {
        limits.int8_operations += p->rates[i].int8;
        limits.float_operations += p->rates[i].floats;
        limits.read_bytes += p->rates[i].read;
    }
    machine_limits_raise(&p->best, &limits);
    return limits;
}

struct machine_limits machine_limits_best(const struct machine_limits_probe *p) {
    return p->best;
}

// ---- opening ----

// Faults the pages in, on the NUMA node of the worker that will read them.
static void touch(struct worker *w, void *argument) {
    struct machine_limits_probe *p = argument;
    size_t size = p->slices * SLICE_BYTES;
    for (size_t i = 0; i < size && !stopped(p); i += 4096) p->data[(size_t)w->index * size + i] = 1;
}

struct cache {
    size_t bytes; // 0: unknown
    int sharing;  // processors that share it
};

static FILE *open_cache_file(int level, const char *name) {
    char path[80];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", level, name);
    return fopen(path, "r");
}

static int count_processors(FILE *list) { // "0-7,64-71"
    int count = 0, first, last;
    while (fscanf(list, "%d", &first) == 1) {
        if (fscanf(list, "-%d", &last) != 1) last = first;
        count += last - first + 1;
        if (fgetc(list) != ',') break;
    }
    return count;
}

static struct cache last_cache(void) {
    struct cache out = {.sharing = 1};
    for (int level = 3; level >= 2 && !out.bytes; level--) {
        FILE *size = open_cache_file(level, "size"), *list = open_cache_file(level, "shared_cpu_list");
        if (size && fscanf(size, "%zuK", &out.bytes) == 1) out.bytes *= 1024;
        if (list) out.sharing = count_processors(list);
        if (size) fclose(size);
        if (list) fclose(list);
    }
    if (out.sharing < 1) out.sharing = 1;
    return out;
}

double machine_cache_bytes(void) { return (double)last_cache().bytes; }

double machine_cache_share(double bytes, double cache_bytes) {
    return cache_bytes <= 0 ? 1 : bytes < CACHE_PART * cache_bytes ? 0 : CACHE_SHARE;
}

// Slices of a worker's part: all parts together are much larger than all caches, of which there may be several.
static size_t slices_for(int n_threads, struct cache cache) {
    size_t together = MIN_BYTES / (size_t)n_threads, beyond = 8 * cache.bytes / (size_t)cache.sharing;
    return 1 + ((together > beyond ? together : beyond) - 1) / SLICE_BYTES;
}

struct machine_limits_probe *machine_limits_open(int n_threads, const atomic_bool *stop, struct status *st) {
    char text[24];
    const struct cache cache = last_cache();
    size_t slices = slices_for(n_threads, cache);
    size_t bytes = slices * (size_t)n_threads * SLICE_BYTES;
    char *data = region_alloc(bytes);
    if (!data) {
        status_fail(st, STATUS_MEMORY, "out of memory: measuring its speed takes %s",
                    units_bytes((double)bytes, text));
        return NULL;
    }
    struct machine_limits_probe *p = xcalloc(1, sizeof *p);
    *p = (struct machine_limits_probe){.data = data, .bytes = bytes, .slices = slices, .stop = stop};
    p->best = (struct machine_limits){.n_threads = n_threads, .cache_bytes = (double)cache.bytes};
    p->loops = peak_loops_find(NULL);
    p->best.int8_name = p->loops ? p->loops->name : "";
    p->rates = aligned_alloc(_Alignof(struct worker_rates), (size_t)n_threads * sizeof *p->rates);
    if (!p->rates) panic("out of memory");
    for (int i = 0; i < n_threads; i++) p->rates[i] = (struct worker_rates){0};
    if ((p->pool = thread_pool_open(n_threads, st))) {
        thread_pool_run(p->pool, touch, p);
        if (!stopped(p)) return p;
        status_fail(st, STATUS_CANCELLED, "measuring was stopped");
    }
    machine_limits_close(p);
    return NULL;
}

struct machine_limits_probe *machine_limits_open_on(const char *device, int n_threads, const atomic_bool *stop,
                                                    struct status *st) {
    if (device_is_processor(device)) return machine_limits_open(n_threads, stop, st);
    struct machine_limits_probe *p = xcalloc(1, sizeof *p);
    p->bytes = DEVICE_LIMITS_BYTES;
    p->stop = stop;
    p->best = (struct machine_limits){.n_threads = n_threads, .int8_name = "dot products"};
    snprintf(p->best.device, sizeof p->best.device, "%s", device);
    return p;
}

void machine_limits_close(struct machine_limits_probe *p) {
    if (!p) return;
    thread_pool_close(p->pool);
    region_free(p->data, p->bytes);
    free(p->rates);
    free(p);
}

uint64_t machine_limits_memory(const struct machine_limits_probe *p) { return p->bytes; }

bool machine_limits_measure(struct machine_limits *out, int n_threads, struct status *st) {
    struct machine_limits_probe *p = machine_limits_open(n_threads, NULL, st);
    if (!p) return false;
    for (int i = 0; i < SAMPLES; i++) machine_limits_sample(p, SAMPLE_SECONDS);
    *out = machine_limits_best(p);
    machine_limits_close(p);
    return true;
}
