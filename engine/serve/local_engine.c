// Local engine: the thread that runs a model for its clients.
//
// They push commands, the thread alone touches the scheduler and answers with events and metrics. Prompts come to it as
// tokens: a thread of their own encodes them before. While it computes it obeys the commands between steps, and gives a
// long step up for urgent ones; otherwise it sleeps in the queue.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/model/opened_model.h"
#include "engine/serve/local_engine_state.h"

#define PUBLISH_SECONDS (1.0 / 60)

// How long weights are prepared after a step that drew a token, as a share of that step: until all are, each step makes
// those it lacks for itself, which is the less work in all the longer the pauses are.
#define PREPARE_SHARE 2

// After so long somebody who waits for the disk alone may have run out of time.
#define WAIT_MS 20

// ---- requests ----

// NULL: it has ended, or is another client's.
static struct local_request *request_find(const struct local_engine *e, const struct local_client *c, uint64_t id) {
    struct local_request *r = e->requests;
    while (r && (r->request.id != id || r->client != c)) r = r->next;
    return r;
}

static void request_end(struct local_engine *e, struct local_request *r) {
    struct local_request **at = &e->requests;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    local_request_free(r);
}

// ---- what the scheduler reports ----

// Being woken for every token of a step would cost client and engine more than the tokens do.
static void hold(struct local_engine *e, struct local_client *c) {
    if (c->held) return;
    c->held = true;
    c->next_held = e->held;
    e->held = c;
    queue_hold(&c->client.events);
}

static void release(struct local_engine *e) {
    for (struct local_client *c; (c = e->held);) {
        e->held = c->next_held;
        c->held = false;
        queue_release(&c->client.events);
    }
}

static void on_state(void *context, const struct sequence *q, const char *message) {
    struct local_answer *a = q->owner;
    struct local_request *r = a->request;
    const bool ended = q->state >= REQUEST_FINISHED;
    const unsigned long long id = q->request->id;
    if (ended) answer_finish(a->text);
    if (q->state == REQUEST_FAILED && !r->request.read_ahead)
        log_error("engine", "request %llu failed: %s", id, message);
    else
        log_debug("engine", "request %llu is %s: %d prompt tokens (%d cached), %d generated", id,
                  request_state_name(q->state), q->request->n_prompt, q->n_reused, sequence_generated(q));
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = q->request->id,
                                 .conversation = local_client_conversation(r->client, q->request->conversation),
                                 .answer = q->answer,
                                 .at = clock_ns(),
                                 .state = q->state,
                                 .reason = q->reason,
                                 .stop = answer_stop(a->text),
                                 .time = clock_seconds(),
                                 .n_prompt = q->request->n_prompt,
                                 .n_reused = q->n_reused,
                                 .n_generated = sequence_generated(q),
                                 .n_drafted = q->n_drafted,
                                 .n_accepted = q->n_accepted,
                                 .token = -1};
    event.size = (size_t)snprintf(event.text, sizeof event.text, "%s", message);
    queue_push(&r->client->client.events, &event);
    if (!ended) return;
    answer_close(a->text);
    if (!--r->n_open) request_end(context, r);
}

static void follow(struct constraint *c, const struct answer *text) {
    constraint_follow(c, answer_is_answer(text), answer_needs_header(text), answer_held(text));
}

static bool on_token(void *context, const struct sequence *q, const struct sample *sample) {
    struct local_engine *e = context;
    const struct local_answer *a = q->owner;
    e->drew = true;
    hold(e, a->request->client);
    const bool ends = answer_token(a->text, sample);
    if (q->constraint) follow(q->constraint, a->text);
    return ends;
}

static void on_scored(void *context, const struct sequence *q, const struct sample *sample) {
    const struct local_answer *a = q->owner;
    hold(context, a->request->client);
    answer_prompt(a->text, sample);
}

static void on_drawn(void *context, const struct sequence *q, const struct sampler_input *in, int32_t token) {
    const struct local_client *c = ((const struct local_answer *)q->owner)->request->client;
    (void)context;
    if (c->watched == q->request->id && c->watched_answer == q->answer)
        watch_note(c->watch, local_client_conversation(c, q->request->conversation), in, token);
}

