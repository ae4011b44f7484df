#include "engine/serve/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

enum { PARALLEL_LOGITS = 32 * 1024 }; // so many are sampled by all workers

static int prefill_chunk(const struct scheduler_params *p) {
    return p->prefill_chunk > 0 ? p->prefill_chunk : SCHEDULER_PREFILL_CHUNK;
}

struct backend_params scheduler_backend_params(const struct scheduler_params *p) {
    return (struct backend_params){.model = p->model,
                                   .pool = p->pool,
                                   .n_pages = p->n_pages,
                                   .context = p->context,
                                   .asked_context = p->asked_context,
                                   .max_rows = SCHEDULER_MAX_RUNNING + prefill_chunk(p),
                                   .max_logits = SCHEDULER_MAX_RUNNING,
                                   .options = p->options};
}

struct scheduler *scheduler_open(const struct scheduler_params *p, struct status *st) {
    struct backend_params backend = scheduler_backend_params(p);
    struct scheduler *s = xcalloc(1, sizeof *s);
    *s = (struct scheduler){.ops = p->ops,
                            .pool = p->pool,
                            .events = p->events,
                            .figures = p->figures,
                            .context = p->context,
                            .n_vocab = p->model->spec.n_vocab,
                            .prefill_chunk = prefill_chunk(p),
                            .max_rows = backend.max_rows};
    if (!(s->backend = p->ops->open(&backend, st))) {
        free(s);
        return NULL;
    }
    kv_cache_open(&s->cache, p->n_pages);
    s->prefixes.cache = &s->cache;
    s->rows = xmalloc((size_t)s->max_rows * sizeof *s->rows);
    s->scratch = xcalloc((size_t)thread_pool_size(p->pool), sizeof *s->scratch);
    for (int i = 0; i < thread_pool_size(p->pool); i++) s->scratch[i] = sampler_scratch_open(s->n_vocab);
    return s;
}

static void request_free(struct request *r) {
    free(r->tokens);
    free(r);
}

void scheduler_close(struct scheduler *s) {
    for (int i = 0; i < s->n_requests; i++) {
        kv_cache_release(&s->cache, &s->requests[i]->kv);
        request_free(s->requests[i]);
    }
    prefix_drop_all(&s->prefixes);
    kv_cache_close(&s->cache);
    s->ops->close(s->backend);
    for (int i = 0; i < thread_pool_size(s->pool); i++) sampler_scratch_close(s->scratch[i]);
    free(s->scratch);
    free(s->requests);
    free(s->rows);
    free(s->copies);
    free(s);
}

// ---- the life of a request ----

void scheduler_enter(struct scheduler *s, struct request *r, enum request_state state, const char *message) {
    r->state = state;
    s->events.state(s->events.context, r, message);
}

static bool served_before(const struct scheduler *s, const struct request *a, const struct request *b) {
    bool a_first = a->conversation == s->focus, b_first = b->conversation == s->focus;
    return a_first != b_first ? a_first : a->id < b->id;
}

// Puts r where it belongs among requests[0 .. n), which are in order; requests[n] is free.
static void insert(struct scheduler *s, int n, struct request *r) {
    for (; n > 0 && served_before(s, r, s->requests[n - 1]); n--) s->requests[n] = s->requests[n - 1];
    s->requests[n] = r;
}

static void drop(struct scheduler *s, struct request *r) {
    int at = 0;
    while (s->requests[at] != r) at++;
    s->n_requests--;
    memmove(s->requests + at, s->requests + at + 1, (size_t)(s->n_requests - at) * sizeof *s->requests);
}

