// Scheduler: which rows make up the next batch, and what becomes of the results.
//
// A step is one mixed batch: a row for every decoding sequence, and prompt rows up to a bound, shared among the prompts
// that wait so that a short one never waits for the end of a long one. Sequences are served in the order of submission,
// those of the conversation in focus before all others, and those of other programs after persons', in the rows that
// these leave. One is admitted when the pages that it needs are free or only cached. What is cached is shared, and so
// is what another sequence computes at this moment: whoever needs the same waits for it. Prompts that are read ahead
// run while no others are there, and give a step up for whoever comes; beside programs' they are the first, and beside
// persons' that decode they have the rows that lengthen no step.
// When pages run out the last running sequence in that order is pre-empted, and so it is when one of the conversation
// in focus finds no place, or a person's where programs have them: its pages are others' to take, it waits, and goes on
// with the same text. Where a device fails all of them wait until the model is open on the fallback. Owns requests,
// sequences, KV pages, the prefix index, sampler scratch and the backend. One thread uses it.
#ifndef CONFAB_SERVE_SCHEDULER_H
#define CONFAB_SERVE_SCHEDULER_H

#include "engine/serve/drafter.h"
#include "engine/serve/hibernate.h"
#include "engine/serve/metrics.h"
#include "engine/serve/placement.h"
#include "engine/serve/sequence.h"

#define SCHEDULER_PREFILL_CHUNK 512

struct scheduler_events {
    void *context;
    // After every change of state; message is "" unless failed. After a final state the sequence is gone, and with its
    // last one the request.
    void (*state)(void *context, const struct sequence *q, const char *message);
    // A token was drawn, or is one that the answer begins with: its figures are unknown then. True when it
    // ends the answer (and does not become a part of it). The sequence's constraint is told what follows.
    bool (*token)(void *context, const struct sequence *q, const struct sample *sample);
    // How likely a token of the prompt is, one after the other, where the request wants that. NULL: nobody cares.
    void (*scored)(void *context, const struct sequence *q, const struct sample *sample);
    // After the last of the drawn ones that became a part of the answer: what it was drawn from. NULL: nobody cares.
    void (*drawn)(void *context, const struct sequence *q, const struct sampler_input *in, int32_t token);
    // Asked now and then while prompts or logits are computed, on any thread of a backend: whether to give the step up,
    // because its rows may not be wanted any more or others more urgently. They are computed again if they still are.
    // NULL: never.
    bool (*stop)(void *context);
    // A device failed, as the message says, and the model goes on elsewhere: scheduler_backend tells where. All
    // sequences stay, their keys and values are computed again. NULL: nobody cares.
    void (*moved)(void *context, const char *message);
};

// Pages on the disk: hibernate.h.
struct hibernation_params {
    struct hibernate *store; // borrowed; NULL: none
    uint64_t model_key;      // hibernate_key.h
    double delay;            // seconds for which a text rests before it is saved
    double worth_seconds;    // what is computed again in less is not saved
};

struct scheduler_params {
    struct placement_plan placement;
    struct placement_plan fallback; // where a device fails; n is 0: requests fail with it
    const struct model *model;
    int n_threads;        // as of struct backend_params
    int n_pages, context; // context ≤ n_pages × KV_PAGE_TOKENS
    int asked_context;    // as of struct backend_params
    int prefill_chunk;    // prompt rows a step at most; 0: SCHEDULER_PREFILL_CHUNK
    bool drafts;          // guesses how texts go on, see draft.h
    int max_running;      // sequences at a time; 0: as many as the backend's buffers serve in two steps, 64 at least
    struct backend_options options;
    struct hibernation_params hibernation;
    struct scheduler_events events;
    struct metrics *metrics; // borrowed
};

