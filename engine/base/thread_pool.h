// Thread pool in SPMD style: every worker runs the same function; they meet at spin barriers.
//
// The thread that calls thread_pool_run is worker 0. Between runs workers spin briefly, then sleep on a futex, so an
// idle engine costs no CPU.
#ifndef CONFAB_BASE_THREAD_POOL_H
#define CONFAB_BASE_THREAD_POOL_H

#include <stdatomic.h>

struct thread_pool;

struct worker {
    int index, count; // 0 ≤ index < count
    struct thread_pool *pool;
};

struct thread_pool *thread_pool_open(int n_threads); // ≥ 1; panics when threads cannot be made
void thread_pool_close(struct thread_pool *p);
int thread_pool_size(const struct thread_pool *p);
// Runs work(worker, argument) on every worker and returns when all have returned.
void thread_pool_run(struct thread_pool *p, void (*work)(struct worker *, void *), void *argument);

// All workers of the current run wait for each other. Also resets the shared counter that worker_next uses.
void worker_barrier(struct worker *w);
// Dynamic work: hands out 0, 1, 2 … up to n_items − 1 across all workers since the last barrier; −1 when none is left.
// Every worker must call worker_barrier before a new series starts.
int worker_next(struct worker *w, int n_items);

// Processors this process may use (respects affinity and cgroup quotas), at least 1; physical cores, not hyperthreads.
int thread_pool_default_size(void);

#endif