// Ends r. What it computed is kept for reuse unless it went wrong.
static void end(struct scheduler *s, struct request *r, enum finish_reason reason, const char *message) {
    static const enum request_state states[] = {
        [FINISH_NONE] = REQUEST_FINISHED,    [FINISH_END] = REQUEST_FINISHED,  [FINISH_LENGTH] = REQUEST_FINISHED,
        [FINISH_CONTEXT] = REQUEST_FINISHED, [FINISH_TIME] = REQUEST_FINISHED, [FINISH_CANCELLED] = REQUEST_CANCELLED,
        [FINISH_ERROR] = REQUEST_FAILED};
    s->n_running -= request_runs(r);
    if (reason == FINISH_ERROR) {
        prefix_drop_sharing(&s->prefixes, &r->kv);
        kv_cache_release(&s->cache, &r->kv);
    } else if (r->forgotten) kv_cache_release(&s->cache, &r->kv);
    drop(s, r);
    r->reason = reason;
    scheduler_enter(s, r, states[reason], message);
    if (r->kv.n_tokens) {
        prefix_keep(&s->prefixes, &r->kv, r->tokens);
        r->tokens = NULL;
    } else kv_cache_release(&s->cache, &r->kv);
    request_free(r);
}

// What makes a prompt impossible, as a message; true when there is nothing.
static bool check_prompt(const struct scheduler *s, const struct request *r, struct status *st) {
    if (r->n_prompt < 1) return status_fail(st, STATUS_USAGE, "the prompt is empty");
    if (r->n_prompt >= s->context)
        return status_fail(
            st, STATUS_LIMIT,
            "the prompt has %d tokens, a conversation may have %d (the KV cache holds %d pages of %d tokens)",
            r->n_prompt, s->context, s->cache.n_pages, KV_PAGE_TOKENS);
    for (int i = 0; i < r->n_prompt; i++)
        if (r->tokens[i] < 0 || r->tokens[i] >= s->n_vocab)
            return status_fail(st, STATUS_USAGE, "token %d of the prompt is %d, the vocabulary has %d", i, r->tokens[i],
                               s->n_vocab);
    return true;
}

static struct request *request_new(const struct scheduler *s, const struct scheduler_request *q) {
    struct request *r = xcalloc(1, sizeof *r);
    *r = (struct request){.id = q->id,
                          .conversation = q->conversation,
                          .tokens = q->ids,
                          .n_tokens = q->n_ids,
                          .n_prompt = q->n_ids,
                          .limit = s->context,
                          .sampler = sampler_start(&q->sampling),
                          .owner = q->owner,
                          .kv = {.owner = q->conversation},
                          .submitted = q->submitted > 0 ? q->submitted : clock_seconds()};
    if (q->max_tokens > 0 && q->max_tokens <= s->context - q->n_ids) {
        r->limit = q->n_ids + q->max_tokens;
        r->limited_by_user = true;
    }
    if (q->time_limit > 0) r->deadline = r->submitted + q->time_limit;
    return r;
}

void scheduler_submit(struct scheduler *s, const struct scheduler_request *q) {
    struct request *r = request_new(s, q);
    if (!s->n_requests) s->last_step = 0;
    if (s->n_requests == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->requests = xrealloc(s->requests, (size_t)s->capacity * sizeof(struct request *));
    }
    insert(s, s->n_requests++, r);
    scheduler_enter(s, r, REQUEST_PENDING, "");
    struct status st;
    if (!check_prompt(s, r, &st)) end(s, r, FINISH_ERROR, st.text);
    else r->tokens = xrealloc(r->tokens, (size_t)r->limit * sizeof *r->tokens);
}

static struct request *find(const struct scheduler *s, uint64_t id) {
    for (int i = 0; i < s->n_requests; i++)
        if (s->requests[i]->id == id) return s->requests[i];
    return NULL;
}

void scheduler_cancel(struct scheduler *s, uint64_t id) {
    struct request *r = find(s, id);
    if (r) end(s, r, FINISH_CANCELLED, "");
}

void scheduler_cancel_all(struct scheduler *s) {
    while (s->n_requests) end(s, s->requests[s->n_requests - 1], FINISH_CANCELLED, "");
}

void scheduler_set_sampling(struct scheduler *s, uint64_t id, const struct sampling *sampling) {
    struct request *r = find(s, id);
    if (r) sampler_change(&r->sampler, sampling);
}

