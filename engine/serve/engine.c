// Engine: the thread that runs a model for everybody else.
//
// Callers push commands, the thread alone touches the scheduler and answers with events and figures. While it computes
// it obeys the commands between steps, and gives a long step up for urgent ones; otherwise it sleeps in the queue.
#include "engine/engine.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/queue.h"
#include "engine/base/system.h"
#include "engine/model/opened_model.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/prompt_source.h"
#include "engine/serve/scheduler.h"

#define PUBLISH_SECONDS (1.0 / 60)

// How long weights are prepared after a step that drew a token, as a share of that step: until all are, each step makes
// those it lacks for itself, which is the less work in all the longer the pauses are.
#define PREPARE_SHARE 2

enum command_kind {
    COMMAND_SUBMIT,
    COMMAND_CANCEL,
    COMMAND_SAMPLING,
    COMMAND_FOCUS,
    COMMAND_FORGET,
    COMMAND_LOGITS,
    COMMAND_CLOSE
};

struct submission {
    struct prompt_source source;
    struct scheduler_request request; // all but ids and owners
    bool ignore_end;
    char **stops;
    int n_stops;
};

struct logits_job { // on the stack of whoever waits for it
    struct scheduler_logits text;
    struct status *st;
    struct queue done; // of bool
    struct logits_job *next;
};

struct command {
    enum command_kind kind;
    uint64_t id; // of a request or a conversation
    struct sampling sampling;
    struct submission *submission;
    struct logits_job *logits;
};

struct engine {
    const struct model_file *file;
    struct scheduler *scheduler;
    struct logits_job *jobs; // in the order they came; no request takes a step before they are done
    struct figures figures;
    struct queue commands, events;
    pthread_t thread;
    atomic_uint_fast64_t last_id;
    bool closing;
    bool preparing; // weights are still put off
    bool drew;      // a token in the last step
    double published;
    char backend[64];
    uint64_t kv_bytes;
};

// ---- what the scheduler reports ----

static void on_state(void *context, const struct sequence *q, const char *message) {
    struct engine *e = context;
    if (q->state >= REQUEST_FINISHED) answer_finish(q->owner);
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = q->request->id,
                                 .conversation = q->request->conversation,
                                 .answer = q->answer,
                                 .at = clock_ns(),
                                 .state = q->state,
                                 .reason = q->reason,
                                 .time = clock_seconds(),
                                 .n_prompt = q->request->n_prompt,
                                 .n_reused = q->n_reused,
                                 .n_generated = sequence_generated(q),
                                 .token = -1};
    event.size = (size_t)snprintf(event.text, sizeof event.text, "%s", message);
    if (q->state >= REQUEST_FINISHED) answer_close(q->owner);
    queue_push(&e->events, &event);
}

static bool on_token(void *context, const struct sequence *q, const struct sample *sample) {
    ((struct engine *)context)->drew = true;
    return answer_token(q->owner, sample);
}

static void publish(struct engine *e) {
    e->published = clock_seconds();
    struct engine_figures *f = figures_begin(&e->figures, e->published);
    memcpy(f->backend, e->backend, sizeof f->backend);
    f->n_threads = scheduler_backend(e->scheduler)->n_threads;
    f->kv_bytes = e->kv_bytes;
    f->preparing = e->preparing;
    scheduler_figures(e->scheduler, f);
    figures_publish(&e->figures);
}

// ---- commands, on the engine's thread ----

static struct submission *submission_copy(const struct request_params *p) {
    struct submission *s = xcalloc(1, sizeof *s);
    *s = (struct submission){.source = prompt_source_copy(p), .ignore_end = p->ignore_end, .n_stops = p->n_stops};
    s->stops = xcalloc((size_t)p->n_stops + 1, sizeof *s->stops);
    for (int i = 0; i < p->n_stops; i++) s->stops[i] = xstrdup(p->stops[i]);
    return s;
}

static void submission_free(struct submission *s) {
    prompt_source_free(&s->source);
    for (int i = 0; i < s->n_stops; i++) free(s->stops[i]);
    free(s->stops);
    free(s);
}

static void tell_refusal(struct engine *e, const struct submission *s, const struct status *refused) {
    struct engine_event event = {.kind = EVENT_NOTICE,
                                 .request = s->request.id,
                                 .conversation = s->request.conversation,
                                 .at = clock_ns(),
                                 .token = -1};
    event.size =
        (size_t)snprintf(event.text, sizeof event.text,
                         "the model's own chat template refuses this conversation (%.300s); confab's for %s is "
                         "used instead",
                         refused->text, chat_template_name(e->file->chat_template));
    queue_push(&e->events, &event);
}

