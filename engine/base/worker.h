// Worker: a thread that does jobs one after the other, in the order they are given, for a thread that must not wait.
//
//   given ──► worked on, on the worker's thread ──► done: handed back, on the thread that collects
//
// A job is the caller's from worker_do to its `work`, and again from its `done` on. One thread gives, collects and waits.
#ifndef CONFAB_BASE_WORKER_H
#define CONFAB_BASE_WORKER_H

#include <stdbool.h>

#include "engine/base/status.h"

struct worker;

struct worker *worker_open(struct status *st); // NULL: the system grants no thread
void worker_close(struct worker *w);           // waits, collects and frees; w may be NULL

void worker_do(struct worker *w, void (*work)(void *job), void (*done)(void *job), void *job);
int worker_fd(const struct worker *w); // readable while there is something to collect
void worker_collect(struct worker *w); // calls `done`, where it is not NULL, of the jobs that are
// Until every job, also those that are given meanwhile, is done and collected. False: timeout_ms (< 0: none) came first.
bool worker_wait(struct worker *w, int timeout_ms);

#endif