static void tell_notice(const struct local_request *r, const char *text) {
    struct engine_event event = {.kind = EVENT_NOTICE,
                                 .request = r->request.id,
                                 .conversation = local_client_conversation(r->client, r->request.conversation),
                                 .at = clock_ns(),
                                 .token = -1};
    event.size = (size_t)snprintf(event.text, sizeof event.text, "%s", text);
    queue_push(&r->client->client.events, &event);
}

static int count_encoding(const struct local_engine *e) {
    int n = 0;
    for (const struct local_request *r = e->requests; r; r = r->next)
        n += r->client && !r->scheduled && !r->request.read_ahead;
    return n;
}

static void show_page(const struct local_engine *e, struct page_text *out) {
    int32_t tokens[KV_PAGE_TOKENS];
    *out = (struct page_text){.page = e->page};
    if (e->page < 0) return;
    out->n_tokens = scheduler_page(e->scheduler, e->page, tokens, &out->position);
    answer_tokens_text(e->file->tokenizer, tokens, out->n_tokens, out->text, sizeof out->text);
}

void local_engine_publish(struct local_engine *e) {
    e->published = clock_seconds();
    struct engine_metrics *f = metrics_begin(&e->metrics, e->published);
    memcpy(f->backend, e->backend, sizeof f->backend);
    f->n_threads = scheduler_backend(e->scheduler)->n_threads;
    f->kv_bytes = (int64_t)e->kv_bytes;
    f->preparing = e->preparing;
    scheduler_metrics(e->scheduler, f);
    show_page(e, &f->page);
    f->queue += count_encoding(e);
    metrics_publish(&e->metrics);
}

void local_engine_note_backend(struct local_engine *e) {
    snprintf(e->backend, sizeof e->backend, "%s", scheduler_backend(e->scheduler)->description);
}

static void on_moved(void *context, const char *message) {
    struct local_engine *e = context;
    char text[512];
    local_engine_note_backend(e);
    e->preparing = true;
    snprintf(text, sizeof text, "%.300s: the answer goes on on the processor (%s)", message, e->backend);
    log_warning("engine", "%s: %s", e->file->info.name, text);
    for (const struct local_request *r = e->requests; r; r = r->next)
        if (r->client) tell_notice(r, text);
}

// ---- commands, on the engine's thread ----

static void tell_refusal(struct local_engine *e, const struct local_request *r, const struct prompt_outcome *outcome) {
    char text[512];
    if (outcome->refused_file)
        snprintf(text, sizeof text, "%.400s; the model's own chat template is used instead", outcome->refused.text);
    else
        snprintf(text, sizeof text,
                 "the model's own chat template refuses this conversation (%.300s); confab's for %s is used instead",
                 outcome->refused.text, chat_template_name(e->file->chat_template));
    log_warning("engine", "%s: %s", e->file->info.name, text);
    tell_notice(r, text);
}

// Holds an answer to the request's grammar.
static struct constraint *constrain(const struct local_engine *e, const struct local_request *r,
                                    const struct answer_params *p, const struct answer *text) {
    const char *stop = r->ignore_end ? NULL : p->template_stop;
    const struct constraint_params params = {.vocabulary = e->vocabulary,
                                             .grammar = r->grammar,
                                             .chat = p->chat,
                                             .ignore_end = r->ignore_end,
                                             .end_token =
                                                 stop ? tokenizer_find(e->file->tokenizer, stop, strlen(stop)) : -1};
    struct constraint *c = constraint_open(&params);
    follow(c, text);
    return c;
}

