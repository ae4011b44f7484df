// Local engine: the thread that runs a model for its clients.
//
// They push commands, the thread alone touches the scheduler and answers with events and metrics. Prompts come to it as
// tokens: a thread of their own encodes them before. While it computes it obeys the commands between steps, and gives a
// long step up for urgent ones; otherwise it sleeps in the queue.
#include "engine/local_engine.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/queue.h"
#include "engine/base/system.h"
#include "engine/engine_ops.h"
#include "engine/model/opened_model.h"
#include "engine/serve/drafter_file.h"
#include "engine/serve/encoder.h"
#include "engine/serve/hibernate_key.h"
#include "engine/serve/local_engine_state.h"
#include "engine/serve/memory_size.h"
#include "engine/serve/placement_choose.h"
#include "engine/serve/registry.h"
#include "engine/serve/scheduler.h"
#include "engine/serve/watch.h"

#define PUBLISH_SECONDS (1.0 / 60)

// How long weights are prepared after a step that drew a token, as a share of that step: until all are, each step makes
// those it lacks for itself, which is the less work in all the longer the pauses are.
#define PREPARE_SHARE 2

// After so long somebody who waits for the disk alone may have run out of time.
#define WAIT_MS 20

enum command_kind {
    COMMAND_SUBMIT,
    COMMAND_ENCODED, // what was submitted before
    COMMAND_CANCEL,
    COMMAND_SAMPLING,
    COMMAND_FOCUS,
    COMMAND_WATCH,
    COMMAND_LOOK_AT_PAGE,
    COMMAND_FORGET,
    COMMAND_LEAVE, // of a client
    COMMAND_LOGITS,
    COMMAND_HIBERNATED, // a job of the store's
    COMMAND_CLOSE
};

struct local_client {
    struct engine_client client;
    uint64_t number;               // of no other client
    struct engine_metrics *latest; // its own copy
    struct watch *watch;           // NULL: it has never watched
    uint64_t watched;              // request, and which of its answers; as the engine's thread knows it
    int watched_answer;
};

struct local_answer { // the owner of a sequence
    struct local_request *request;
    struct answer *text;
    bool unwanted; // cancelled while the prompt was encoded
};

//   submitted ──► encoding ──► scheduled ──► ended
//                     └── cancelled ──► dropped, when the encoder has passed it on
struct local_request { // from its submission to its last event, and until the encoder has done with it
    struct encoding encoding;
    struct local_client *client; // NULL: dropped
    bool encoded;                // beforehand
    bool scheduled;
    bool forgotten;                   // its conversation was, while it was encoded
    struct scheduler_request request; // all but ids, owners and samplings
    bool ignore_end;
    char **stops;
    int n_stops;
    struct local_answer *answers; // [request.n_answers]
    struct sampling *samplings;   // likewise
    int n_open;                   // of them
    struct local_request *next;
};

struct logits_job { // on the stack of whoever waits for it
    struct scheduler_logits text;
    struct status *st;
    struct queue done; // of bool
    struct logits_job *next;
};

struct command {
    enum command_kind kind;
    struct local_client *client;
    uint64_t id;    // of a request, or the key of a conversation
    int answer;     // of the request, or EVERY_ANSWER
    uint64_t owner; // its disk_owner
    int page;
    struct sampling sampling;
    struct local_request *request;
    struct logits_job *logits;
    struct hibernate_job *job;
};

struct local_engine {
    struct engine engine;
    const struct model_file *file;
    struct model_file *draft_file; // owned; NULL: none
    struct scheduler *scheduler;
    struct hibernate *store; // NULL: none
    struct encoder encoder;
    struct local_request *requests; // all that were submitted and have not ended
    struct logits_job *jobs;        // in the order they came; no request takes a step before they are done
    struct metrics metrics;
    struct queue commands;
    pthread_t thread;
    atomic_uint_fast64_t last_request, last_client;
    bool closing;
    bool preparing; // weights are still put off
    bool drew;      // a token in the last step
    double published;
    int page; // that somebody looks at; −1: none
    char backend[64];
    uint64_t kv_bytes;
};

// Below the clients a conversation is its client's number and its own, so that they do not mix.
static uint64_t conversation_key(const struct local_client *c, uint64_t conversation) {
    return c->number << 32 | conversation;
}

// What a client calls it; those of others keep their keys, which are no number that it may use.
static uint64_t conversation_number(const struct local_client *c, uint64_t key) {
    return key >> 32 == c->number ? key & CONVERSATION_MOST : key;
}

