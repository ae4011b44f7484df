// The scheduler's insides, shared by scheduler.c (life of requests, steps), admission.c (who runs, on which pages),
// plan.c and plan_drafts.c (what goes into the next batch), scheduler_hibernate.c, scheduler_logits.c and
// scheduler_report.c.
#ifndef CONFAB_SERVE_SCHEDULER_STATE_H
#define CONFAB_SERVE_SCHEDULER_STATE_H

#include "engine/serve/prefix.h"
#include "engine/serve/scheduler.h"
#include "engine/serve/scheduler_hibernate.h"
#include "engine/serve/speed.h"

// A sequence that draws after this step: from one row, and from those of its proposed tokens as far as they are drawn.
// Where its prompt is scored the rows before tell how likely the next tokens of that are; it may not draw yet.
struct scheduler_draw {
    struct sequence *sequence;
    int first;    // row of logits, and sample, of the first drawn one
    int n_scores; // rows before that
    int n_drawn;  // samples
};

// Whether it pays to have a small model write ahead: seconds that a call won, lately. Where it does not it is left
// alone for a while, each time longer.
struct scheduler_writing {
    double won;
    int most;              // tokens of a call: few until it has won
    int rest, pause;       // steps left, and of the next one
    double seconds, plain; // of this step's call, 0: none; and of a step without drafts
    int n_decoding;
    int n_accepted; // written tokens
};

// Rows of other programs in the steps of persons, and the seconds by which they may lengthen one.
struct scheduler_beside {
    double left; // of what steps so far have allowed
    double cost; // of the step in the making
    int rows;    // likewise
    bool few;    // likewise: it is measured by its rows
};

struct scheduler {
    struct placement *placement;
    struct placement_plan fallback;
    struct backend_params backend; // what both are opened with
    struct scheduler_events events;
    struct metrics *metrics;
    int n_vocab, context, max_rows, max_draws, max_running, prefill_chunk;
    bool drafts;

    struct kv_cache cache;
    struct prefix_index prefixes;
    struct hibernation hibernation;
    struct sampler_scratch **scratch; // [n_scratch], one a worker
    int n_scratch;

    // In the order of service: first the conversation in focus, then the others, then those of other programs; by
    // request and answer within each.
    struct sequence **sequences;
    int n_sequences, capacity, n_running;
    uint64_t focus;
    uint64_t turn; // number of the step
    struct speed speed;
    struct drafter *drafter; // NULL: none
    struct scheduler_writing writing;
    double last_step; // end of the step before; 0: there was none since requests came

    // The batch in the making.
    struct batch_row *rows;         // [max_rows]
    struct batch_segment *segments; // [max_rows]
    struct scheduler_draw *draws;   // [max_draws]
    struct sample *samples;         // [max_draws], one a row that wants logits
    float *logits;                  // [max_draws][n_vocab], of these rows; the backend's, of the step that ran last
    struct page_copy *copies;       // that the next batch makes, whichever it is
    int n_copies, most_copies;
    struct batch batch;
    int n_draws;
    int decode_rows, draft_rows; // a row each of those that decode; and of their proposed tokens
    int spare_rows;              // of what is read ahead beside them
    struct scheduler_beside beside;
};

// Changes state and reports it.
void scheduler_enter(struct scheduler *s, struct sequence *q, enum request_state state, const char *message);
// The pages of the first n tokens can be found.
void scheduler_publish(struct scheduler *s, const struct sequence *q, int n);
// Only prompts that are read ahead are there.
bool scheduler_reads_ahead(const struct scheduler *s);
// Whether a is served before b.
bool scheduler_before(const struct scheduler *s, const struct sequence *a, const struct sequence *b);

// ---- admission.c ----

// Gives sequences that wait a place to run, in the order of service, until one finds no pages.
void admission_run(struct scheduler *s);
// Makes the next n tokens of q rows of the step. Where pages are short cached ones are evicted, then those served last
// are pre-empted; false when q was the last itself and had to go.
bool admission_reserve(struct scheduler *s, struct sequence *q, int n);
// The same without taking anybody's place; false where pages are short.
bool admission_reserve_cached(struct scheduler *s, struct sequence *q, int n);
// Appends as many of n_pages free or cached pages as those who run will not need; returns how many.
int admission_take(struct scheduler *s, struct kv_sequence *kv, int n_pages);
// Whoever reads ahead gives way to those that have come; false: nobody did.
bool admission_yield(struct scheduler *s);
// q computes no more: its pages are published unless they are not to be, and given back; nobody waits for it.
void admission_leave(struct scheduler *s, struct sequence *q, bool publish);
// The KV cache is lost: whoever runs is to begin again, and nothing is cached.
void admission_restart(struct scheduler *s);

// ---- scheduler.c ----

// Runs a batch, and before it the copies that are to be made. False with `lost` where a device failed and the fallback
// took its place: nothing is computed any more, and all sequences are at rest.
bool scheduler_run(struct scheduler *s, struct batch *batch, struct backend_result *out, bool *lost, struct status *st);

// ---- scheduler_report.c ----

// What the step in the making does beside decoding.
void report_step(const struct scheduler *s, struct latency_moment *m);

// ---- plan.c ----

// Decides the rows of the next step and reserves their pages; on return s->batch is ready to run, or has no rows.
void plan_step(struct scheduler *s);
// The step, with so many prompt rows, took so long but for planning, and has drawn.
void plan_learn(struct scheduler *s, int prompt_rows, double seconds);

// ---- plan_drafts.c ----

// Guesses how the texts of those that decode go on, and makes rows of what is worth it.
void plan_drafts(struct scheduler *s);
// Of plan_learn: what the step took without other programs' rows.
void plan_learn_drafts(struct scheduler *s, double seconds);
// q does not draft any more.
void plan_leave_drafts(struct scheduler *s, struct sequence *q, bool publish);

#endif