static void schedule(struct local_engine *e, struct local_request *r) {
    struct encoding *done = &r->encoding;
    const struct prompt_outcome outcome = done->outcome;
    const uint64_t forgotten = r->forgotten ? r->request.conversation : 0;
    if (outcome.refused.code != STATUS_OK) tell_refusal(e, r, &outcome);
    r->scheduled = true;
    struct answer_params answer = {.tokenizer = e->file->tokenizer,
                                   .channels = &e->file->channels,
                                   .events = &r->client->client.events,
                                   .request = r->request.id,
                                   .conversation = local_client_conversation(r->client, r->request.conversation),
                                   .ignore_end = r->ignore_end,
                                   .stops = (const char *const *)r->stops,
                                   .n_stops = r->n_stops,
                                   .template_stop = outcome.template_stop,
                                   .chat = done->source.messages,
                                   .inside = outcome.opens_thinking};
    const int n = r->n_open = r->request.n_answers;
    void **owners = xcalloc((size_t)n, sizeof *owners);
    struct constraint **constraints = r->grammar ? xcalloc((size_t)n, sizeof(struct constraint *)) : NULL;
    bool *unwanted = xcalloc((size_t)n, sizeof *unwanted);
    for (; answer.answer < n; answer.answer++) {
        struct local_answer *a = owners[answer.answer] = &r->answers[answer.answer];
        a->text = answer_open(&answer);
        if (constraints) constraints[answer.answer] = constrain(e, r, &answer, a->text);
        unwanted[answer.answer] = a->unwanted;
    }
    struct sampling *samplings = r->samplings;
    r->samplings = NULL;
    struct scheduler_request request = r->request; // r is gone where every answer ends at once
    request.ids = done->tokens.ids;                // the scheduler's from now on
    request.n_ids = done->tokens.count < INT32_MAX ? (int)done->tokens.count : INT32_MAX;
    request.n_begun = (int)outcome.n_begun;
    request.owners = owners;
    request.constraints = constraints;
    request.samplings = samplings;
    done->tokens = (struct token_list){0};
    scheduler_submit(e->scheduler, &request);
    for (int i = 0; i < n; i++)
        if (unwanted[i]) scheduler_cancel_answer(e->scheduler, request.id, i);
    release(e);
    free(owners), free(constraints), free(unwanted), free(samplings);
    if (forgotten) scheduler_forget(e->scheduler, forgotten, request.disk_owner);
}

static void submit(struct local_engine *e, struct local_request *r) {
    r->next = e->requests;
    e->requests = r;
    if (r->encoded) schedule(e, r);
}

static void take_encoded(struct local_engine *e, struct local_request *r) {
    if (r->client) schedule(e, r);
    else request_end(e, r);
}

// A request that is still encoded ends for its client; the encoder passes it on once more.
static void drop(struct local_request *r) {
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = r->request.id,
                                 .conversation = local_client_conversation(r->client, r->request.conversation),
                                 .at = clock_ns(),
                                 .state = REQUEST_CANCELLED,
                                 .reason = FINISH_CANCELLED,
                                 .time = clock_seconds(),
                                 .token = -1};
    for (; event.answer < r->request.n_answers; event.answer++) queue_push(&r->client->client.events, &event);
    atomic_store(&r->encoding.unwanted, true);
    r->client = NULL;
}

static void cancel(struct local_engine *e, const struct local_client *c, uint64_t id) {
    struct local_request *r = request_find(e, c, id);
    if (r && r->scheduled) scheduler_cancel(e->scheduler, id);
    else if (r) drop(r);
}

static bool has_answer(const struct local_request *r, int answer) {
    return answer >= 0 && answer < r->request.n_answers;
}

// Of a request that is still encoded it ends once it is scheduled.
static void cancel_answer(struct local_engine *e, const struct command *c) {
    struct local_request *r = request_find(e, c->client, c->id);
    if (r && r->scheduled) scheduler_cancel_answer(e->scheduler, c->id, c->answer);
    else if (r && has_answer(r, c->answer)) r->answers[c->answer].unwanted = true;
}

static void set_sampling(struct local_engine *e, const struct command *c) {
    struct local_request *r = request_find(e, c->client, c->id);
    const bool all = c->answer == EVERY_ANSWER;
    if (!r) return;
    if (r->scheduled && all) scheduler_set_sampling(e->scheduler, c->id, &c->sampling);
    else if (r->scheduled) scheduler_set_answer_sampling(e->scheduler, c->id, c->answer, &c->sampling);
    else if (all) local_request_spread(r, &c->sampling);
    else if (has_answer(r, c->answer)) r->samplings[c->answer] = c->sampling;
}

static void forget(struct local_engine *e, uint64_t conversation, uint64_t owner) {
    for (struct local_request *r = e->requests; r; r = r->next) r->forgotten |= r->request.conversation == conversation;
    scheduler_forget(e->scheduler, conversation, owner);
}

static void leave(struct local_engine *e, struct local_client *c) {
    for (struct local_request *r = e->requests, *next; r; r = next) {
        next = r->next;
        if (r->client == c) cancel(e, c, r->request.id);
    }
    local_client_free(c);
}

