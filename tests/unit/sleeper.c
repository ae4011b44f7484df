#include "tests/unit/sleeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void on_done(void *context, struct hibernate_job *job) { queue_push(context, &job); }

void sleeper_open(struct sleeper *l, struct bench_options o, const char *folder, uint64_t budget) {
    struct status st = {0};
    assert_true(queue_open(&l->jobs, sizeof(struct hibernate_job *), &st));
    const struct hibernate_params p = {.folder = folder, .budget = budget, .done = on_done, .context = &l->jobs};
    l->store = budget ? hibernate_open(&p, &st) : NULL;
    o.hibernation.store = l->store;
    l->bench = bench_open(o);
}

void sleeper_close(struct sleeper *l) {
    scheduler_cancel_all(l->bench->scheduler);
    if (l->store) scheduler_hibernate_all(l->bench->scheduler);
    hibernate_close(l->store);
    bench_close(l->bench);
    for (struct hibernate_job *job; queue_pop(&l->jobs, &job);) hibernate_job_free(job);
    queue_close(&l->jobs);
}

bool sleeper_take(struct sleeper *l, int timeout_ms) {
    struct hibernate_job *job;
    if (!queue_wait(&l->jobs, &job, timeout_ms)) return false;
    scheduler_hibernated(l->bench->scheduler, job);
    bench_check(l->bench);
    return true;
}

void sleeper_run(struct sleeper *l) {
    while (!scheduler_idle(l->bench->scheduler)) {
        while (sleeper_take(l, 0)) continue; // as an engine obeys before a step
        if (!scheduler_step(l->bench->scheduler) && !sleeper_take(l, 60000)) fail_msg("nothing happens for a minute");
        bench_check(l->bench);
    }
}
