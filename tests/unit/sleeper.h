// Sleeper: a scheduler bench whose texts go to a folder on the disk.
#ifndef CONFAB_TESTS_SLEEPER_H
#define CONFAB_TESTS_SLEEPER_H

#include "engine/base/queue.h"
#include "tests/unit/scheduler_bench.h"

struct sleeper {
    struct queue jobs;
    struct hibernate *store; // NULL: nobody sleeps
    struct bench *bench;
};

// A budget of 0 bytes: nobody sleeps.
void sleeper_open(struct sleeper *l, struct bench_options o, const char *folder, uint64_t budget);
// All that is computed is saved first.
void sleeper_close(struct sleeper *l);
// Gives a job that has ended back to the scheduler; false where none ends in that time.
bool sleeper_take(struct sleeper *l, int timeout_ms);
void sleeper_run(struct sleeper *l); // until it is idle, checked after every step

#endif
