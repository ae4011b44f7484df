#include "engine/base/thread_pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/panic.h"

enum {
    SPINS_BEFORE_YIELD = 4000, // about 50 µs: longer than any step's imbalance when every worker has a core
    SPINS_WHEN_CROWDED = 20,   // with more workers than cores whoever is waited for may need this core
    SPINS_BEFORE_SLEEP = 8000, // about 100 µs: covers the sampler's work between two steps
    CACHE_LINE = 64,
};

// Each shared word has a cache line of its own, so that handing out work does not disturb whoever spins.
struct thread_pool {
    int n_workers, spins;   // spins before a wait yields the core
    struct worker *workers; // [n_workers]
    pthread_t *threads;     // [n_workers], the first unused
    void (*work)(struct worker *, void *);
    void *argument;
    bool closing;
    _Alignas(CACHE_LINE) _Atomic uint32_t run; // counts runs; the futex that sleepers wait on
    _Alignas(CACHE_LINE) atomic_int n_sleeping;
    _Alignas(CACHE_LINE) atomic_int n_finished;     // workers other than 0 that are through with the current run
    _Alignas(CACHE_LINE) atomic_int n_arrived;      // at the barrier
    _Alignas(CACHE_LINE) _Atomic uint32_t barriers; // counts barriers passed
    _Alignas(CACHE_LINE) atomic_int next_item;
};

static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

// One turn of a wait that must end soon: first hot, then giving way to whoever else wants the core.
static inline void spin_turn(const struct thread_pool *p, int *turns) {
    if (*turns < p->spins) {
        ++*turns;
        spin_pause();
    } else {
        sched_yield();
    }
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value) {
    return syscall(SYS_futex, (uint32_t *)word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

// Waits until the count of runs is no longer `seen`. Announcing the sleep before the futex looks at the count, and
// publishing a run before looking for sleepers, leaves no gap in which a wake-up could be lost.
static void wait_for_run(struct thread_pool *p, uint32_t seen) {
    for (int turn = 0; turn < SPINS_BEFORE_SLEEP; turn++) {
        if (atomic_load_explicit(&p->run, memory_order_acquire) != seen) return;
        spin_pause();
    }
    atomic_fetch_add(&p->n_sleeping, 1);
    while (atomic_load(&p->run) == seen) futex(&p->run, FUTEX_WAIT, seen);
    atomic_fetch_sub(&p->n_sleeping, 1);
}

static void *worker_main(void *argument) {
    struct worker *w = argument;
    struct thread_pool *p = w->pool;
    for (uint32_t seen = 0;; seen++) {
        wait_for_run(p, seen);
        if (p->closing) return NULL;
        p->work(w, p->argument);
        atomic_fetch_add_explicit(&p->n_finished, 1, memory_order_release);
    }
}

static void publish_run(struct thread_pool *p) {
    atomic_store_explicit(&p->n_finished, 0, memory_order_relaxed);
    atomic_store_explicit(&p->next_item, 0, memory_order_relaxed);
    atomic_fetch_add(&p->run, 1);
    if (atomic_load(&p->n_sleeping) > 0) futex(&p->run, FUTEX_WAKE, INT_MAX);
}

struct thread_pool *thread_pool_open(int n_threads) {
    struct thread_pool *p = aligned_alloc(CACHE_LINE, sizeof *p);
    if (n_threads < 1 || !p) panic("cannot make a pool of %d threads", n_threads);
    *p = (struct thread_pool){.n_workers = n_threads};
    p->spins = n_threads > thread_pool_default_size() ? SPINS_WHEN_CROWDED : SPINS_BEFORE_YIELD;
    p->workers = xcalloc((size_t)n_threads, sizeof *p->workers);
    p->threads = xcalloc((size_t)n_threads, sizeof *p->threads);
    for (int i = 0; i < n_threads; i++) p->workers[i] = (struct worker){.index = i, .count = n_threads, .pool = p};
    for (int i = 1; i < n_threads; i++)
        if (pthread_create(&p->threads[i], NULL, worker_main, &p->workers[i])) panic("cannot start thread %d", i);
    return p;
}

void thread_pool_close(struct thread_pool *p) {
    if (!p) return;
    p->closing = true;
    publish_run(p);
    for (int i = 1; i < p->n_workers; i++) pthread_join(p->threads[i], NULL);
    free(p->workers);
    free(p->threads);
    free(p);
}

int thread_pool_size(const struct thread_pool *p) { return p->n_workers; }

void thread_pool_run(struct thread_pool *p, void (*work)(struct worker *, void *), void *argument) {
    p->work = work;
    p->argument = argument;
    publish_run(p);
    work(&p->workers[0], argument);
    int turns = 0;
    while (atomic_load_explicit(&p->n_finished, memory_order_acquire) < p->n_workers - 1) spin_turn(p, &turns);
}

void worker_barrier(struct worker *w) {
    struct thread_pool *p = w->pool;
    uint32_t passed = atomic_load_explicit(&p->barriers, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&p->n_arrived, 1, memory_order_acq_rel) == p->n_workers - 1) {
        atomic_store_explicit(&p->n_arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&p->next_item, 0, memory_order_relaxed);
        atomic_store_explicit(&p->barriers, passed + 1, memory_order_release);
        return;
    }
    int turns = 0;
    while (atomic_load_explicit(&p->barriers, memory_order_acquire) == passed) spin_turn(p, &turns);
}

int worker_next(struct worker *w, int n_items) {
    int item = atomic_fetch_add_explicit(&w->pool->next_item, 1, memory_order_relaxed);
    return item < n_items ? item : -1;
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
