#include "app/bench/limits_meter.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/system.h"

#define SAMPLES        5
#define SAMPLE_SECONDS 0.03
#define MIN_FREE       (1ull << 30) // bytes of free memory, so that measuring does not push others into swap

struct limits_meter {
    char device[sizeof((struct machine_limits *)0)->device];
    int n_threads, notify_fd;
    pthread_t thread;
    atomic_bool stop, done;
    bool measured;
    struct machine_limits limits;
};

static bool measure(struct limits_meter *m) {
    uint64_t unused = machine_memory_free();
    if (unused && unused < MIN_FREE) return false;
    struct status ignored;
    struct machine_limits_probe *p = machine_limits_open_on(m->device, m->n_threads, &m->stop, &ignored);
    if (!p) return false;
    for (int i = 0; i < SAMPLES && !atomic_load(&m->stop); i++) machine_limits_sample(p, SAMPLE_SECONDS);
    m->limits = machine_limits_best(p);
    machine_limits_close(p);
    return !atomic_load(&m->stop) && m->limits.read_bytes > 0;
}

static void *meter_main(void *argument) {
    struct limits_meter *m = argument;
    m->measured = measure(m);
    atomic_store(&m->done, true);
    uint64_t one = 1;
    ssize_t ignored = write(m->notify_fd, &one, sizeof one);
    (void)ignored;
    return NULL;
}

struct limits_meter *limits_meter_start(const char *device, int n_threads, int notify_fd, struct status *st) {
    struct limits_meter *m = xcalloc(1, sizeof *m);
    snprintf(m->device, sizeof m->device, "%s", device);
    m->n_threads = n_threads;
    m->notify_fd = notify_fd;
    if (system_start_thread(&m->thread, meter_main, m, st)) return m;
    free(m);
    return NULL;
}

void limits_meter_stop(struct limits_meter *m) { atomic_store(&m->stop, true); }

bool limits_meter_done(const struct limits_meter *m) { return atomic_load(&m->done); }

bool limits_meter_take(struct limits_meter *m, struct machine_limits *out) {
    pthread_join(m->thread, NULL);
    bool measured = m->measured;
    *out = m->limits;
    free(m);
    return measured;
}