static void submit(struct engine *e, struct submission *s) {
    struct token_list list = {0};
    struct prompt_outcome outcome;
    prompt_source_encode(e->file, &s->source, &list, &outcome);
    if (outcome.refused.code != STATUS_OK) tell_refusal(e, s, &outcome.refused);
    s->request.ids = list.ids;
    s->request.n_ids = list.count < INT32_MAX ? (int)list.count : INT32_MAX;
    struct answer_params answer = {.tokenizer = e->file->tokenizer,
                                   .channels = &e->file->channels,
                                   .events = &e->events,
                                   .request = s->request.id,
                                   .conversation = s->request.conversation,
                                   .ignore_end = s->ignore_end,
                                   .stops = (const char *const *)s->stops,
                                   .n_stops = s->n_stops,
                                   .template_stop = outcome.template_stop,
                                   .chat = s->source.messages,
                                   .inside = outcome.opens_thinking};
    void **owners = xcalloc((size_t)s->request.n_answers, sizeof *owners);
    for (; answer.answer < s->request.n_answers; answer.answer++) owners[answer.answer] = answer_open(&answer);
    s->request.owners = owners;
    scheduler_submit(e->scheduler, &s->request);
    free(owners);
    submission_free(s);
}

static void start_logits(struct engine *e, struct logits_job *job) {
    bool ok = scheduler_logits_start(e->scheduler, &job->text, job->st);
    struct logits_job **last = &e->jobs;
    while (*last) last = &(*last)->next;
    if (ok) *last = job;
    else queue_push(&job->done, &ok);
}

// Whoever waits for the first job is told, and the job is gone.
static void end_logits(struct engine *e, bool ok) {
    struct logits_job *job = e->jobs;
    e->jobs = job->next;
    scheduler_logits_end(e->scheduler, &job->text);
    queue_push(&job->done, &ok);
}

static bool refuse_closing(struct status *st) { return status_fail(st, STATUS_CANCELLED, "the engine is closing"); }

static void obey(struct engine *e, const struct command *c) {
    switch (c->kind) {
    case COMMAND_SUBMIT: submit(e, c->submission); break;
    case COMMAND_CANCEL: scheduler_cancel(e->scheduler, c->id); break;
    case COMMAND_SAMPLING: scheduler_set_sampling(e->scheduler, c->id, &c->sampling); break;
    case COMMAND_FOCUS: scheduler_focus(e->scheduler, c->id); break;
    case COMMAND_FORGET: scheduler_forget(e->scheduler, c->id); break;
    case COMMAND_LOGITS: start_logits(e, c->logits); break;
    case COMMAND_CLOSE: e->closing = true; break;
    }
}

// What a step is given up for: it computes what was cancelled, or holds up the conversation that the user looks at.
struct look {
    const struct scheduler *scheduler;
    uint64_t focus;
};

static bool urgent(const void *item, void *context) {
    const struct command *c = item;
    struct look *look = context;
    if (c->kind == COMMAND_FOCUS) look->focus = c->id;
    if (c->kind == COMMAND_SUBMIT)
        return scheduler_overtakes(look->scheduler, c->submission->request.conversation, look->focus);
    return c->kind == COMMAND_CLOSE || (c->kind == COMMAND_CANCEL && scheduler_computes(look->scheduler, c->id));
}

static bool on_step(void *context) {
    struct engine *e = context;
    struct look look = {e->scheduler, scheduler_focused(e->scheduler)};
    return queue_any(&e->commands, urgent, &look);
}

// Sleeps until there is a command, but for one look at the clock when the rates have sunk to zero.
static void wait_idle(struct engine *e, struct command *c) {
    publish(e);
    double settled = e->figures.last_step + FIGURES_WINDOW_SECONDS + 0.1 - e->published;
    if (settled > 0) {
        if (queue_wait(&e->commands, c, 1 + (int)(settled * 1000))) return;
        publish(e);
    }
    queue_wait(&e->commands, c, -1);
}

// Prepares weights for so many seconds, unless there is something else to do.
static void prepare(struct engine *e, double seconds) {
    double now = clock_seconds();
    const double end = now + seconds;
    while (e->preparing && queue_empty(&e->commands) && now < end) {
        e->preparing = scheduler_prepare(e->scheduler);
        now = clock_seconds();
        if (now - e->published >= PUBLISH_SECONDS) publish(e);
    }
}

// Whoever reads an answer has time between its tokens; whoever still waits for the first one has not.
static void step(struct engine *e) {
    const double start = clock_seconds();
    e->drew = false;
    scheduler_step(e->scheduler);
    const double end = clock_seconds();
    if (end - e->published >= PUBLISH_SECONDS) publish(e);
    if (e->drew) prepare(e, PREPARE_SHARE * (end - start));
}

static void logits_step(struct engine *e) {
    struct scheduler_logits *text = &e->jobs->text;
    bool ok = scheduler_logits_pass(e->scheduler, text, e->jobs->st);
    if (!ok || text->n_done == text->n) end_logits(e, ok);
    if (clock_seconds() - e->published >= PUBLISH_SECONDS) publish(e);
}

static bool idle(const struct engine *e) { return !e->jobs && scheduler_idle(e->scheduler); }

static void *engine_main(void *argument) {
    struct engine *e = argument;
    while (!e->closing) {
        struct command c;
        if (idle(e)) prepare(e, HUGE_VAL);
        if (idle(e)) {
            wait_idle(e, &c);
            obey(e, &c);
        }
        while (!e->closing && queue_pop(&e->commands, &c)) obey(e, &c);
        if (e->closing) break;
        if (e->jobs) logits_step(e);
        else step(e);
    }
    scheduler_cancel_all(e->scheduler);
    while (e->jobs) end_logits(e, refuse_closing(e->jobs->st));
    return NULL;
}

