#include "engine/base/thread_pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/numa.h"
#include "engine/base/panic.h"
#include "engine/base/system.h"

enum {
    CACHE_LINE = 64,
    GROUP_WORKERS = 8,    // that count themselves in at one place
    TURNS_A_LOOK = 32,    // of spinning between two looks at the clock
    BARRIERS_A_LOOK = 16, // between two looks whether the core was taken
    PIECES_A_SHARE = 4,   // of what is left of a worker's share, that it takes one of
    SHARE_BITS = 16,      // of the numbers of a share
};

// How long a wait is hot. At a barrier: longer than a core takes to wake up; but if another program has just taken a
// worker's core, no longer than nearly all waits for workers that have one. Between runs: what drawing a token and
// telling of it take.
#define CALM_SPIN      1e-3
#define DISTURBED_SPIN 20e-6
#define CROWD_YIELD    500e-6
#define RUN_SPIN       200e-6
#define DISTURBED_TIME 50e-3 // after a core was taken

// A count that threads wait on. Whoever sleeps has announced it before the futex looks at the count, and whoever counts
// looks for sleepers afterwards: no gap in which a wake-up could be lost.
struct gate {
    _Alignas(CACHE_LINE) _Atomic uint32_t count; // the futex
    atomic_int n_sleeping;
};

// Workers meet in two levels: those of a group, then the last of each group. Each has a cache line of its own, so that
// no line goes round among all cores.
struct group {
    _Alignas(CACHE_LINE) atomic_int n_arrived;
    struct gate passed; // counts barriers
    int n_workers;
};

// How often a worker lost its core to another program, and barriers until it looks again.
struct watch {
    _Alignas(CACHE_LINE) long switches;
    int barriers_left;
};

// The part of a series that a worker has left: the series' number, then the ends of [first, end). What is left of an
// earlier series stands for a share that nobody has touched yet.
struct share {
    _Alignas(CACHE_LINE) _Atomic uint64_t left;
};

struct thread_pool {
    int n_workers, n_groups;
    bool crowded;           // more workers than cores: whoever is waited for may need this core
    struct worker *workers; // [n_workers]
    pthread_t *threads;     // [n_workers], the first unused
    struct group *groups;   // [n_groups]
    struct watch *watches;  // [n_workers]
    struct share *shares;   // [n_workers]
    void (*work)(struct worker *, void *);
    void *argument;
    bool closing;
    struct gate run; // counts runs
    _Alignas(CACHE_LINE) atomic_int groups_arrived;
    _Alignas(CACHE_LINE) atomic_int next_item;
    _Alignas(CACHE_LINE) _Atomic double disturbed; // when a worker last lost its core
};

// --- waiting ---------------------------------------------------------------------------------------------------------

static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static inline bool gate_passed(const struct gate *g, uint32_t seen) {
    return atomic_load_explicit(&g->count, memory_order_acquire) != seen;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, (uint32_t *)word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void gate_sleep(struct gate *g, uint32_t seen) {
    atomic_fetch_add(&g->n_sleeping, 1);
    while (atomic_load(&g->count) == seen) futex(&g->count, FUTEX_WAIT, seen);
    atomic_fetch_sub(&g->n_sleeping, 1);
}

// Waits until the count is no longer `seen`: hot first, then asleep, so that whoever is waited for can have the core.
// Workers of a crowd yield to each other, which costs less than sleeping; from other programs a yielded core comes back
// only after a whole slice of time.
static void gate_wait(struct gate *g, uint32_t seen, bool crowded, double seconds) {
    const double start = clock_seconds();
    do {
        for (int turn = 0; turn < (crowded ? 1 : TURNS_A_LOOK); turn++) {
            if (gate_passed(g, seen)) return;
            spin_pause();
        }
        if (crowded) sched_yield();
    } while (clock_seconds() - start < seconds);
    gate_sleep(g, seen);
}

static void gate_open(struct gate *g) {
    atomic_fetch_add(&g->count, 1);
    if (atomic_load(&g->n_sleeping) > 0) futex(&g->count, FUTEX_WAKE, INT_MAX);
}

// --- barriers --------------------------------------------------------------------------------------------------------

static struct group *group_of(const struct worker *w) { return &w->pool->groups[w->index / GROUP_WORKERS]; }

// Counts one in; true for the last of n, who finds the count at zero again.
static bool arrive(atomic_int *n_arrived, int n) {
    if (atomic_fetch_add_explicit(n_arrived, 1, memory_order_acq_rel) < n - 1) return false;
    atomic_store_explicit(n_arrived, 0, memory_order_relaxed);
    return true;
}

static void watch_core(struct thread_pool *p, struct watch *watch) {
    if (watch->barriers_left--) return;
    watch->barriers_left = BARRIERS_A_LOOK;
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) || usage.ru_nivcsw == watch->switches) return;
    watch->switches = usage.ru_nivcsw;
    atomic_store_explicit(&p->disturbed, clock_seconds(), memory_order_relaxed);
}