// ---- requests ----

static struct local_request *request_copy(const struct request_params *p) {
    struct local_request *r = xcalloc(1, sizeof *r);
    *r = (struct local_request){
        .encoding.source = prompt_source_copy(p), .ignore_end = p->ignore_end, .n_stops = p->n_stops};
    r->stops = xcalloc((size_t)p->n_stops + 1, sizeof *r->stops);
    for (int i = 0; i < p->n_stops; i++) r->stops[i] = xstrdup(p->stops[i]);
    return r;
}

// The same for all answers, but for their seeds.
static void spread_sampling(struct local_request *r, const struct sampling *s) {
    for (int i = 0; i < r->request.n_answers; i++) r->samplings[i] = sampler_for_answer(s, i);
}

static void request_add_answers(struct local_request *r, const struct request_params *p) {
    const size_t n = (size_t)r->request.n_answers;
    r->answers = xcalloc(n, sizeof *r->answers);
    r->samplings = xcalloc(n, sizeof *r->samplings);
    for (size_t i = 0; i < n; i++) r->answers[i].request = r;
    if (p->samplings) memcpy(r->samplings, p->samplings, n * sizeof *r->samplings);
    else spread_sampling(r, &p->sampling);
}

static void request_free(struct local_request *r) {
    encoding_free(&r->encoding);
    for (int i = 0; i < r->n_stops; i++) free(r->stops[i]);
    free(r->stops);
    free(r->answers);
    free(r->samplings);
    free(r);
}

// NULL: it has ended, or is another client's.
static struct local_request *request_find(const struct local_engine *e, const struct local_client *c, uint64_t id) {
    struct local_request *r = e->requests;
    while (r && (r->request.id != id || r->client != c)) r = r->next;
    return r;
}

static void client_free(struct local_client *c) {
    watch_close(c->watch);
    free(c->latest);
    engine_client_free(&c->client);
}

static void request_end(struct local_engine *e, struct local_request *r) {
    struct local_request **at = &e->requests;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    request_free(r);
}

// ---- what the scheduler reports ----

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
                                 .conversation = conversation_number(r->client, q->request->conversation),
                                 .answer = q->answer,
                                 .at = clock_ns(),
                                 .state = q->state,
                                 .reason = q->reason,
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

static bool on_token(void *context, const struct sequence *q, const struct sample *sample) {
    const struct local_answer *a = q->owner;
    ((struct local_engine *)context)->drew = true;
    return answer_token(a->text, sample);
}

static void on_drawn(void *context, const struct sequence *q, const struct sampler_input *in, int32_t token) {
    const struct local_client *c = ((const struct local_answer *)q->owner)->request->client;
    (void)context;
    if (c->watched == q->request->id && c->watched_answer == q->answer)
        watch_note(c->watch, conversation_number(c, q->request->conversation), in, token);
}

