#include "app/models/model_loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/system.h"

#define STEPS        1000 // of progress
#define END_PATIENCE 300  // × 10 ms

struct model_loader {
    struct model_loader_params p; // path is owned
    pthread_t thread;
    atomic_int progress; // of STEPS; −1: unknown
    atomic_bool cancelled, done;
    struct loaded_model model; // this and the status are valid when done
    struct status status;
};

static void notify(const struct model_loader *l) {
    uint64_t one = 1;
    if (write(l->p.notify_fd, &one, sizeof one) != sizeof one) panic("eventfd: %s", strerror(errno));
}

static bool on_progress(void *context, double done) {
    struct model_loader *l = context;
    int now = (int)(done * STEPS), before = atomic_exchange(&l->progress, now);
    if (now != before) notify(l);
    return !atomic_load(&l->cancelled);
}

static bool load(struct model_loader *l) {
    struct loaded_model *m = &l->model;
    if (!m->file) m->file = l->p.opener->open(l->p.path, &l->status);
    if (!m->file) return false;
    if (atomic_load(&l->cancelled)) return status_fail(&l->status, STATUS_CANCELLED, "loading was stopped");
    m->info = model_file_info(m->file);
    l->p.opener->memory(m->file, &l->p.engine, machine_memory_free(), &m->memory, NULL);
    m->engine = l->p.opener->open_engine(m->file, &l->p.engine, &l->status);
    m->client = m->engine ? engine_client_open(m->engine, &l->status) : NULL;
    if (!m->client || !atomic_load(&l->cancelled)) return m->client;
    return status_fail(&l->status, STATUS_CANCELLED, "loading was stopped");
}

static void loader_free(struct model_loader *l) {
    free((char *)l->p.path);
    free(l);
}

static void *loader_main(void *argument) {
    struct model_loader *l = argument;
    if (!load(l)) {
        if (l->p.file) l->model.file = NULL;
        model_unload(&l->model);
    }
    atomic_store(&l->done, true);
    notify(l);
    return NULL;
}

struct model_loader *model_loader_start(const struct model_loader_params *p, struct status *st) {
    struct model_loader *l = xcalloc(1, sizeof *l);
    l->p = *p;
    l->p.path = p->path ? xstrdup(p->path) : NULL;
    l->p.engine.options.progress = on_progress;
    l->p.engine.options.progress_context = l;
    l->p.engine.draft_refused = &l->model.draft_refused;
    l->model.file = p->file;
    atomic_init(&l->progress, -1);
    if (system_start_thread(&l->thread, loader_main, l, st)) return l;
    loader_free(l);
    return NULL;
}

float model_loader_progress(const struct model_loader *l) {
    int steps = atomic_load(&l->progress);
    return steps < 0 ? -1 : (float)steps / STEPS;
}

bool model_loader_done(const struct model_loader *l) { return atomic_load(&l->done); }

void model_loader_cancel(struct model_loader *l) { atomic_store(&l->cancelled, true); }

bool model_loader_end(struct model_loader *l) {
    model_loader_cancel(l);
    for (int i = 0; !model_loader_done(l) && i < END_PATIENCE; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return model_loader_done(l);
}

bool model_loader_take(struct model_loader *l, struct loaded_model *out, struct status *st) {
    pthread_join(l->thread, NULL);
    *out = l->model;
    if (!out->client && st) *st = l->status;
    loader_free(l);
    return out->client;
}
