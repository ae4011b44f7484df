#include "tests/golden/script_engine.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"
#include "engine/base/machine_use.h"
#include "engine/base/panic.h"
#include "engine/base/process_memory.h"
#include "engine/engine_ops.h"
#include "engine/model/opened_model.h"
#include "engine/serve/sampler.h"

enum { LOGITS = 256 };

struct script_request { // an answer of one
    struct engine_client *client;
    uint64_t id, conversation;
    int answer;
    struct sampling sampling;
    char *prompt;
    int32_t *begun; // how the answer begins
    int n_begun;
    char *begun_words;
    enum request_state state;
    int n_generated, n_drafted, n_accepted, prefill_done, prefill_total;
    float rate;
};

struct script_engine {
    struct engine engine;
    struct script_request *requests; // all that were ever submitted; an id is the place of its first answer, from 1 on
    int count, capacity;
    struct engine_event next; // the figures of the next token
    bool figured;             // they were said
    struct engine_metrics metrics;
    int found_tokens, found_cached; // of every path; 0: nothing is said
    struct script_logits { // of the last token, and of those before it one that is penalised
        uint64_t conversation; // 0: none
        int n;
        int32_t drawn, before;
        float logits[LOGITS];
        char texts[LOGITS][20];
    } last;
};

// ---- models ----

enum { MODELS = 32 };

struct script_model {
    const char *name, *family, *format, *problem;
    uint64_t parameters, need;
};
static const struct script_model guide = {
    .name = "guide", .family = "llama", .format = "Q8_0", .parameters = 3220000, .need = 4 << 20};
static struct script_model models[MODELS];
static int n_models;
static atomic_uint_fast64_t memory_free = 1ull << 40; // read by loading threads too

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
uint64_t process_memory_resident(void) { return memory_free / 16; }
// Of two processors one is busy, three quarters of that for confab; 30 watts.
struct machine_use machine_use_now(void) {
    const double s = clock_seconds();
    return (struct machine_use){.own = 0.75 * s, .busy = s, .all = 2 * s, .joules = 30 * s};
}

static struct script_model *model_called(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < n_models; i++) {
        size_t size = strlen(models[i].name);
        if (!strncmp(name, models[i].name, size) && (!name[size] || name[size] == '.')) return &models[i];
    }
    return NULL;
}

// Closed as any other, with model_file_close. What it needs stands where its weights would be counted.
static struct model_file *file_of(const char *path, uint64_t bytes, const struct script_model *model) {
    struct model_file *m = xcalloc(1, sizeof *m);
    struct format_share *share = arena_alloc(&m->arena, sizeof *share);
    *share = (struct format_share){model->format, 1, bytes};
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
                                  .formats = share,
                                  .n_formats = 1};
    return m;
}

static struct model_file *open_model(const char *path, struct status *st) {
    const struct script_model *model = path ? model_called(path) : &guide;
    struct stat file;
    if (!path) return file_of(model->name, 3 << 20, model);
    if (model && !stat(path, &file)) return file_of(model->name, (uint64_t)file.st_size, model);
    status_fail(st, STATUS_FORMAT, "%s: no model of this script", path);
    return NULL;
}

static struct model_file *open_header(const char *path, bool text, struct status *st) {
    (void)text;
    return open_model(path, st);
}