static void tell_notice(const struct local_request *r, const char *text) {
    struct engine_event event = {.kind = EVENT_NOTICE,
                                 .request = r->request.id,
                                 .conversation = conversation_number(r->client, r->request.conversation),
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

static void publish(struct local_engine *e) {
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

static void note_backend(struct local_engine *e) {
    snprintf(e->backend, sizeof e->backend, "%s", scheduler_backend(e->scheduler)->description);
}

static void on_moved(void *context, const char *message) {
    struct local_engine *e = context;
    char text[512];
    note_backend(e);
    e->preparing = true;
    snprintf(text, sizeof text, "%.300s: the answer goes on on the processor (%s)", message, e->backend);
    log_warning("engine", "%s: %s", e->file->info.name, text);
    for (const struct local_request *r = e->requests; r; r = r->next)
        if (r->client) tell_notice(r, text);
}

// ---- commands, on the engine's thread ----

static void tell_refusal(struct local_engine *e, const struct local_request *r, const struct status *refused) {
    char text[512];
    snprintf(text, sizeof text,
             "the model's own chat template refuses this conversation (%.300s); confab's for %s is used instead",
             refused->text, chat_template_name(e->file->chat_template));
    log_warning("engine", "%s: %s", e->file->info.name, text);
    tell_notice(r, text);
}

static void schedule(struct local_engine *e, struct local_request *r) {
    struct encoding *done = &r->encoding;
    const struct prompt_outcome outcome = done->outcome;
    const uint64_t forgotten = r->forgotten ? r->request.conversation : 0;
    if (outcome.refused.code != STATUS_OK) tell_refusal(e, r, &outcome.refused);
    r->scheduled = true;
    struct answer_params answer = {.tokenizer = e->file->tokenizer,
                                   .channels = &e->file->channels,
                                   .events = &r->client->client.events,
                                   .request = r->request.id,
                                   .conversation = conversation_number(r->client, r->request.conversation),
                                   .ignore_end = r->ignore_end,
                                   .stops = (const char *const *)r->stops,
                                   .n_stops = r->n_stops,
                                   .template_stop = outcome.template_stop,
                                   .chat = done->source.messages,
                                   .inside = outcome.opens_thinking};
    const int n = r->n_open = r->request.n_answers;
    void **owners = xcalloc((size_t)n, sizeof *owners);
    bool *unwanted = xcalloc((size_t)n, sizeof *unwanted);
    for (; answer.answer < n; answer.answer++) {
        struct local_answer *a = owners[answer.answer] = &r->answers[answer.answer];
        a->text = answer_open(&answer);
        unwanted[answer.answer] = a->unwanted;
    }
    struct sampling *samplings = r->samplings;
    r->samplings = NULL;
    struct scheduler_request request = r->request; // r is gone where every answer ends at once
    request.ids = done->tokens.ids;                // the scheduler's from now on
    request.n_ids = done->tokens.count < INT32_MAX ? (int)done->tokens.count : INT32_MAX;
    request.n_begun = (int)outcome.n_begun;
    request.owners = owners;
    request.samplings = samplings;
    done->tokens = (struct token_list){0};
    scheduler_submit(e->scheduler, &request);
    for (int i = 0; i < n; i++)
        if (unwanted[i]) scheduler_cancel_answer(e->scheduler, request.id, i);
    free(owners), free(unwanted), free(samplings);
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
                                 .conversation = conversation_number(r->client, r->request.conversation),
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
    else if (all) spread_sampling(r, &c->sampling);
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
    client_free(c);
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

// What a step is given up for: it computes what was cancelled, or holds up the conversation that the user looks at.
struct look {
    const struct local_engine *engine;
    uint64_t focus;
};

static bool computes_for(const struct local_engine *e, const struct local_client *c) {
    for (const struct local_request *r = e->requests; r; r = r->next)
        if (r->client == c && scheduler_computes(e->scheduler, r->request.id)) return true;
    return false;
}

static bool overtakes(const struct look *look, const struct local_request *r) {
    return !r->request.read_ahead && scheduler_overtakes(look->engine->scheduler, r->request.conversation, look->focus);
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
        return r && !r->request.read_ahead && scheduler_computes(s, c->id); // what follows has use for such a step
    case COMMAND_LEAVE: return computes_for(look->engine, c->client);
    case COMMAND_HIBERNATED:
        return c->job->kind <= HIBERNATE_LOAD && scheduler_overtakes(s, c->job->conversation, look->focus);
    case COMMAND_CLOSE: return true;
    default: return false;
    }
}

static bool on_step(void *context) {
    struct local_engine *e = context;
    struct look look = {e, scheduler_focused(e->scheduler)};
    return queue_any(&e->commands, urgent, &look);
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
    publish(e);
    for (;;) {
        const double settled = e->metrics.last_step + METRICS_WINDOW_SECONDS + 0.1;
        const bool sinks = settled > e->published;
        if (wait_until(e, fmin(sinks ? settled : HUGE_VAL, scheduler_hibernate_due(e->scheduler)), &c)) break;
        if (sinks && clock_seconds() >= settled) publish(e);
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
        if (now - e->published >= PUBLISH_SECONDS) publish(e);
    }
    e->metrics.repacks = e->preparing;
}

// Whoever reads an answer has time between its tokens; whoever still waits for the first one has not.
static void step(struct local_engine *e) {
    const double start = clock_seconds();
    struct command c;
    e->drew = false;
    if (!scheduler_step(e->scheduler) && !scheduler_idle(e->scheduler)) { // whoever is there waits for the disk
        if (queue_wait(&e->commands, &c, WAIT_MS)) obey(e, &c);
        return;
    }
    const double stepped = clock_seconds();
    scheduler_hibernate(e->scheduler);
    const double end = clock_seconds();
    e->metrics.saving += (float)(end - stepped);
    if (end - e->published >= PUBLISH_SECONDS) publish(e);
    if (e->drew) prepare(e, PREPARE_SHARE * (end - start));
}

static void logits_step(struct local_engine *e) {
    struct scheduler_logits *text = &e->jobs->text;
    bool ok = scheduler_logits_pass(e->scheduler, text, e->jobs->st);
    if (!ok || text->n_done == text->n) end_logits(e, ok);
    if (clock_seconds() - e->published >= PUBLISH_SECONDS) publish(e);
}

static bool idle(const struct local_engine *e) { return !e->jobs && scheduler_idle(e->scheduler); }

static void *engine_main(void *argument) {
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

// ---- opening and closing ----

static struct scheduler *open_placed(struct local_engine *e, const struct engine_params *p,
                                     const struct placement_plan *plan, const struct memory_size *size,
                                     struct status *st) {
    e->kv_bytes = (uint64_t)size->n_pages * size->page_bytes;
    struct scheduler_params params = {
        .placement = *plan,
        .model = &e->file->model,
        .n_threads = p->n_threads,
        .n_pages = size->n_pages,
        .context = size->context,
        .asked_context = size->asked_context,
        .prefill_chunk = p->prefill_chunk,
        .drafts = p->draft != DRAFT_OFF,
        .options = p->options,
        .hibernation = {.store = e->store,
                        .model_key = e->store ? hibernate_model_key(e->file, size->asked_context) : 0,
                        .delay = p->hibernation.delay,
                        .worth_seconds = p->hibernation.worth_seconds},
        .metrics = &e->metrics,
        .events = {
            .context = e, .state = on_state, .token = on_token, .drawn = on_drawn, .stop = on_step, .moved = on_moved}};
    if (plan->parts[plan->n - 1].ops != &cpu_backend) params.fallback = placement_on(&cpu_backend, 0);
    return scheduler_open(&params, st);
}

static void log_placement(const struct placement_plan *plan) {
    char name[16];
    for (int i = 0; i < plan->n && plan->n > 1; i++) {
        placement_part_name(&plan->parts[i], name);
        log_info("engine", "%s computes layers %d to %d", name, plan->parts[i].first_layer,
                 plan->parts[i].end_layer - 1);
    }
}

// On the CPU where the devices that nobody asked for fail. What does not fit is no such failure.
static struct scheduler *open_scheduler(struct local_engine *e, const struct engine_params *p,
                                        const struct backend_ops *ops, struct status *st) {
    const uint64_t available = machine_memory_free();
    struct placement_plan plan = placement_on(ops, 0);
    struct memory_size size;
    struct status why = {0};
    struct scheduler *s = NULL;
    const bool chosen = ops || placement_choose(&plan, e->file, p, available, &why);
    if (chosen && !memory_size_choose(&size, e->file, p, &plan, available, st)) return NULL;
    if (chosen && (s = open_placed(e, p, &plan, &size, &why))) {
        log_placement(&plan);
        return s;
    }
    const bool on_cpu = chosen && plan.parts[plan.n - 1].ops == &cpu_backend;
    if (ops || on_cpu || !registry_automatic(p->options.device) || why.code == STATUS_CANCELLED) {
        if (st) *st = why;
        return NULL;
    }
    log_warning("engine", "computing on the CPU: %s", why.text);
    struct engine_params cpu = *p;
    cpu.options.device = "cpu";
    return open_scheduler(e, &cpu, NULL, st);
}

static bool open_drafting_scheduler(struct local_engine *e, const struct engine_params *p,
                                    const struct backend_ops *ops, struct status *st) {
    struct drafter *drafter = NULL;
    if (p->draft == DRAFT_MODEL && !(drafter = drafter_file_open(p, e->file, &e->draft_file, st))) return false;
    e->scheduler = open_scheduler(e, p, ops, st);
    if (e->scheduler) scheduler_set_drafter(e->scheduler, drafter);
    else drafter_close(drafter);
    return e->scheduler;
}

static void on_encoded(void *context, struct encoding *done) {
    struct local_engine *e = context;
    queue_push(&e->commands, &(struct command){.kind = COMMAND_ENCODED, .request = (struct local_request *)done});
}

static void on_hibernated(void *context, struct hibernate_job *job) {
    struct local_engine *e = context;
    queue_push(&e->commands, &(struct command){.kind = COMMAND_HIBERNATED, .job = job});
}

static bool open_store(struct local_engine *e, const struct engine_hibernation *p, struct status *st) {
    if (!p->budget) return true;
    char *folder = p->folder ? xstrdup(p->folder) : local_engine_saved_folder();
    const struct hibernate_params params = {.folder = folder, .budget = p->budget, .done = on_hibernated, .context = e};
    if (folder) e->store = hibernate_open(&params, st);
    free(folder);
    return e->store || !folder;
}

// Everything but the thread.
static bool open_parts(struct local_engine *e, const struct engine_params *p, const struct backend_ops *ops,
                       struct status *st) {
    e->encoder = (struct encoder){.file = e->file, .done = on_encoded, .context = e};
    return queue_open(&e->commands, sizeof(struct command), st) && encoder_open(&e->encoder, st) &&
           open_store(e, &p->hibernation, st) && open_drafting_scheduler(e, p, ops, st);
}

static void close_parts(struct local_engine *e) {
    if (e->scheduler) scheduler_close(e->scheduler);
    if (e->draft_file) model_file_close(e->draft_file);
    encoder_close(&e->encoder);
    hibernate_close(e->store);
    for (struct command c; queue_pop(&e->commands, &c);) hibernate_job_free(c.job); // of an engine that failed to open
    queue_close(&e->commands);
    metrics_close(&e->metrics);
    free(e);
}

static const struct engine_ops local_engine;

struct engine *local_engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                                    struct status *st) {
    assert(!m->described);
    const double begun = clock_seconds();
    if (!m->info.has_weights) {
        if (st) *st = m->weight_status;
        return NULL;
    }
    struct local_engine *e = xcalloc(1, sizeof *e);
    e->engine.ops = &local_engine;
    e->page = -1;
    e->file = m;
    metrics_open(&e->metrics);
    if (open_parts(e, p, ops, st)) {
        e->preparing = p->options.quick_start;
        note_backend(e);
        publish(e);
        if (system_start_thread(&e->thread, engine_main, e, st)) {
            log_info("engine", "opened %s in %.2f s on %s, KV cache of %.1f MiB", m->info.name, clock_seconds() - begun,
                     e->backend, (double)e->kv_bytes / (1 << 20));
            return &e->engine;
        }
    }
    close_parts(e);
    return NULL;
}

struct engine *local_engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    return local_engine_open_on(m, p, NULL, st);
}

// ---- clients, on their threads ----

static void push(struct engine_client *c, struct command command) {
    command.client = (struct local_client *)c;
    queue_push(&((struct local_engine *)c->engine)->commands, &command);
}

static struct engine_client *local_client_open(struct engine *e, struct status *st) {
    struct local_client *c = engine_client_new(sizeof *c, e, st);
    if (!c) return NULL;
    c->number = atomic_fetch_add(&((struct local_engine *)e)->last_client, 1) + 1;
    c->latest = xcalloc(1, sizeof *c->latest);
    return &c->client;
}

static void local_leave(struct engine_client *c) { push(c, (struct command){.kind = COMMAND_LEAVE}); }

static uint64_t local_submit(struct engine_client *c, const struct request_params *p) {
    struct local_client *client = (struct local_client *)c;
    struct local_engine *e = (struct local_engine *)c->engine;
    struct local_request *r = request_copy(p);
    r->client = client;
    r->request = (struct scheduler_request){.id = atomic_fetch_add(&e->last_request, 1) + 1,
                                            .conversation = conversation_key(client, p->conversation),
                                            .n_answers = p->n_answers > 1 ? p->n_answers : 1,
                                            .disk_owner = p->disk_owner,
                                            .max_tokens = p->max_tokens,
                                            .room = p->room,
                                            .read_ahead = p->read_ahead,
                                            .time_limit = p->time_limit,
                                            .submitted = clock_seconds()};
    request_add_answers(r, p);
    const uint64_t id = r->request.id; // r may be gone once it is pushed
    // Ids need no encoding; they go straight on unless others are to be served before.
    if (p->ids && !p->begun_text && encoder_idle(&e->encoder)) {
        encoding_run(&r->encoding, e->file);
        r->encoded = true;
        push(c, (struct command){.kind = COMMAND_SUBMIT, .request = r});
        return id;
    }
    push(c, (struct command){.kind = COMMAND_SUBMIT, .request = r});
    encoder_push(&e->encoder, &r->encoding);
    return id;
}

static void local_cancel(struct engine_client *c, uint64_t request, int answer) {
    push(c, (struct command){.kind = COMMAND_CANCEL, .id = request, .answer = answer});
}

static void local_set_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s) {
    push(c, (struct command){.kind = COMMAND_SAMPLING, .id = request, .answer = answer, .sampling = *s});
}

static void local_focus(struct engine_client *c, uint64_t conversation) {
    uint64_t key = conversation_key((struct local_client *)c, conversation);
    push(c, (struct command){.kind = COMMAND_FOCUS, .id = key});
}

static void local_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner) {
    uint64_t key = conversation_key((struct local_client *)c, conversation);
    push(c, (struct command){.kind = COMMAND_FORGET, .id = key, .owner = disk_owner});
}

