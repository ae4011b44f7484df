#include "tests/golden/script_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

struct model_file {
    struct model_info info;
    struct format_share share;
};

struct script_request {
    uint64_t id, conversation;
    struct sampling sampling;
    char *prompt;
    enum request_state state;
    int n_generated, prefill_done, prefill_total;
    float rate;
};

struct engine {
    struct script_request *requests; // all that were ever submitted
    int count, capacity;
    struct engine_event *events; // [first, last) wait
    int first, last, room;
    int fd; // counts the events that wait
    struct engine_figures figures;
};

// ---- the model ----

struct model_file *model_file_open(const char *path, struct status *st) {
    (void)st;
    struct model_file *m = xcalloc(1, sizeof *m);
    m->share = (struct format_share){"Q8_0", 1, 1 << 20};
    m->info = (struct model_info){.path = path,
                                  .name = path,
                                  .family = "script",
                                  .n_context = 8192,
                                  .has_weights = true,
                                  .weight_problem = "",
                                  .tokenizer = "script",
                                  .pre_tokenizer = "script",
                                  .chat_template = "chatml",
                                  .thinking = "<think>",
                                  .chooses_effort = !strncmp(path, "gpt-oss", 7),
                                  .chooses_thinking = !strncmp(path, "Qwen3", 5),
                                  .sampling = sampling_default(),
                                  .formats = &m->share,
                                  .n_formats = 1};
    return m;
}

struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, struct status *st) {
    (void)data, (void)size;
    return model_file_open(name, st);
}

void model_file_close(struct model_file *m) { free(m); }

const struct model_info *model_file_info(const struct model_file *m) { return &m->info; }

// ---- life ----

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    (void)p, (void)st;
    struct engine *e = xcalloc(1, sizeof *e);
    e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    e->figures.context = m->info.n_context;
    snprintf(e->figures.backend, sizeof e->figures.backend, "script, 2 threads");
    return e;
}

void engine_close(struct engine *e) {
    if (!e) return;
    for (int i = 0; i < e->count; i++) free(e->requests[i].prompt);
    free(e->requests);
    free(e->events);
    close(e->fd);
    free(e);
}

// ---- events ----

static struct engine_event *event_push(struct engine *e) {
    if (e->last == e->room) {
        e->room = 2 * e->room + 64;
        e->events = xrealloc(e->events, (size_t)e->room * sizeof *e->events);
    }
    uint64_t one = 1;
    if (write(e->fd, &one, sizeof one) != sizeof one) panic("eventfd");
    struct engine_event *event = &e->events[e->last++];
    *event = (struct engine_event){.token = -1, .at = clock_ns()};
    return event;
}

bool engine_poll(struct engine *e, struct engine_event *out) {
    uint64_t one;
    if (e->first == e->last || read(e->fd, &one, sizeof one) != sizeof one) return false;
    *out = e->events[e->first++];
    if (e->first == e->last) e->first = e->last = 0;
    return true;
}

bool engine_wait(struct engine *e, struct engine_event *out, int timeout_ms) {
    (void)timeout_ms; // nothing comes by itself
    return engine_poll(e, out);
}

int engine_event_fd(const struct engine *e) { return e->fd; }

// ---- requests ----

static bool state_runs(enum request_state s) {
    return s == REQUEST_PENDING || s == REQUEST_PREFILLING || s == REQUEST_DECODING;
}

// The latest of a conversation; NULL when there was none.
static struct script_request *request_of(const struct engine *e, uint64_t conversation) {
    for (int i = e->count; i > 0; i--)
        if (e->requests[i - 1].conversation == conversation) return &e->requests[i - 1];
    return NULL;
}

static struct script_request *request_running(const struct engine *e, uint64_t conversation) {
    struct script_request *r = request_of(e, conversation);
    return r && state_runs(r->state) ? r : NULL;
}

static struct script_request *request_by_id(const struct engine *e, uint64_t id) {
    return id >= 1 && id <= (uint64_t)e->count ? &e->requests[id - 1] : NULL;
}

static char *prompt_text(const struct request_params *p) {
    char *text = xstrdup("");
    for (int i = 0; i < p->n_messages; i++) {
        const char *thinking = p->messages[i].thinking;
        char *longer = xasprintf("%s%s: %s%s%s%s\n", text, p->messages[i].role, thinking ? "(" : "",
                                 thinking ? thinking : "", thinking ? ") " : "", p->messages[i].text);
        free(text);
        text = longer;
    }
    return text;
}

