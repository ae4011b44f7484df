// Worker: a thread that runs jobs in order, for a thread that must not block.
//
//   worker_do ──► work(), on the worker's thread ──► done(), on the thread that calls worker_collect
//
// The worker owns a job from worker_do until its `done`. One thread submits, collects and waits.
#ifndef CONFAB_BASE_WORKER_H
#define CONFAB_BASE_WORKER_H

#include <stdbool.h>

#include "engine/base/status.h"

struct worker;

struct worker *worker_open(struct status *st); // NULL if no thread can be started
void worker_close(struct worker *w);           // waits, collects and frees; w may be NULL

void worker_do(struct worker *w, void (*work)(void *job), void (*done)(void *job), void *job);
int worker_fd(const struct worker *w); // readable while there are finished jobs
void worker_collect(struct worker *w); // calls `done`, unless NULL, of all finished jobs
// Waits until all jobs, including new ones, are done and collected. False on timeout (timeout_ms < 0: none).
bool worker_wait(struct worker *w, int timeout_ms);

#endif