static const struct engine_metrics *local_metrics(struct engine_client *client) {
    struct local_client *c = (struct local_client *)client;
    struct engine_metrics *f = c->latest;
    if (!metrics_read(&((struct local_engine *)client->engine)->metrics, f)) return f;
    for (int i = 0; i < f->n_requests; i++)
        f->requests[i].conversation = conversation_number(c, f->requests[i].conversation);
    for (int i = 0; i < f->n_pages && i < METRICS_MAX_PAGES; i++)
        f->pages[i].conversation = conversation_number(c, f->pages[i].conversation);
    for (int i = 0; i < METRICS_MOMENTS; i++) {
        f->moments[i].conversation = conversation_number(c, f->moments[i].conversation);
        f->moments[i].reader = conversation_number(c, f->moments[i].reader);
    }
    const bool listed = f->page.page >= 0 && f->page.page < METRICS_MAX_PAGES;
    if (!listed || f->pages[f->page.page].conversation > CONVERSATION_MOST) *f->page.text = 0;
    return f;
}

static void local_look_at_page(struct engine_client *client, int page) {
    push(client, (struct command){.kind = COMMAND_LOOK_AT_PAGE, .page = page});
}

static void local_watch(struct engine_client *client, uint64_t request, int answer) {
    struct local_client *c = (struct local_client *)client;
    if (!c->watch) c->watch = watch_open(((struct local_engine *)client->engine)->file->model.spec.n_vocab);
    push(client, (struct command){.kind = COMMAND_WATCH, .id = request, .answer = answer});
}