uint64_t engine_submit(struct engine *e, const struct request_params *p) {
    if (e->count == e->capacity) {
        e->capacity = 2 * e->capacity + 8;
        e->requests = xrealloc(e->requests, (size_t)e->capacity * sizeof *e->requests);
    }
    struct script_request *r = &e->requests[e->count++];
    *r = (struct script_request){
        .id = (uint64_t)e->count, .conversation = p->conversation, .sampling = p->sampling, .prompt = prompt_text(p)};
    return r->id;
}

static void request_change(struct engine *e, struct script_request *r, enum request_state state,
                           enum finish_reason reason, const char *text) {
    r->state = state;
    struct engine_event *event = event_push(e);
    event->kind = EVENT_STATE;
    event->request = r->id, event->conversation = r->conversation;
    event->state = state, event->reason = reason;
    event->n_prompt = r->prefill_total, event->n_generated = r->n_generated;
    if (text) snprintf(event->text, sizeof event->text, "%s", text);
    event->size = strlen(event->text);
}

void engine_cancel(struct engine *e, uint64_t request) {
    struct script_request *r = request_by_id(e, request);
    if (r && state_runs(r->state)) request_change(e, r, REQUEST_CANCELLED, FINISH_CANCELLED, NULL);
}

void engine_set_sampling(struct engine *e, uint64_t request, const struct sampling *s) {
    struct script_request *r = request_by_id(e, request);
    if (r) r->sampling = *s;
}

void engine_focus(struct engine *e, uint64_t conversation) { (void)e, (void)conversation; }

void engine_forget(struct engine *e, uint64_t conversation) {
    for (int i = 0; i < e->figures.n_pages; i++)
        if (e->figures.pages[i].conversation == conversation) e->figures.pages[i] = (struct page_figures){0};
}

// ---- figures ----

const struct engine_figures *engine_figures(struct engine *e) {
    struct engine_figures *f = &e->figures;
    f->sequence++;
    f->n_requests = f->running = f->queue = 0;
    for (int i = 0; i < e->count && f->n_requests < FIGURES_MAX_REQUESTS; i++) {
        const struct script_request *r = &e->requests[i];
        if (!state_runs(r->state)) continue;
        f->requests[f->n_requests++] = (struct request_figures){.request = r->id,
                                                                .conversation = r->conversation,
                                                                .state = r->state,
                                                                .prefill_done = r->prefill_done,
                                                                .prefill_total = r->prefill_total,
                                                                .n_generated = r->n_generated,
                                                                .n_context = r->prefill_done + r->n_generated,
                                                                .tokens_per_second = r->rate};
        if (r->state == REQUEST_PENDING) f->queue++;
        else f->running++;
    }
    return f;
}

struct engine_figures *script_engine_figures(struct engine *e) {
    return &e->figures;
}

// ---- what the script says and asks ----

bool script_engine_token(struct engine *e, uint64_t conversation, enum channel channel, const char *text, size_t size) {
    struct script_request *r = request_running(e, conversation);
    if (!r || size >= sizeof((struct engine_event *)0)->text) return false;
    struct engine_event *event = event_push(e);
    event->kind = EVENT_TEXT;
    event->request = r->id, event->conversation = conversation;
    event->token = r->n_generated++;
    event->channel = channel;
    event->probability = 0.5f;
    memcpy(event->text, text, size);
    event->size = size;
    return true;
}

bool script_engine_notice(struct engine *e, uint64_t conversation, const char *text) {
    struct script_request *r = request_running(e, conversation);
    if (!r) return false;
    struct engine_event *event = event_push(e);
    event->kind = EVENT_NOTICE;
    event->request = r->id, event->conversation = conversation;
    event->size = (size_t)snprintf(event->text, sizeof event->text, "%s", text);
    return true;
}

bool script_engine_state(struct engine *e, uint64_t conversation, enum request_state state, enum finish_reason reason,
                         const char *text) {
    struct script_request *r = request_running(e, conversation);
    if (r) request_change(e, r, state, reason, text);
    return r;
}

bool script_engine_prefill(struct engine *e, uint64_t conversation, int done, int total) {
    struct script_request *r = request_running(e, conversation);
    if (r) r->prefill_done = done, r->prefill_total = total;
    return r;
}

bool script_engine_rate(struct engine *e, uint64_t conversation, float tokens_per_second) {
    struct script_request *r = request_running(e, conversation);
    if (r) r->rate = tokens_per_second;
    return r;
}

const struct sampling *script_engine_sampling(const struct engine *e, uint64_t conversation) {
    const struct script_request *r = request_of(e, conversation);
    return r ? &r->sampling : NULL;
}

const char *script_engine_prompt(const struct engine *e, uint64_t conversation) {
    const struct script_request *r = request_of(e, conversation);
    return r ? r->prompt : NULL;
}