void scheduler_focus(struct scheduler *s, uint64_t conversation) {
    s->focus = conversation;
    for (int i = 1; i < s->n_requests; i++) insert(s, i, s->requests[i]);
}

bool scheduler_computes(const struct scheduler *s, uint64_t id) {
    const struct request *r = find(s, id);
    return r && r->rows;
}

bool scheduler_overtakes(const struct scheduler *s, uint64_t conversation, uint64_t focus) {
    if (conversation != focus) return false;
    for (int i = 0; i < s->n_requests; i++)
        if (s->requests[i]->rows && s->requests[i]->conversation != focus) return true;
    return false;
}

uint64_t scheduler_focused(const struct scheduler *s) { return s->focus; }

void scheduler_forget(struct scheduler *s, uint64_t conversation) {
    prefix_drop_owner(&s->prefixes, conversation);
    for (int i = 0; i < s->n_requests; i++)
        if (s->requests[i]->conversation == conversation) s->requests[i]->forgotten = true;
}

const char *scheduler_backend(const struct scheduler *s) { return s->ops->describe(s->backend); }

bool scheduler_prepare(struct scheduler *s) { return s->ops->prepare(s->backend); }

bool scheduler_idle(const struct scheduler *s) { return !s->n_requests; }

// ---- a step ----

static void expire(struct scheduler *s, double now) {
    for (int i = s->n_requests - 1; i >= 0; i--)
        if (s->requests[i]->deadline > 0 && now >= s->requests[i]->deadline) end(s, s->requests[i], FINISH_TIME, "");
}

static void sample_rows(struct worker *w, void *argument) {
    struct scheduler *s = ((void **)argument)[0];
    float *logits = ((void **)argument)[1];
    for (int i = w->index; i < s->n_draws; i += w->count) {
        struct request *r = s->draws[i].request;
        struct sampler_input in = {.logits = logits + (size_t)i * (size_t)s->n_vocab,
                                   .n_vocab = s->n_vocab,
                                   .tokens = r->tokens,
                                   .n_tokens = r->n_tokens};
        s->draws[i].sample = sampler_next(&r->sampler, s->scratch[w->index], &in);
    }
}

// Waking the workers costs more than a few small rows.
static void sample_all(struct scheduler *s, float *logits) {
    void *argument[] = {s, logits};
    struct worker alone = {.index = 0, .count = 1, .pool = s->pool};
    if (s->n_draws > 1 && (int64_t)s->n_draws * s->n_vocab >= PARALLEL_LOGITS)
        thread_pool_run(s->pool, sample_rows, argument);
    else sample_rows(&alone, argument);
}

static void note_latency(struct scheduler *s, struct request *r, double now) {
    double waited = now - (r->last_token > 0 ? r->last_token : r->submitted);
    if (r->last_token > 0) {
        figures_add_latency(&s->figures->next_token, waited);
        if (r->state == REQUEST_DECODING) // otherwise it was pre-empted
            r->interval = r->interval > 0 ? 0.9 * r->interval + 0.1 * waited : waited;
    } else figures_add_latency(&s->figures->first_token, waited);
    r->last_token = now;
}

// Hands the drawn token on; true when it became a part of the answer.
static bool deliver(struct scheduler *s, const struct scheduler_draw *d, double now) {
    struct request *r = d->request;
    if (!d->sample.ok) {
        end(s, r, FINISH_ERROR, "the model's output holds NaN or infinity; its pages in the KV cache were dropped");
        return false;
    }
    note_latency(s, r, now);
    if (r->state != REQUEST_DECODING) scheduler_enter(s, r, REQUEST_DECODING, "");
    if (s->events.token(s->events.context, r, &d->sample)) {
        end(s, r, FINISH_END, "");
        return false;
    }
    r->tokens[r->n_tokens++] = d->sample.token;
    if (r->n_tokens == r->limit) end(s, r, r->limited_by_user ? FINISH_LENGTH : FINISH_CONTEXT, "");
    return true;
}

