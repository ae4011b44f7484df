#include "engine/serve/hibernate.h"

#include <stdlib.h>
#include <time.h>

#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/system.h"
#include "engine/serve/hibernate_state.h"

enum { CLOSE_SECONDS = 1 }; // for what is to be saved at the end

void hibernate_job_free(struct hibernate_job *job) {
    free(job->tokens);
    free(job->data);
    free(job);
}

static struct hibernate_job *pop(struct hibernate_jobs *list) {
    struct hibernate_job *job = list->first;
    if (job && !(list->first = job->next)) list->last = &list->first;
    return job;
}

static void push(struct hibernate_jobs *list, struct hibernate_job *job) {
    job->next = NULL;
    *list->last = job;
    list->last = &job->next;
}

// ---- the worker ----

static void look(struct hibernate *h, struct hibernate_job *job) {
    hibernate_refresh(h);
    h->params.done(h->params.context, job);
}

void hibernate_serve_loads(struct hibernate *h) {
    for (;;) {
        pthread_mutex_lock(&h->lock);
        struct hibernate_job *job = pop(&h->loads);
        pthread_mutex_unlock(&h->lock);
        if (!job) return;
        if (job->kind == HIBERNATE_LOOK) look(h, job);
        else hibernate_load(h, job);
    }
}

static void *hibernate_main(void *argument) {
    struct hibernate *h = argument;
    hibernate_refresh(h);
    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (!h->loads.first && !h->others.first && !h->closing) pthread_cond_wait(&h->wake, &h->lock);
        struct hibernate_job *job = h->loads.first ? NULL : pop(&h->others);
        if (!job && !h->loads.first) break;
        pthread_mutex_unlock(&h->lock);
        if (job && job->kind == HIBERNATE_SAVE) hibernate_save(h, job); // and it may be gone
        else if (job) hibernate_forget(h, job);
        hibernate_serve_loads(h);
        pthread_mutex_lock(&h->lock);
    }
    h->ended = true;
    pthread_cond_signal(&h->over);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void hibernate_free(struct hibernate *h) {
    hibernate_index_clear(&h->index);
    for (int i = 0; i < h->n_ignored; i++) free(h->ignored[i]);
    free(h->ignored);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    pthread_cond_destroy(&h->over);
    free(h->folder);
    free(h);
}

struct hibernate *hibernate_open(const struct hibernate_params *p, struct status *st) {
    struct hibernate *h = xcalloc(1, sizeof *h);
    pthread_condattr_t monotonic;
    h->params = *p;
    h->folder = xstrdup(p->folder);
    h->loads.last = &h->loads.first;
    h->others.last = &h->others.first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&h->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (system_start_thread(&h->thread, hibernate_main, h, st)) return h;
    hibernate_free(h);
    return NULL;
}

void hibernate_close(struct hibernate *h) {
    if (!h) return;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CLOSE_SECONDS;
    pthread_mutex_lock(&h->lock);
    h->closing = true;
    pthread_cond_signal(&h->wake);
    while (!h->ended && !pthread_cond_timedwait(&h->over, &h->lock, &until)) continue;
    if (!h->ended) log_warning("kv", "a conversation is not saved: the disk is too slow");
    pthread_mutex_unlock(&h->lock);
    atomic_store(&h->abandoned, true);
    pthread_join(h->thread, NULL);
    hibernate_free(h);
}

// ---- the engine's side ----

void hibernate_do(struct hibernate *h, struct hibernate_job *job) {
    pthread_mutex_lock(&h->lock);
    if (job->kind == HIBERNATE_SAVE) {
        char *name;
        struct hibernate_file f = hibernate_file_of(job, &name);
        h->backlog += (uint64_t)job->n_pages * job->page_bytes;
        hibernate_index_add(&h->index, name, &f, true);
        hibernate_file_close(&f);
        free(name);
    }
    push(job->kind == HIBERNATE_LOAD || job->kind == HIBERNATE_LOOK ? &h->loads : &h->others, job);
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

uint64_t hibernate_backlog(struct hibernate *h) {
    pthread_mutex_lock(&h->lock);
    const uint64_t bytes = h->backlog;
    pthread_mutex_unlock(&h->lock);
    return bytes;
}

void hibernate_look(struct hibernate *h, uint64_t fingerprint, const int32_t *tokens, int n, enum hibernate_page *out) {
    pthread_mutex_lock(&h->lock);
    struct hibernate_walk w = hibernate_walk_start(&h->index, fingerprint, tokens, n);
    while (hibernate_walk_next(&w))
        out[w.page - 1] = !w.entry ? HIBERNATE_ABSENT : w.entry->coming ? HIBERNATE_COMING : HIBERNATE_THERE;
    pthread_mutex_unlock(&h->lock);
}

struct hibernate_usage hibernate_usage(struct hibernate *h) {
    pthread_mutex_lock(&h->lock);
    const struct hibernate_usage usage = {.bytes = h->index.bytes, .budget = h->params.budget, .files = h->index.count};
    pthread_mutex_unlock(&h->lock);
    return usage;
}