static bool memory_of(const struct model_file *m, const struct engine_params *p, uint64_t available,
                      struct model_memory *out, struct status *st) {
    const struct script_model *model = model_called(m->info.name);
    const uint64_t need = model ? model->need : guide.need;
    (void)p, (void)available;
    *out = (struct model_memory){
        .weights = need, .in_place = need / 4, .buffers = need / 2, .total = need, .kv_tokens = 8192, .context = 8192};
    return m->info.has_weights || status_fail(st, STATUS_UNSUPPORTED, "%s", m->info.weight_problem);
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

// ---- requests ----

static bool state_runs(enum request_state s) {
    return s == REQUEST_PENDING || s == REQUEST_PREFILLING || s == REQUEST_DECODING;
}

// The latest of a conversation; NULL when there was none.
static struct script_request *request_of(const struct engine *engine, uint64_t conversation) {
    const struct script_engine *e = (const struct script_engine *)engine;
    for (int i = e->count; i > 0; i--)
        if (SCRIPT_ANSWER(e->requests[i - 1].conversation, e->requests[i - 1].answer) == conversation)
            return &e->requests[i - 1];
    return NULL;
}

static struct script_request *request_running(const struct engine *e, uint64_t conversation) {
    struct script_request *r = request_of(e, conversation);
    return r && state_runs(r->state) ? r : NULL;
}

static char *prompt_text(const struct request_params *p) {
    char *text = xstrdup(p->raw ? p->raw : "");
    for (int i = 0; i < p->n_messages; i++) {
        const char *thinking = p->messages[i].thinking;
        char *longer = xasprintf("%s%s: %s%s%s%s\n", text, p->messages[i].role, thinking ? "(" : "",
                                 thinking ? thinking : "", thinking ? ") " : "", p->messages[i].text);
        free(text);
        text = longer;
    }
    return text;
}

// An event of a request, with what the script says of it.
static void tell(const struct script_request *r, struct engine_event event, const char *text, size_t size) {
    event.request = r->id, event.conversation = r->conversation, event.answer = r->answer;
    event.at = clock_ns();
    memcpy(event.text, text, size);
    event.size = size;
    queue_push(&r->client->events, &event);
}

static void request_change(struct script_request *r, enum request_state state, enum finish_reason reason,
                           const char *text) {
    r->state = state;
    tell(r,
         (struct engine_event){.kind = EVENT_STATE,
                               .token = -1,
                               .state = state,
                               .reason = reason,
                               .n_prompt = r->prefill_total,
                               .n_generated = r->n_generated,
                               .n_drafted = r->n_drafted,
                               .n_accepted = r->n_accepted},
         text ? text : "", text ? strlen(text) : 0);
}

// ---- an engine's functions ----

static struct script_engine *engine_of(const struct engine_client *c) { return (struct script_engine *)c->engine; }

static void script_close(struct engine *engine) {
    struct script_engine *e = (struct script_engine *)engine;
    for (int i = 0; i < e->count; i++) {
        free(e->requests[i].prompt);
        free(e->requests[i].begun);
        free(e->requests[i].begun_words);
    }
    free(e->requests);
    free(e);
}

static struct engine_client *script_client_open(struct engine *e, struct status *st) {
    return engine_client_new(sizeof(struct engine_client), e, st);
}

static void script_client_close(struct engine_client *c) {
    struct script_engine *e = engine_of(c);
    for (int i = 0; i < e->count; i++)
        if (e->requests[i].client == c) e->requests[i].state = REQUEST_CANCELLED;
    engine_client_free(c);
}

// Nothing comes of it, but for what the script says is found.
static uint64_t read_ahead(struct engine_client *c, const struct request_params *p) {
    const struct script_engine *e = engine_of(c);
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = UINT64_MAX,
                                 .state = REQUEST_FINISHED,
                                 .n_prompt = e->found_tokens,
                                 .n_reused = e->found_cached};
    if (p->read_ahead == READ_AHEAD_FIND && e->found_tokens) queue_push(&c->events, &event);
    return UINT64_MAX;
}

static char *begun_words(const struct request_params *p) {
    char *words = xstrdup("");
    for (int i = 0; i <= p->n_begun; i++) {
        const char *text = p->begun_text ? p->begun_text : "", *gap = i && (i < p->n_begun || *text) ? " " : "";
        char *longer =
            i < p->n_begun ? xasprintf("%s%s%d", words, gap, p->begun[i]) : xasprintf("%s%s%s", words, gap, text);
        free(words);
        words = longer;
    }
    return words;
}

static int32_t *copy_begun(const struct request_params *p) {
    int32_t *ids = xmalloc((size_t)p->n_begun * sizeof *ids);
    for (int i = 0; i < p->n_begun; i++) ids[i] = p->begun[i];
    return ids;
}

static uint64_t script_submit(struct engine_client *c, const struct request_params *p) {
    struct script_engine *e = engine_of(c);
    if (p->read_ahead) return read_ahead(c, p);
    const uint64_t id = (uint64_t)e->count + 1;
    for (int i = 0; i < p->n_answers || !i; i++) {
        if (e->count == e->capacity) {
            e->capacity = 2 * e->capacity + 8;
            e->requests = xrealloc(e->requests, (size_t)e->capacity * sizeof *e->requests);
        }
        e->requests[e->count++] = (struct script_request){.client = c,
                                                          .id = id,
                                                          .conversation = p->conversation,
                                                          .answer = i,
                                                          .sampling = p->samplings ? p->samplings[i] : p->sampling,
                                                          .begun = copy_begun(p),
                                                          .n_begun = p->n_begun,
                                                          .begun_words = begun_words(p),
                                                          .prompt = prompt_text(p)};
    }
    return id;
}

static void script_cancel(struct engine_client *c, uint64_t request, int answer) {
    struct script_engine *e = engine_of(c);
    for (int i = 0; i < e->count; i++) {
        struct script_request *r = &e->requests[i];
        bool meant = r->id == request && (answer == EVERY_ANSWER || answer == r->answer);
        if (meant && state_runs(r->state)) request_change(r, REQUEST_CANCELLED, FINISH_CANCELLED, NULL);
    }
}