struct scheduler_request {
    uint64_t id, conversation;
    uint64_t disk_owner; // as of struct request_params
    int32_t *ids;        // from malloc, freed
    int n_ids;
    int n_begun; // of the ids, the last: every answer begins with them, they are no part of the prompt
    struct sampling sampling;
    const struct sampling *samplings; // [n_answers], borrowed for the call; NULL: `sampling`, for each another seed
    int max_tokens;                   // 0: no bound but the context
    int room;                         // as of struct request_params
    enum read_ahead read_ahead;       // likewise; ids are those to compute or find
    bool background;                  // likewise
    bool score_prompt;                // likewise
    double time_limit;                // seconds, 0: none
    double submitted;                 // by clock_seconds(); 0: now
    int n_answers;                    // 0: one
    void *const *owners;              // [n_answers], borrowed for the call: of each sequence; NULL: none
    struct constraint *const *constraints; // [n_answers], borrowed for the call, each taken over; NULL: none
};

struct scheduler;

// What its backend is opened with: up to 64 rows of a step have logits, fewer where the vocabulary is large.
struct backend_params scheduler_backend_params(const struct scheduler_params *p);
struct scheduler *scheduler_open(const struct scheduler_params *p, struct status *st);
void scheduler_close(struct scheduler *s); // reports nothing more
// Takes a drafter, which writes where lookup finds nothing likely; before the first request. NULL: none.
void scheduler_set_drafter(struct scheduler *s, struct drafter *drafter);

void scheduler_submit(struct scheduler *s, const struct scheduler_request *q);
void scheduler_cancel(struct scheduler *s, uint64_t id);
void scheduler_cancel_answer(struct scheduler *s, uint64_t id, int answer);
void scheduler_cancel_all(struct scheduler *s);
void scheduler_set_sampling(struct scheduler *s, uint64_t id, const struct sampling *sampling);
void scheduler_set_answer_sampling(struct scheduler *s, uint64_t id, int answer, const struct sampling *sampling);
void scheduler_focus(struct scheduler *s, uint64_t conversation);
void scheduler_forget(struct scheduler *s, uint64_t conversation, uint64_t disk_owner);

// During a step: whether it is given up where nobody wants this request any more: it computes rows of it, and none that
// somebody more important waits for, nor next tokens. And whether it is given up for a new request of this
// conversation: that would be served before one whose rows it computes, if `focus` were the conversation in focus by
// then.
bool scheduler_computes(const struct scheduler *s, uint64_t id);
bool scheduler_overtakes(const struct scheduler *s, uint64_t conversation, bool background, uint64_t focus);
uint64_t scheduler_focused(const struct scheduler *s);

// One step; false when there was nothing to do.
bool scheduler_step(struct scheduler *s);
// Repacks a few of the weights that a quick start put off, for some milliseconds; false when none are left.
bool scheduler_prepare(struct scheduler *s);
bool scheduler_idle(const struct scheduler *s); // no request pending or running

// Some of the work of saving texts that rest, between steps; false when none is due.
bool scheduler_hibernate(struct scheduler *s);
double scheduler_hibernate_due(const struct scheduler *s); // when some is, by clock_seconds(); HUGE_VAL: not known
void scheduler_hibernate_all(struct scheduler *s);         // at the end
// A job of the store's has ended; frees it.
void scheduler_hibernated(struct scheduler *s, struct hibernate_job *job);

// Logits [n, n_vocab] of every position of a text, a pass at a time. From start to end no step may be made; requests
// that are submitted meanwhile wait.
struct scheduler_logits {
    const int32_t *ids; // [n]
    int n;
    float *out;
    int n_done; // of ids
    struct kv_sequence kv;
};
// Fails while there are requests, and for ids or lengths out of range.
bool scheduler_logits_start(const struct scheduler *s, struct scheduler_logits *l, struct status *st);
// As many positions as a batch has outputs; none where the pass is given up.
bool scheduler_logits_pass(struct scheduler *s, struct scheduler_logits *l, struct status *st);
void scheduler_logits_end(struct scheduler *s, struct scheduler_logits *l);

const struct backend_info *scheduler_backend(const struct scheduler *s);
// Requests, pages and the last batch.
void scheduler_metrics(const struct scheduler *s, struct engine_metrics *out);
// The tokens in a page [KV_PAGE_TOKENS], and where they stand in their text; returns how many are known.
int scheduler_page(const struct scheduler *s, int page, int32_t *tokens, int *position);
// Between steps: verifies the KV cache against every sequence there is, the prefix index, and the sequences themselves.
bool scheduler_check(const struct scheduler *s, struct status *st);

#endif