static double barrier_spin(struct thread_pool *p) {
    if (p->crowded) return CROWD_YIELD;
    const double since = clock_seconds() - atomic_load_explicit(&p->disturbed, memory_order_relaxed);
    return since < DISTURBED_TIME ? DISTURBED_SPIN : CALM_SPIN;
}

bool worker_arrive(struct worker *w) {
    struct thread_pool *p = w->pool;
    watch_core(p, &p->watches[w->index]);
    struct group *g = group_of(w);
    const uint32_t seen = atomic_load_explicit(&g->passed.count, memory_order_relaxed);
    if (arrive(&g->n_arrived, g->n_workers) && arrive(&p->groups_arrived, p->n_groups)) {
        atomic_store_explicit(&p->next_item, 0, memory_order_relaxed);
        return true;
    }
    gate_wait(&g->passed, seen, p->crowded, barrier_spin(p));
    return false;
}

void worker_release(struct worker *w) {
    for (int i = 0; i < w->pool->n_groups; i++) gate_open(&w->pool->groups[i].passed);
}

void worker_barrier(struct worker *w) {
    if (worker_arrive(w)) worker_release(w);
}

// --- runs ------------------------------------------------------------------------------------------------------------

static void *worker_main(void *argument) {
    struct worker *w = argument;
    struct thread_pool *p = w->pool;
    for (uint32_t seen = 0;; seen++) {
        gate_wait(&p->run, seen, p->crowded, RUN_SPIN);
        if (p->closing) return NULL;
        p->work(w, p->argument);
        worker_barrier(w);
    }
}

// Those that could not be started are none of its workers; false.
static bool start_workers(struct thread_pool *p, struct status *st) {
    for (int i = 1; i < p->n_workers; i++) {
        if (!system_start_thread(&p->threads[i], worker_main, &p->workers[i], st)) {
            p->n_workers = i;
            return false;
        }
        const cpu_set_t *processors = numa_processors(numa_machine(), i, p->n_workers);
        if (processors) pthread_setaffinity_np(p->threads[i], sizeof *processors, processors); // or it goes anywhere
    }
    return true;
}

struct thread_pool *thread_pool_open(int n_threads, struct status *st) {
    struct thread_pool *p = aligned_alloc(CACHE_LINE, sizeof *p);
    if (n_threads < 1 || !p) panic("cannot make a pool of %d threads", n_threads);
    *p = (struct thread_pool){.n_workers = n_threads, .n_groups = (n_threads + GROUP_WORKERS - 1) / GROUP_WORKERS};
    p->crowded = n_threads > thread_pool_default_size();
    p->groups = aligned_alloc(CACHE_LINE, (size_t)p->n_groups * sizeof *p->groups);
    p->watches = aligned_alloc(CACHE_LINE, (size_t)n_threads * sizeof *p->watches);
    p->shares = aligned_alloc(CACHE_LINE, (size_t)n_threads * sizeof *p->shares);
    if (!p->groups || !p->watches || !p->shares) panic("cannot make a pool of %d threads", n_threads);
    p->workers = xcalloc((size_t)n_threads, sizeof *p->workers);
    p->threads = xcalloc((size_t)n_threads, sizeof *p->threads);
    for (int i = 0; i < p->n_groups; i++) p->groups[i] = (struct group){.n_workers = 0};
    for (int i = 0; i < n_threads; i++) {
        p->workers[i] = (struct worker){.index = i, .count = n_threads, .pool = p};
        p->watches[i] = (struct watch){0};
        atomic_init(&p->shares[i].left, (uint64_t)UINT32_MAX << 2 * SHARE_BITS); // of no series soon
        p->groups[i / GROUP_WORKERS].n_workers++;
    }
    if (start_workers(p, st)) return p;
    thread_pool_close(p);
    return NULL;
}

void thread_pool_close(struct thread_pool *p) {
    if (!p) return;
    p->closing = true;
    gate_open(&p->run);
    for (int i = 1; i < p->n_workers; i++) pthread_join(p->threads[i], NULL);
    free(p->workers);
    free(p->threads);
    free(p->groups);
    free(p->watches);
    free(p->shares);
    free(p);
}

int thread_pool_size(const struct thread_pool *p) { return p->n_workers; }

void thread_pool_run(struct thread_pool *p, void (*work)(struct worker *, void *), void *argument) {
    p->work = work;
    p->argument = argument;
    gate_open(&p->run);
    work(&p->workers[0], argument);
    worker_barrier(&p->workers[0]);
}