static void script_set_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s) {
    struct script_engine *e = engine_of(c);
    for (int i = 0; i < e->count; i++)
        if (e->requests[i].id == request && (answer == EVERY_ANSWER || answer == e->requests[i].answer))
            e->requests[i].sampling = *s;
}

static void script_focus(struct engine_client *c, uint64_t conversation) { (void)c, (void)conversation; }

static void script_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner) {
    struct engine_metrics *f = &engine_of(c)->metrics;
    (void)disk_owner;
    for (int i = 0; i < f->n_pages; i++)
        if (f->pages[i].conversation == conversation) f->pages[i] = (struct page_metrics){0};
}

static const struct engine_metrics *script_metrics(struct engine_client *c) {
    struct script_engine *e = engine_of(c);
    struct engine_metrics *f = &e->metrics;
    f->sequence++;
    const bool counts = metric_known(f->running);
    f->n_requests = 0;
    if (counts) f->running = f->queue = 0;
    for (int i = 0; i < e->count && f->n_requests < METRICS_MAX_REQUESTS; i++) {
        const struct script_request *r = &e->requests[i];
        if (!state_runs(r->state)) continue;
        f->requests[f->n_requests++] = (struct request_metrics){.request = r->id,
                                                                .conversation = r->conversation,
                                                                .answer = r->answer,
                                                                .state = r->state,
                                                                .prefill_done = r->prefill_done,
                                                                .prefill_total = r->prefill_total,
                                                                .n_generated = r->n_generated,
                                                                .n_context = r->prefill_done + r->n_generated,
                                                                .tokens_per_second = r->rate};
        if (!counts) continue;
        if (r->state == REQUEST_PENDING) f->queue++;
        else f->running++;
    }
    return f;
}

static void script_look_at_page(struct engine_client *c, int page) {
    struct engine_metrics *f = &engine_of(c)->metrics;
    f->page = (struct page_text){.page = page};
    if (page < 0 || page >= f->n_pages || !f->pages[page].references) return;
    f->page.position = page % 8 * f->page_tokens;
    f->page.n_tokens = f->pages[page].filled;
    snprintf(f->page.text, sizeof f->page.text, "what stands in page %d\nand more of it", page);
}

static bool script_distribution(struct engine_client *c, const struct sampling *s, struct distribution *out) {
    struct script_logits *l = &engine_of(c)->last;
    if (!l->conversation) return false;
    struct sampler_scratch *x = sampler_scratch_open(l->n);
    sampler_explain(s, x, &(struct sampler_input){l->logits, l->n, &l->before, 1}, l->drawn, out);
    sampler_scratch_close(x);
    out->conversation = l->conversation;
    for (int i = -1; i < out->n; i++) {
        struct distribution_candidate *candidate = i < 0 ? &out->drawn : &out->candidates[i];
        memcpy(candidate->text, l->texts[candidate->id], sizeof candidate->text);
    }
    return true;
}

static void add_prompt_token(struct prompt_tokens *out, const char *text, size_t size, bool special) {
    struct prompt_token *t;
    out->tokens = xrealloc(out->tokens, ((size_t)out->n + 1) * sizeof *out->tokens);
    t = &out->tokens[out->n++];
    *t = (struct prompt_token){.special = special};
    snprintf(t->text, sizeof t->text, "%.*s", (int)size, text);
    for (const char *at = t->text; *at; at++) t->id = (31 * t->id + *at) % (special ? 100 : 32000);
}

// A token is a word with the blank before it, a blank alone, or what stands between "<|" and "|>".
static void add_prompt_words(struct prompt_tokens *out, const char *text, bool special) {
    for (size_t n; *text; text += n) {
        const char *end = special && !strncmp(text, "<|", 2) ? strstr(text, "|>") : NULL;
        n = end ? (size_t)(end + 2 - text) : 1 + strcspn(text + 1, special ? " \n<" : " \n");
        add_prompt_token(out, text, n, end);
    }
}

static bool script_prompt(struct engine_client *c, const struct request_params *p, struct prompt_tokens *out) {
    (void)c;
    if (p->raw) add_prompt_words(out, p->raw, true);
    for (int i = 0; i < p->n_messages; i++) {
        add_prompt_words(out, "<|start|>", true);
        add_prompt_words(out, p->messages[i].role, false);
        add_prompt_words(out, p->messages[i].text, false);
        add_prompt_words(out, "<|end|>", true);
    }
    if (p->n_messages) add_prompt_words(out, "<|start|>assistant", true);
    if (p->template_file) status_fail(&out->refused, STATUS_IO, "%s: No such file or directory", p->template_file);
    return true;
}

