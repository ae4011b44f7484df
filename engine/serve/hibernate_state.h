// The store's insides, shared by hibernate.c (jobs and the worker) and hibernate_disk.c (what the worker does).
#ifndef CONFAB_SERVE_HIBERNATE_STATE_H
#define CONFAB_SERVE_HIBERNATE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine/serve/hibernate.h"
#include "engine/serve/hibernate_index.h"

struct hibernate_jobs { // a list, first in first out
    struct hibernate_job *first, **last;
};

struct hibernate {
    struct hibernate_params params;
    char *folder;
    pthread_t thread;
    pthread_mutex_t lock; // of all that follows
    pthread_cond_t wake, over;
    struct hibernate_jobs loads, others;
    struct hibernate_index index;
    bool closing, ended;
    uint64_t backlog;
    atomic_bool abandoned; // what is being written is given up
    bool warned;           // that it cannot be written; the worker's
    struct timespec seen;  // when the folder had changed last; the worker's
    char **ignored;        // [n_ignored] names of files that are none of ours; the worker's
    int n_ignored;
};

// ---- hibernate.c ----

void hibernate_serve_loads(struct hibernate *h); // all that wait to look or to load

// ---- hibernate_disk.c: on the worker's thread ----

void hibernate_refresh(struct hibernate *h); // the index, where the folder has changed
// Each does a job and hands it back.
void hibernate_load(struct hibernate *h, struct hibernate_job *job);
void hibernate_save(struct hibernate *h, struct hibernate_job *job);
void hibernate_forget(struct hibernate *h, struct hibernate_job *job);
// The file that a save makes, as it will be found; its name is from malloc.
struct hibernate_file hibernate_file_of(const struct hibernate_job *job, char **name);

#endif
