// The scheduler's insides, shared by scheduler.c (lifecycle and steps) and plan.c (what goes into the next batch).
#ifndef CONFAB_SERVE_SCHEDULER_STATE_H
#define CONFAB_SERVE_SCHEDULER_STATE_H

#include "engine/serve/prefix.h"
#include "engine/serve/scheduler.h"

struct scheduler_draw { // a request whose next token is drawn after this step
    struct request *request;
    struct sample sample;
};

struct scheduler {
    const struct backend_ops *ops;
    struct backend *backend;
    struct thread_pool *pool;
    struct scheduler_events events;
    struct figures *figures;
    int n_vocab, context, max_rows, prefill_chunk;

    struct kv_cache cache;
    struct prefix_index prefixes;
    struct sampler_scratch **scratch; // [workers]

    // In the order of service: first the conversation in focus, then the others; by id within each.
    struct request **requests;
    int n_requests, capacity, n_running;
    uint64_t focus;
    double seconds_per_row; // of steps with prompt rows, lately; 0: not known yet
    double last_step;       // end of the step before; 0: there was none since requests came

    // The batch in the making.
    struct batch_row *rows; // [max_rows]
    struct batch_segment segments[SCHEDULER_MAX_RUNNING];
    struct scheduler_draw draws[SCHEDULER_MAX_RUNNING]; // one a row that wants logits
    struct page_copy *copies;                           // that the next batch makes, whichever it is
    int n_copies, most_copies;
    struct batch batch;
    int n_draws, decode_rows;
};

// Changes state and reports it.
void scheduler_enter(struct scheduler *s, struct request *r, enum request_state state, const char *message);

// Decides the rows of the next step and reserves their pages; on return s->batch is ready to run, or has no rows.
void plan_step(struct scheduler *s);
// Makes a sequence n_tokens longer, releasing kept sequences where pages are short; false when that is not enough.
bool plan_extend(struct scheduler *s, struct kv_sequence *kv, int n_tokens);

#endif