static const struct engine_ops script_engine = {.name = "scripted",
                                                .close = script_close,
                                                .client_open = script_client_open,
                                                .client_close = script_client_close,
                                                .submit = script_submit,
                                                .cancel = script_cancel,
                                                .set_sampling = script_set_sampling,
                                                .focus = script_focus,
                                                .forget = script_forget,
                                                .metrics = script_metrics,
                                                .look_at_page = script_look_at_page,
                                                .prompt = script_prompt,
                                                .distribution = script_distribution};

static struct engine *open_engine(struct model_file *m, const struct engine_params *p, struct status *st) {
    if (!gate_pass(p, st)) return NULL;
    struct script_engine *e = xcalloc(1, sizeof *e);
    e->engine.ops = &script_engine;
    e->metrics.context = m->info.n_context;
    e->metrics.page.page = -1;
    snprintf(e->metrics.backend, sizeof e->metrics.backend, SCRIPT_BACKEND);
    return &e->engine;
}

const struct model_opener script_models = {
    .open = open_model, .open_header = open_header, .memory = memory_of, .open_engine = open_engine};

// ---- what the script says and asks ----

struct engine_metrics *script_engine_metrics(struct engine *e) {
    return &((struct script_engine *)e)->metrics;
}

void script_engine_logits(struct engine *e, uint64_t conversation, int drawn, const char *const *texts,
                          const float *logits, int n) {
    struct script_logits *l = &((struct script_engine *)e)->last;
    *l = (struct script_logits){.conversation = conversation, .n = n < LOGITS ? n : LOGITS, .drawn = drawn};
    for (int i = 0; i < l->n; i++) {
        l->logits[i] = logits[i];
        snprintf(l->texts[i], sizeof l->texts[i], "%s", texts[i]);
    }
}

void script_engine_figures(struct engine *engine, float probability, float entropy, const char *const *texts,
                           const float *probabilities, int n, bool accepted) {
    struct script_engine *e = (struct script_engine *)engine;
    e->figured = true;
    e->next = (struct engine_event){
        .probability = probability, .entropy = entropy, .accepted = accepted, .n_alternatives = n};
    for (int i = 0; i < n && i < SAMPLING_TOP; i++) {
        e->next.alternatives[i] = (struct token_alternative){.id = 1000 + i, .probability = probabilities[i]};
        snprintf(e->next.alternatives[i].text, sizeof e->next.alternatives[i].text, "%s", texts[i]);
    }
}

// What the answer is to begin with is given.
static struct engine_event token_of(struct script_engine *e, struct script_request *r, const char *text, size_t size) {
    struct engine_event event = e->figured ? e->next : (struct engine_event){.probability = 0.5f};
    e->figured = false;
    event.kind = EVENT_TEXT;
    event.token = r->n_generated++;
    for (int i = 0; i < event.n_alternatives; i++) {
        struct token_alternative *a = &event.alternatives[i];
        if (strlen(a->text) == size && !memcmp(a->text, text, size)) a->id = event.token;
    }
    if (event.token >= r->n_begun) return event;
    event.token = r->begun[event.token];
    event.probability = event.entropy = NAN;
    return event;
}

bool script_engine_token(struct engine *e, uint64_t conversation, enum channel channel, const char *text, size_t size) {
    struct script_request *r = request_running(e, conversation);
    if (!r || size >= sizeof((struct engine_event *)0)->text) return false;
    struct engine_event event = token_of((struct script_engine *)e, r, text, size);
    event.channel = channel;
    tell(r, event, text, size);
    return true;
}

bool script_engine_notice(struct engine *e, uint64_t conversation, const char *text) {
    struct script_request *r = request_running(e, conversation);
    if (!r) return false;
    tell(r, (struct engine_event){.kind = EVENT_NOTICE, .token = -1}, text, strlen(text));
    return true;
}

bool script_engine_state(struct engine *e, uint64_t conversation, enum request_state state, enum finish_reason reason,
                         const char *text) {
    struct script_request *r = request_running(e, conversation);
    if (r) request_change(r, state, reason, text);
    return r;
}

void script_engine_found(struct engine *e, int tokens, int cached) {
    ((struct script_engine *)e)->found_tokens = tokens;
    ((struct script_engine *)e)->found_cached = cached;
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

bool script_engine_drafts(struct engine *e, uint64_t conversation, int drafted, int accepted) {
    struct script_request *r = request_running(e, conversation);
    if (r) r->n_drafted = drafted, r->n_accepted = accepted;
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

const char *script_engine_begun(const struct engine *e, uint64_t conversation) {
    const struct script_request *r = request_of(e, conversation);
    return r ? r->begun_words : NULL;
}