struct loop {
    int n;
    void (*item)(void *context, int i, int worker);
    void *context;
};

static void run_loop(struct worker *w, void *argument) {
    const struct loop *loop = argument;
    for (int i = w->index; i < loop->n; i += w->count) loop->item(loop->context, i, w->index);
}

void thread_pool_for_each(struct thread_pool *p, int n, void (*item)(void *context, int i, int worker), void *context) {
    thread_pool_run(p, run_loop, &(struct loop){n, item, context});
}

// --- shares ----------------------------------------------------------------------------------------------------------

int worker_next(struct worker *w, int n_items) {
    int item = atomic_fetch_add_explicit(&w->pool->next_item, 1, memory_order_relaxed);
    return item < n_items ? item : -1;
}

struct series {
    uint32_t number;
    int n_units, n_workers; // units are some items each, so that SHARE_BITS are enough
};

static uint64_t share_word(const struct series *s, int first, int end) {
    return (uint64_t)s->number << 2 * SHARE_BITS | (uint64_t)first << SHARE_BITS | (uint64_t)end;
}

// What of a word that was read is left to a worker.
static void share_left(const struct series *s, int worker, uint64_t word, int *first, int *end) {
    const int mask = (1 << SHARE_BITS) - 1;
    const bool touched = word >> 2 * SHARE_BITS == s->number;
    *first = touched ? (int)(word >> SHARE_BITS) & mask : (int)((int64_t)s->n_units * worker / s->n_workers);
    *end = touched ? (int)word & mask : (int)((int64_t)s->n_units * (worker + 1) / s->n_workers);
}

// Takes a part of what a worker has left, a quarter from the front or half from the back; false when there is nothing.
static bool share_take(const struct series *s, struct share *of, int worker, bool front, int *first, int *end) {
    uint64_t word = atomic_load_explicit(&of->left, memory_order_relaxed), rest;
    do {
        int begin, stop;
        share_left(s, worker, word, &begin, &stop);
        if (begin >= stop) return false;
        const int n = stop - begin, size = front ? (n + PIECES_A_SHARE - 1) / PIECES_A_SHARE : (n + 1) / 2;
        *first = front ? begin : stop - size;
        *end = *first + size;
        rest = front ? share_word(s, *end, stop) : share_word(s, begin, *first);
    } while (
        !atomic_compare_exchange_weak_explicit(&of->left, &word, rest, memory_order_relaxed, memory_order_relaxed));
    return true;
}

// Makes half of what another worker has left the worker's own share, which is empty: nobody else changes it then.
static bool share_steal(const struct series *s, struct worker *w) {
    struct share *shares = w->pool->shares;
    int first, end;
    for (int i = 1; i < w->count; i++) {
        const int other = (w->index + i) % w->count;
        if (!share_take(s, &shares[other], other, false, &first, &end)) continue;
        atomic_store_explicit(&shares[w->index].left, share_word(s, first, end), memory_order_relaxed);
        return true;
    }
    return false;
}

bool worker_take(struct worker *w, int n_items, int *first, int *end) {
    const int unit = n_items / ((1 << SHARE_BITS) - 1) + 1; // so that a unit's end is a number of SHARE_BITS too
    const struct series s = {.number = atomic_load_explicit(&group_of(w)->passed.count, memory_order_relaxed),
                             .n_units = (n_items + unit - 1) / unit,
                             .n_workers = w->count};
    while (!share_take(&s, &w->pool->shares[w->index], w->index, true, first, end))
        if (!share_steal(&s, w)) return false;
    *first *= unit;
    *end = *end * unit < n_items ? *end * unit : n_items;
    return true;
}

// --- how many processors ---------------------------------------------------------------------------------------------

// The first processor of the core that `processor` is a thread of; itself when the system does not say.
static int first_sibling(int processor) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", processor);
    FILE *f = fopen(path, "r");
    int first = processor;
    if (f) {
        if (fscanf(f, "%d", &first) != 1) first = processor;
        fclose(f);
    }
    return first;
}

// Whole processors that the control group grants, or INT_MAX when it sets no limit.
static int cgroup_quota(void) {
    long quota = -1, period = -1;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &quota, &period) != 2) quota = -1;
        fclose(f);
    }
    if (quota <= 0 || period <= 0) return INT_MAX;
    return quota < period ? 1 : (int)(quota / period);
}

int thread_pool_default_size(void) {
    cpu_set_t allowed;
    int n = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return 1;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed)) continue;
        int first = first_sibling(i);
        n += first == i || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, &allowed);
    }
    int quota = cgroup_quota();
    if (n > quota) n = quota;
    return n > 0 ? n : 1;
}