static bool local_distribution(struct engine_client *client, const struct sampling *s, struct distribution *out) {
    const struct local_client *c = (struct local_client *)client;
    return c->watch && watch_explain(c->watch, ((struct local_engine *)client->engine)->file->tokenizer, s, out);
}

static bool local_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st) {
    struct logits_job job = {.text = {.ids = ids, .n = n, .out = out}, .st = st};
    bool ok;
    if (!queue_open(&job.done, sizeof ok, st)) return false;
    queue_push(&((struct local_engine *)e)->commands, &(struct command){.kind = COMMAND_LOGITS, .logits = &job});
    queue_wait(&job.done, &ok, -1);
    queue_close(&job.done);
    return ok;
}

// What came after the command to close, and what was encoded then.
static void discard(struct local_engine *e) {
    struct command c;
    while (queue_pop(&e->commands, &c)) {
        if (c.kind == COMMAND_SUBMIT) request_free(c.request);
        if (c.kind == COMMAND_LEAVE) client_free(c.client);
        if (c.kind == COMMAND_HIBERNATED) hibernate_job_free(c.job);
        if (c.kind == COMMAND_LOGITS) queue_push(&c.logits->done, &(bool){refuse_closing(c.logits->st)});
    }
    while (e->requests) request_end(e, e->requests);
}

static void local_close(struct engine *engine) {
    struct local_engine *e = (struct local_engine *)engine;
    log_info("engine", "closing %s", e->file->info.name);
    queue_push(&e->commands, &(struct command){.kind = COMMAND_CLOSE});
    pthread_join(e->thread, NULL);
    encoder_close(&e->encoder);
    hibernate_close(e->store);
    e->store = NULL;
    discard(e);
    close_parts(e);
}

static const struct engine_ops local_engine = {.name = "local",
                                               .close = local_close,
                                               .logits = local_logits,
                                               .client_open = local_client_open,
                                               .client_close = local_leave,
                                               .submit = local_submit,
                                               .cancel = local_cancel,
                                               .set_sampling = local_set_sampling,
                                               .focus = local_focus,
                                               .forget = local_forget,
                                               .metrics = local_metrics,
                                               .look_at_page = local_look_at_page,
                                               .watch = local_watch,
                                               .distribution = local_distribution};

char *local_engine_saved_folder(void) { return path_cache("kv"); }

void local_engine_remove_saved(const char *folder, uint64_t disk_owner) { hibernate_remove(folder, disk_owner); }