static void fail_batch(struct scheduler *s, const char *message) {
    for (int i = s->n_requests - 1; i >= 0; i--)
        if (s->requests[i]->rows) end(s, s->requests[i], FINISH_ERROR, message);
}

// The rows of a step that was given up are to be computed again.
static void take_back(struct scheduler *s) {
    for (int i = 0; i < s->n_requests; i++) {
        struct request *r = s->requests[i];
        kv_cache_truncate(&s->cache, &r->kv, request_computed(r));
        r->rows = 0;
    }
}

static void learn_speed(struct scheduler *s, int prompt_rows, double seconds) {
    if (prompt_rows < 16) return; // says nothing about larger ones
    double per_row = seconds / s->batch.n_rows;
    s->seconds_per_row = s->seconds_per_row > 0 ? 0.7 * s->seconds_per_row + 0.3 * per_row : per_row;
}

// Runs a batch, before it the copies that are to be made. Where that fails nobody knows which of them were: so nothing is
// kept that they may be a part of.
static bool run_batch(struct scheduler *s, struct batch *batch, struct backend_result *out, struct status *st) {
    batch->copies = s->copies;
    batch->n_copies = s->n_copies;
    s->n_copies = 0;
    if (s->ops->run(s->backend, batch, out, st)) return true;
    if (batch->n_copies && st->code != STATUS_CANCELLED) prefix_drop_all(&s->prefixes);
    return false;
}

bool scheduler_step(struct scheduler *s) {
    double start = clock_seconds();
    expire(s, start);
    plan_step(s);
    if (!s->batch.n_rows) return false;

    struct figures_step step = {.start = start,
                                .pause = s->last_step > 0 ? start - s->last_step : 0,
                                .prefilled = s->batch.n_rows - s->decode_rows,
                                .decode_rows = s->decode_rows};
    struct backend_result result;
    struct status st = {0};
    s->last_step = 0;
    if (!run_batch(s, &s->batch, &result, &st)) {
        if (st.code == STATUS_CANCELLED) take_back(s);
        else fail_batch(s, st.text);
        return true;
    }
    for (int i = 0; i < s->n_requests; i++) s->requests[i]->rows = 0;
    double ran = clock_seconds();
    sample_all(s, result.logits);
    step.end = clock_seconds();
    step.work = result.work;
    step.work.stages[STAGE_SAMPLE].seconds = step.end - ran;
    for (int i = 0; i < s->n_draws; i++) step.decoded += deliver(s, &s->draws[i], step.end);
    learn_speed(s, step.prefilled, ran - start);
    step.end = s->last_step = clock_seconds();
    figures_add_step(s->figures, &step);
    return true;
}

// ---- logits of a whole text ----

bool scheduler_logits_start(const struct scheduler *s, struct scheduler_logits *l, struct status *st) {
    const int n = l->n;
    l->n_done = 0;
    l->kv = (struct kv_sequence){0};
    if (!scheduler_idle(s)) return status_fail(st, STATUS_USAGE, "%d requests are running", s->n_requests);
    if (n < 1 || n > s->context) return status_fail(st, STATUS_LIMIT, "%d tokens; 1 to %d are possible", n, s->context);
    for (int i = 0; i < n; i++)
        if (l->ids[i] < 0 || l->ids[i] >= s->n_vocab)
            return status_fail(st, STATUS_USAGE, "token %d is %d, the vocabulary has %d", i, l->ids[i], s->n_vocab);
    return true;
}

static bool run_logits(struct scheduler *s, const struct scheduler_logits *l, int count, struct backend_result *out,
                       struct status *st) {
    for (int i = 0; i < count; i++)
        s->rows[i] = (struct batch_row){.token = l->ids[l->n_done + i], .output = ROW_LOGITS};
    const struct batch_segment segment = {.n_rows = count, .position = l->n_done, .pages = l->kv.pages};
    struct batch batch = {.n_rows = count,
                          .n_segments = 1,
                          .rows = s->rows,
                          .segments = &segment,
                          .stop = s->events.stop,
                          .stop_context = s->events.context};
    return run_batch(s, &batch, out, st);
}

