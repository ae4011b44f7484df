#include "tests/golden/script_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"

struct model_file {
    struct model_info info;
    struct format_share share;
    uint64_t need;
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

// ---- models ----

enum { MODELS = 32 };

struct script_model {
    const char *name, *family, *format, *problem;
    uint64_t parameters, need;
};
static struct script_model models[MODELS];
static int n_models;
static uint64_t memory_free = 1ull << 40;

void script_engine_model(const char *name, const char *family, const char *format, uint64_t parameters, uint64_t need,
                         const char *problem) {
    if (n_models == MODELS) panic("too many models");
    models[n_models++] = (struct script_model){.name = xstrdup(name),
                                               .family = xstrdup(family),
                                               .format = xstrdup(format),
                                               .problem = problem ? xstrdup(problem) : NULL,
                                               .parameters = parameters,
                                               .need = need};
}

void script_engine_memory(uint64_t bytes) { memory_free = bytes; }
uint64_t machine_memory_free(void) { return memory_free; }

static struct script_model *model_called(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < n_models; i++) {
        size_t size = strlen(models[i].name);
        if (!strncmp(name, models[i].name, size) && (!name[size] || name[size] == '.')) return &models[i];
    }
    return NULL;
}

static struct model_file *file_of(const char *path, uint64_t bytes, const struct script_model *model) {
    struct model_file *m = xcalloc(1, sizeof *m);
    m->need = model->need;
    m->share = (struct format_share){model->format, 1, bytes};
    m->info = (struct model_info){.path = path,
                                  .name = model->name,
                                  .family = model->family,
                                  .file_bytes = bytes,
                                  .weight_bytes = 1ull << 40, // that no cache holds, whatever this machine has
                                  .n_parameters = model->parameters,
                                  .n_context = 8192,
                                  .has_weights = !model->problem,
                                  .weight_problem = model->problem ? model->problem : "",
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

struct model_file *model_file_open(const char *path, struct status *st) {
    const struct script_model *model = model_called(path);
    struct stat file;
    if (model && !stat(path, &file)) return file_of(model->name, (uint64_t)file.st_size, model);
    status_fail(st, STATUS_FORMAT, "%s: no model of this script", path);
    return NULL;
}

struct model_file *model_file_open_header(const char *path, bool text, struct status *st) {
    (void)text;
    return model_file_open(path, st);
}

struct model_file *model_file_open_memory(const char *name, const void *data, size_t size, const char *template,
                                          struct status *st) {
    static const struct script_model guide = {
        .name = "guide", .family = "llama", .format = "Q8_0", .parameters = 3220000, .need = 4 << 20};
    (void)name, (void)data, (void)size, (void)template, (void)st;
    return file_of("guide", 3 << 20, &guide);
}

void model_file_fill_slots(struct model_file *m, model_slot_text *text, void *context) {
    (void)m, (void)text, (void)context;
}
void model_file_close(struct model_file *m) { free(m); }

const struct model_info *model_file_info(const struct model_file *m) { return &m->info; }

bool model_file_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                       struct model_memory *out, struct status *st) {
    (void)p, (void)available;
    *out = (struct model_memory){.weights = m->need, .total = m->need, .kv_tokens = 8192, .context = 8192};
    return m->info.has_weights || status_fail(st, STATUS_UNSUPPORTED, "%s", m->info.weight_problem);
}

int model_file_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available) {
    (void)kv_type;
    return available > m->need ? 8192 : 0;
}

// ---- opening as a script says ----

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hold, waiting, aborted; // waiting: a thread does, in engine_open
    enum { ORDER_NONE, ORDER_REPORT, ORDER_OPEN, ORDER_FAIL } order;
    double done;
    const char *failure;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void gate_order(int order, double done, const char *failure) {
    pthread_mutex_lock(&gate.lock);
    while (!gate.waiting) pthread_cond_wait(&gate.changed, &gate.lock);
    gate.order = order, gate.done = done, gate.failure = failure;
    pthread_cond_broadcast(&gate.changed);
    while (gate.order != ORDER_NONE) pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

void script_engine_hold(void) {
    pthread_mutex_lock(&gate.lock);
    gate.hold = true;
    pthread_mutex_unlock(&gate.lock);
}

void script_engine_progress(double done) { gate_order(ORDER_REPORT, done, NULL); }
void script_engine_release(const char *failure) { gate_order(failure ? ORDER_FAIL : ORDER_OPEN, 1, failure); }

void script_engine_abort(void) {
    pthread_mutex_lock(&gate.lock);
    gate.aborted = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static bool gate_obey(const struct engine_params *p, struct status *st) {
    bool opens = true, ends = gate.order != ORDER_REPORT;
    if (gate.order == ORDER_FAIL) opens = status_fail(st, STATUS_MEMORY, "%s", gate.failure);
    if (gate.order == ORDER_REPORT && !p->options.progress(p->options.progress_context, gate.done))
        opens = status_fail(st, STATUS_CANCELLED, "loading was stopped");
    gate.waiting = opens && !ends;
    gate.order = ORDER_NONE;
    pthread_cond_broadcast(&gate.changed);
    return opens;
}

// False: it is not to be opened.
static bool gate_pass(const struct engine_params *p, struct status *st) {
    bool opens = true;
    pthread_mutex_lock(&gate.lock);
    gate.waiting = gate.hold && !gate.aborted;
    pthread_cond_broadcast(&gate.changed);
    while (gate.waiting) {
        while (gate.order == ORDER_NONE && !gate.aborted) pthread_cond_wait(&gate.changed, &gate.lock);
        if (gate.aborted) opens = gate.waiting = status_fail(st, STATUS_CANCELLED, "the script is over");
        else opens = gate_obey(p, st);
    }
    pthread_mutex_unlock(&gate.lock);
    return opens;
}

// ---- life ----

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st) {
    if (!gate_pass(p, st)) return NULL;
    struct engine *e = xcalloc(1, sizeof *e);
    e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    e->figures.context = m->info.n_context;
    snprintf(e->figures.backend, sizeof e->figures.backend, SCRIPT_BACKEND);
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
