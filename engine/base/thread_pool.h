// Thread pool in SPMD style: every worker runs the same function; they meet at barriers.
//
// The thread that calls thread_pool_run is worker 0. Whoever waits, at a barrier or between runs, spins briefly, then
// sleeps on a futex: an idle engine costs no CPU, and a worker whose core another program took gets the core of one
// that waits for it. On a machine of several memory nodes each of the other workers keeps to the processors of one
// (numa.h).
#ifndef CONFAB_BASE_THREAD_POOL_H
#define CONFAB_BASE_THREAD_POOL_H

#include <stdatomic.h>
#include "engine/base/status.h"

struct thread_pool;

struct worker {
    int index, count; // 0 ≤ index < count
    struct thread_pool *pool;
};

struct thread_pool *thread_pool_open(int n_threads, struct status *st); // ≥ 1; NULL when threads cannot be started
void thread_pool_close(struct thread_pool *p);
int thread_pool_size(const struct thread_pool *p);
// Runs work(worker, argument) on every worker and returns when all have returned.
void thread_pool_run(struct thread_pool *p, void (*work)(struct worker *, void *), void *argument);
// Calls item for 0 ≤ i < n, each worker for its own i; 0 ≤ worker < thread_pool_size(p).
void thread_pool_for_each(struct thread_pool *p, int n, void (*item)(void *context, int i, int worker), void *context);

// All workers of the current run wait for each other, and what was handed out is to be handed out afresh.
void worker_barrier(struct worker *w);
// A barrier in two halves: the last to arrive gets true, does what is too little to be shared out, and releases the
// others, who get false once it has. What it does may hand out nothing.
bool worker_arrive(struct worker *w);
void worker_release(struct worker *w);

// Dynamic work: both hand out the items 0 … n_items − 1 across all workers since the last barrier, in a series by one
// of them. Every worker must pass a barrier before a new series starts.
int worker_next(struct worker *w, int n_items); // one item, in order; −1 when none is left
// Consecutive items [*first, *end): of the worker's own share from its beginning on, and when that is done half of what
// another has left, from the end. So workers read long streams where items lie behind each other in memory, and finish
// together, also where other programs slow some down; false when none are left.
bool worker_take(struct worker *w, int n_items, int *first, int *end);

// Processors this process may use (respects affinity and cgroup quotas), at least 1; physical cores, not hyperthreads.
int thread_pool_default_size(void);

#endif