bool scheduler_logits_pass(struct scheduler *s, struct scheduler_logits *l, struct status *st) {
    const int left = l->n - l->n_done, count = left < SCHEDULER_MAX_RUNNING ? left : SCHEDULER_MAX_RUNNING;
    const size_t row = (size_t)s->n_vocab * sizeof *l->out;
    struct status failed = {0};
    if (!plan_extend(s, &l->kv, count)) return status_fail(st, STATUS_LIMIT, "no pages left");
    struct backend_result result;
    if (!run_logits(s, l, count, &result, &failed)) {
        kv_cache_truncate(&s->cache, &l->kv, l->n_done);
        if (failed.code != STATUS_CANCELLED && st) *st = failed;
        return failed.code == STATUS_CANCELLED;
    }
    memcpy(l->out + (size_t)l->n_done * (size_t)s->n_vocab, result.logits, (size_t)count * row);
    l->n_done += count;
    return true;
}

void scheduler_logits_end(struct scheduler *s, struct scheduler_logits *l) {
    kv_cache_release(&s->cache, &l->kv);
}

// ---- figures ----

static struct request_figures request_summary(const struct request *r) {
    bool decodes = r->state == REQUEST_DECODING;
    return (struct request_figures){.request = r->id,
                                    .conversation = r->conversation,
                                    .state = r->state,
                                    .prefill_done = decodes ? r->n_prompt : request_computed(r),
                                    .prefill_total = decodes ? r->n_prompt : r->n_tokens,
                                    .n_generated = request_generated(r),
                                    .n_context = r->n_tokens,
                                    .tokens_per_second = decodes && r->interval > 0 ? (float)(1 / r->interval) : 0};
}

void scheduler_figures(const struct scheduler *s, struct engine_figures *out) {
    out->running = s->n_running;
    out->queue = s->n_requests - s->n_running;
    out->batch_rows = scheduler_idle(s) ? 0 : s->batch.n_rows;
    out->batch_decode_rows = scheduler_idle(s) ? 0 : s->decode_rows;
    out->context = s->context;
    out->page_tokens = KV_PAGE_TOKENS;
    out->n_pages = s->cache.n_pages;
    out->pages_free = s->cache.n_free;
    out->pages_kept = s->cache.n_kept;
    out->pages_used = s->cache.n_pages - s->cache.n_free - s->cache.n_kept;
    out->pages_shared = s->cache.n_shared;
    out->n_requests = s->n_requests < FIGURES_MAX_REQUESTS ? s->n_requests : FIGURES_MAX_REQUESTS;
    for (int i = 0; i < out->n_requests; i++) out->requests[i] = request_summary(s->requests[i]);
    for (int i = 0; i < s->cache.n_pages && i < FIGURES_MAX_PAGES; i++) {
        const struct kv_page *p = &s->cache.pages[i];
        out->pages[i] = (struct page_figures){.conversation = p->owner,
                                              .references = p->references,
                                              .filled = p->filled,
                                              .kept = p->references && !p->running};
    }
}

bool scheduler_check(const struct scheduler *s, struct status *st) {
    int n = s->n_requests + s->prefixes.count, running = 0;
    const struct kv_sequence **sequences = xcalloc((size_t)n + 1, sizeof(struct kv_sequence *));
    for (int i = 0; i < s->n_requests; i++) sequences[i] = &s->requests[i]->kv, running += request_runs(s->requests[i]);
    for (int i = 0; i < s->prefixes.count; i++) sequences[s->n_requests + i] = &s->prefixes.entries[i].kv;
    bool ok = kv_cache_check(&s->cache, sequences, n, st);
    if (ok && running != s->n_running)
        ok = status_fail(st, STATUS_LIMIT, "%d requests run, %d are counted", running, s->n_running);
    free(sequences);
    return ok;
}