static void start_logits(struct local_engine *e, struct logits_job *job) {
    const int n = count_encoding(e);
    bool ok = n ? status_fail(job->st, STATUS_USAGE, "%d requests are running", n)
                : scheduler_logits_start(e->scheduler, &job->text, job->st);
    struct logits_job **last = &e->jobs;
    while (*last) last = &(*last)->next;
    if (ok) *last = job;
    else queue_push(&job->done, &ok);
}

// Whoever waits for the first job is told, and the job is gone.
static void end_logits(struct local_engine *e, bool ok) {
    struct logits_job *job = e->jobs;
    e->jobs = job->next;
    scheduler_logits_end(e->scheduler, &job->text);
    queue_push(&job->done, &ok);
}

static bool refuse_closing(struct status *st) { return status_fail(st, STATUS_CANCELLED, "the engine is closing"); }

static void obey(struct local_engine *e, const struct command *c) {
    switch (c->kind) {
    case COMMAND_SUBMIT: submit(e, c->request); break;
    case COMMAND_ENCODED: take_encoded(e, c->request); break;
    case COMMAND_CANCEL:
        if (c->answer == EVERY_ANSWER) cancel(e, c->client, c->id);
        else cancel_answer(e, c);
        break;
    case COMMAND_SAMPLING: set_sampling(e, c); break;
    case COMMAND_FOCUS: scheduler_focus(e->scheduler, c->id); break;
    case COMMAND_LOOK_AT_PAGE: e->page = c->page; break;
    case COMMAND_WATCH: c->client->watched = c->id, c->client->watched_answer = c->answer; break;
    case COMMAND_FORGET: forget(e, c->id, c->owner); break;
    case COMMAND_LEAVE: leave(e, c->client); break;
    case COMMAND_LOGITS: start_logits(e, c->logits); break;
    case COMMAND_HIBERNATED: scheduler_hibernated(e->scheduler, c->job); break;
    case COMMAND_CLOSE: e->closing = true; break;
    }
}

// What a step is given up for: it computes what was cancelled, or holds up the conversation that the user looks at, or
// computes for other programs while a person asks.
struct look {
    const struct local_engine *engine;
    uint64_t focus;
    const struct local_request *cancelled; // some of whose answers are, one by one
    int n_cancelled;
};

static bool computes_for(const struct local_engine *e, const struct local_client *c) {
    for (const struct local_request *r = e->requests; r; r = r->next)
        if (r->client == c && scheduler_computes(e->scheduler, r->request.id)) return true;
    return false;
}

static bool overtakes(const struct look *look, const struct local_request *r) {
    return !r->request.read_ahead &&
           scheduler_overtakes(look->engine->scheduler, r->request.conversation, r->request.background, look->focus);
}

// As long as one of its answers is wanted, so is their prompt; each is cancelled once.
static bool cancels_all(struct look *look, const struct local_request *r, int answer) {
    if (answer == EVERY_ANSWER) return true;
    if (look->cancelled != r) look->cancelled = r, look->n_cancelled = 0;
    return ++look->n_cancelled >= r->n_open;
}

static bool urgent(const void *item, void *context) {
    const struct command *c = item;
    struct look *look = context;
    const struct scheduler *s = look->engine->scheduler;
    const struct local_request *r;
    switch (c->kind) {
    case COMMAND_FOCUS: look->focus = c->id; return false;
    case COMMAND_SUBMIT: return c->request->encoded && overtakes(look, c->request);
    case COMMAND_ENCODED: return c->request->client && overtakes(look, c->request);
    case COMMAND_CANCEL:
        r = request_find(look->engine, c->client, c->id);
        if (!r || r->request.read_ahead) return false; // what follows has use for such a step
        return cancels_all(look, r, c->answer) && scheduler_computes(s, c->id);
    case COMMAND_LEAVE: return computes_for(look->engine, c->client);
    case COMMAND_HIBERNATED:
        return c->job->kind <= HIBERNATE_LOAD && scheduler_overtakes(s, c->job->conversation, false, look->focus);
    case COMMAND_CLOSE: return true;
    default: return false;
    }
}

static bool on_step(void *context) {
    struct local_engine *e = context;
    struct look look = {.engine = e, .focus = scheduler_focused(e->scheduler)};
    return queue_any(&e->commands, urgent, &look);
}