// ---- opening and closing ----

static struct scheduler *open_scheduler(struct engine *e, const struct engine_params *p, const struct backend_ops *ops,
                                        struct status *st) {
    struct memory_size size;
    if (!memory_size_choose(&size, e->file, p, ops, st)) return NULL;
    e->kv_bytes = size.memory.kv;
    struct scheduler_params params = {.placement = placement_on(ops, 0),
                                      .model = &e->file->model,
                                      .n_threads = p->n_threads,
                                      .n_pages = size.n_pages,
                                      .context = size.context,
                                      .asked_context = size.asked_context,
                                      .prefill_chunk = p->prefill_chunk,
                                      .options = p->options,
                                      .figures = &e->figures,
                                      .events = {.context = e, .state = on_state, .token = on_token, .stop = on_step}};
    return scheduler_open(&params, st);
}

// Everything but the thread.
static bool open_parts(struct engine *e, const struct engine_params *p, const struct backend_ops *ops,
                       struct status *st) {
    return queue_open(&e->commands, sizeof(struct command), st) &&
           queue_open(&e->events, sizeof(struct engine_event), st) &&
           (e->scheduler = open_scheduler(e, p, ops, st));
}

static void close_parts(struct engine *e) {
    if (e->scheduler) scheduler_close(e->scheduler);
    queue_close(&e->commands);
    queue_close(&e->events);
    figures_close(&e->figures);
    free(e);
}

struct engine *engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                              struct status *st) {
    assert(!m->described);
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return NULL;
    }
    struct engine *e = xcalloc(1, sizeof *e);
    e->file = m;
    figures_open(&e->figures);
    if (open_parts(e, p, ops, st)) {
        e->preparing = p->options.quick_start;
        snprintf(e->backend, sizeof e->backend, "%s", scheduler_backend(e->scheduler)->description);
        publish(e);
        if (system_start_thread(&e->thread, engine_main, e, st)) return e;
    }
    close_parts(e);
    return NULL;
}

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    return engine_open_on(m, p, &cpu_backend, st);
}

// Those that came after the one to close.
static void discard_commands(struct engine *e) {
    struct command c;
    while (queue_pop(&e->commands, &c)) {
        if (c.kind == COMMAND_SUBMIT) submission_free(c.submission);
        if (c.kind == COMMAND_LOGITS) queue_push(&c.logits->done, &(bool){refuse_closing(c.logits->st)});
    }
}

void engine_close(struct engine *e) {
    if (!e) return;
    queue_push(&e->commands, &(struct command){.kind = COMMAND_CLOSE});
    pthread_join(e->thread, NULL);
    discard_commands(e);
    close_parts(e);
}

// ---- commands, on the callers' threads ----

uint64_t engine_submit(struct engine *e, const struct request_params *p) {
    struct submission *s = submission_copy(p);
    s->request = (struct scheduler_request){.id = atomic_fetch_add(&e->last_id, 1) + 1,
                                            .conversation = p->conversation,
                                            .sampling = p->sampling,
                                            .n_answers = p->n_answers > 1 ? p->n_answers : 1,
                                            .max_tokens = p->max_tokens,
                                            .time_limit = p->time_limit,
                                            .submitted = clock_seconds()};
    uint64_t id = s->request.id; // s may be gone once it is pushed
    queue_push(&e->commands, &(struct command){.kind = COMMAND_SUBMIT, .submission = s});
    return id;
}

void engine_cancel(struct engine *e, uint64_t request) {
    queue_push(&e->commands, &(struct command){.kind = COMMAND_CANCEL, .id = request});
}

void engine_set_sampling(struct engine *e, uint64_t request, const struct sampling *s) {
    queue_push(&e->commands, &(struct command){.kind = COMMAND_SAMPLING, .id = request, .sampling = *s});
}

void engine_focus(struct engine *e, uint64_t conversation) {
    queue_push(&e->commands, &(struct command){.kind = COMMAND_FOCUS, .id = conversation});
}

void engine_forget(struct engine *e, uint64_t conversation) {
    queue_push(&e->commands, &(struct command){.kind = COMMAND_FORGET, .id = conversation});
}

bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st) {
    struct logits_job job = {.text = {.ids = ids, .n = n, .out = out}, .st = st};
    bool ok;
    if (!queue_open(&job.done, sizeof ok, st)) return false;
    queue_push(&e->commands, &(struct command){.kind = COMMAND_LOGITS, .logits = &job});
    queue_wait(&job.done, &ok, -1);
    queue_close(&job.done);
    return ok;
}

bool engine_poll(struct engine *e, struct engine_event *out) { return queue_pop(&e->events, out); }
bool engine_wait(struct engine *e, struct engine_event *out, int timeout_ms) {
    return queue_wait(&e->events, out, timeout_ms);
}
int engine_event_fd(const struct engine *e) { return e->events.fd; }
const struct engine_figures *engine_figures(struct engine *e) { return figures_latest(&e->figures); }
