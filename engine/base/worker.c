#include "engine/base/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "engine/base/panic.h"
#include "engine/base/queue.h"
#include "engine/base/system.h"

struct job {
    void (*work)(void *job);
    void (*done)(void *job);
    void *job;
};

struct worker {
    pthread_t thread;
    struct queue given, finished; // of struct job; a job without `work` ends the thread
    int pending;                  // submitted and not collected
};

static void *worker_main(void *argument) {
    struct worker *w = argument;
    for (struct job j; queue_wait(&w->given, &j, -1) && j.work; queue_push(&w->finished, &j)) j.work(j.job);
    return NULL;
}

static void worker_free(struct worker *w) {
    queue_close(&w->given);
    queue_close(&w->finished);
    free(w);
}

struct worker *worker_open(struct status *st) {
    struct worker *w = xcalloc(1, sizeof *w);
    if (queue_open(&w->given, sizeof(struct job), st) && queue_open(&w->finished, sizeof(struct job), st) &&
        system_start_thread(&w->thread, worker_main, w, st))
        return w;
    worker_free(w);
    return NULL;
}

void worker_close(struct worker *w) {
    if (!w) return;
    worker_wait(w, -1);
    queue_push(&w->given, &(struct job){0});
    pthread_join(w->thread, NULL);
    worker_free(w);
}

void worker_do(struct worker *w, void (*work)(void *job), void (*done)(void *job), void *job) {
    w->pending++;
    queue_push(&w->given, &(struct job){work, done, job});
}

int worker_fd(const struct worker *w) { return w->finished.fd; }

void worker_collect(struct worker *w) {
    for (struct job j; queue_pop(&w->finished, &j);) {
        w->pending--;
        if (j.done) j.done(j.job);
    }
}

bool worker_wait(struct worker *w, int timeout_ms) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (worker_collect(w); w->pending; worker_collect(w)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        long gone = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
        if (timeout_ms >= 0 && gone >= timeout_ms) return false;
        poll(&(struct pollfd){.fd = worker_fd(w), .events = POLLIN}, 1, timeout_ms < 0 ? -1 : timeout_ms - (int)gone);
    }
    return true;
}