struct scheduler_events local_engine_events(struct local_engine *e) {
    return (struct scheduler_events){.context = e,
                                     .state = on_state,
                                     .token = on_token,
                                     .scored = on_scored,
                                     .drawn = on_drawn,
                                     .stop = on_step,
                                     .moved = on_moved};
}

// Waits for a command until a time by clock_seconds(); HUGE_VAL: for ever. False: none came.
static bool wait_until(struct local_engine *e, double time, struct command *c) {
    const double left = time - clock_seconds();
    if (left > 3600) return queue_wait(&e->commands, c, -1);
    return queue_wait(&e->commands, c, left > 0 ? 1 + (int)(left * 1000) : 0);
}

// Sleeps until there is a command, but for one look at the clock when the rates have sunk to zero, and to save what
// rests.
static void wait_idle(struct local_engine *e) {
    struct command c;
    if (!queue_empty(&e->commands)) return; // somebody waits for the first token
    local_engine_publish(e);
    for (;;) {
        const double settled = e->metrics.last_step + METRICS_WINDOW_SECONDS + 0.1;
        const bool sinks = settled > e->published;
        if (wait_until(e, fmin(sinks ? settled : HUGE_VAL, scheduler_hibernate_due(e->scheduler)), &c)) break;
        if (sinks && clock_seconds() >= settled) local_engine_publish(e);
        scheduler_hibernate(e->scheduler);
    }
    obey(e, &c);
}

// Prepares weights for so many seconds, unless there is something else to do.
static void prepare(struct local_engine *e, double seconds) {
    double now = clock_seconds();
    const double end = now + seconds;
    while (e->preparing && queue_empty(&e->commands) && now < end) {
        e->preparing = scheduler_prepare(e->scheduler);
        const double before = now;
        now = clock_seconds();
        e->metrics.repacking += (float)(now - before);
        if (now - e->published >= PUBLISH_SECONDS) local_engine_publish(e);
    }
    e->metrics.repacks = e->preparing;
}

// Whoever reads an answer has time between its tokens; whoever still waits for the first one has not.
static void step(struct local_engine *e) {
    const double start = clock_seconds();
    struct command c;
    e->drew = false;
    const bool any = scheduler_step(e->scheduler);
    release(e);
    if (!any && !scheduler_idle(e->scheduler)) { // whoever is there waits for the disk
        if (queue_wait(&e->commands, &c, WAIT_MS)) obey(e, &c);
        return;
    }
    const double stepped = clock_seconds();
    scheduler_hibernate(e->scheduler);
    const double end = clock_seconds();
    e->metrics.saving += (float)(end - stepped);
    if (end - e->published >= PUBLISH_SECONDS) local_engine_publish(e);
    if (e->drew) prepare(e, PREPARE_SHARE * (end - start));
}

static void logits_step(struct local_engine *e) {
    struct scheduler_logits *text = &e->jobs->text;
    bool ok = scheduler_logits_pass(e->scheduler, text, e->jobs->st);
    if (!ok || text->n_done == text->n) end_logits(e, ok);
    if (clock_seconds() - e->published >= PUBLISH_SECONDS) local_engine_publish(e);
}

static bool idle(const struct local_engine *e) { return !e->jobs && scheduler_idle(e->scheduler); }

void *local_engine_run(void *argument) {
    struct local_engine *e = argument;
    while (!e->closing) {
        struct command c;
        if (idle(e)) prepare(e, HUGE_VAL);
        if (idle(e)) wait_idle(e);
        while (!e->closing && queue_pop(&e->commands, &c)) obey(e, &c);
        if (e->closing) break;
        if (e->jobs) logits_step(e);
        else step(e);
    }
    scheduler_cancel_all(e->scheduler);
    scheduler_hibernate_all(e->scheduler);
    while (e->jobs) end_logits(e, refuse_closing(e->jobs->st));
    return NULL;
}

void local_engine_discard(struct local_engine *e) {
    struct command c;
    while (queue_pop(&e->commands, &c)) {
        if (c.kind == COMMAND_SUBMIT) local_request_free(c.request);
        if (c.kind == COMMAND_LEAVE) local_client_free(c.client);
        if (c.kind == COMMAND_HIBERNATED) hibernate_job_free(c.job);
        if (c.kind == COMMAND_LOGITS) queue_push(&c.logits->done, &(bool){refuse_closing(c.logits->st)});
    }
    while (e->requests) request_end(e, e->requests);
}
