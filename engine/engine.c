// The interface of engines: calls go to the kind's table of functions, events wait in the client's queue.
#include "engine/engine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/panic.h"
#include "engine/device.h"
#include "engine/engine_ops.h"

const char *request_state_name(enum request_state s) {
    static const char *const names[] = {
#define X(id, name) [id] = name,
        REQUEST_STATES(X)
#undef X
    };
    return names[s];
}

// ---- for whoever implements a kind ----

void *engine_client_new(size_t size, struct engine *e, struct status *st) {
    struct engine_client *c = xcalloc(1, size);
    c->engine = e;
    if (queue_open(&c->events, sizeof(struct engine_event), st)) return c;
    free(c);
    return NULL;
}

void engine_client_free(struct engine_client *c) {
    queue_close(&c->events);
    free(c);
}

void metrics_set_unknown(struct engine_metrics *f) {
    const struct stage_work work = {NAN, NAN, NAN};
    const struct latency_metrics latency = {NAN, NAN, NAN, METRIC_UNKNOWN};
    *f = (struct engine_metrics){.sequence = f->sequence,
                                 .n_threads = METRIC_UNKNOWN,
                                 .decode_now = NAN,
                                 .prefill_now = NAN,
                                 .decode_peak = NAN,
                                 .decode_tokens = METRIC_UNKNOWN,
                                 .prefill_tokens = METRIC_UNKNOWN,
                                 .reused_tokens = METRIC_UNKNOWN,
                                 .drafted_tokens = METRIC_UNKNOWN,
                                 .accepted_tokens = METRIC_UNKNOWN,
                                 .acceptance = NAN,
                                 .step_tokens = NAN,
                                 .first_token = latency,
                                 .next_token = latency,
                                 .queue = METRIC_UNKNOWN,
                                 .running = METRIC_UNKNOWN,
                                 .batch_rows = METRIC_UNKNOWN,
                                 .batch_decode_rows = METRIC_UNKNOWN,
                                 .steps = METRIC_UNKNOWN,
                                 .preemptions = METRIC_UNKNOWN,
                                 .evictions = METRIC_UNKNOWN,
                                 .decode = work,
                                 .prefill = work,
                                 .page_tokens = METRIC_UNKNOWN,
                                 .n_pages = METRIC_UNKNOWN,
                                 .pages_used = METRIC_UNKNOWN,
                                 .pages_shared = METRIC_UNKNOWN,
                                 .pages_free = METRIC_UNKNOWN,
                                 .pages_kept = METRIC_UNKNOWN,
                                 .kv_bytes = METRIC_UNKNOWN,
                                 .disk_bytes = METRIC_UNKNOWN,
                                 .disk_budget = METRIC_UNKNOWN,
                                 .woken_tokens = METRIC_UNKNOWN,
                                 .context = METRIC_UNKNOWN};
    f->page.page = -1;
    for (int i = 0; i < STAGE_COUNT; i++) f->stage_seconds[i] = NAN, f->stages[i] = work;
}

const struct part_metrics *metrics_main_part(const struct engine_metrics *f) {
    const struct part_metrics *most = NULL;
    for (const struct part_metrics *p = f->parts; p < f->parts + f->n_parts; p++)
        if (!most || p->end_layer - p->first_layer > most->end_layer - most->first_layer) most = p;
    return most;
}

bool metrics_on_devices(const struct part_metrics *parts, int n) {
    for (int i = 0; i < n; i++)
        if (!device_is_processor(parts[i].device)) return true;
    return false;
}

// ---- for whoever uses one ----

void engine_close(struct engine *e) {
    if (e) e->ops->close(e);
}

bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st) {
    if (e->ops->logits) return e->ops->logits(e, ids, n, out, st);
    return status_fail(st, STATUS_UNSUPPORTED, "a %s engine gives no logits", e->ops->name);
}

struct engine_client *engine_client_open(struct engine *e, struct status *st) {
    return e->ops->client_open(e, st);
}

void engine_client_close(struct engine_client *c) {
    if (c) c->engine->ops->client_close(c);
}

uint64_t engine_submit(struct engine_client *c, const struct request_params *p) {
    assert(p->conversation > 0 && p->conversation <= CONVERSATION_MOST);
    return c->engine->ops->submit(c, p);
}

void engine_cancel(struct engine_client *c, uint64_t request) { c->engine->ops->cancel(c, request, EVERY_ANSWER); }

void engine_cancel_answer(struct engine_client *c, uint64_t request, int answer) {
    c->engine->ops->cancel(c, request, answer);
}

void engine_set_sampling(struct engine_client *c, uint64_t request, const struct sampling *s) {
    c->engine->ops->set_sampling(c, request, EVERY_ANSWER, s);
}

void engine_set_answer_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s) {
    c->engine->ops->set_sampling(c, request, answer, s);
}

void engine_focus(struct engine_client *c, uint64_t conversation) { c->engine->ops->focus(c, conversation); }
void engine_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner) {
    c->engine->ops->forget(c, conversation, disk_owner);
}

bool engine_prompt(struct engine_client *c, const struct request_params *p, struct prompt_tokens *out) {
    *out = (struct prompt_tokens){0};
    return c->engine->ops->prompt && c->engine->ops->prompt(c, p, out);
}

bool engine_poll(struct engine_client *c, struct engine_event *out) { return queue_pop(&c->events, out); }
bool engine_wait(struct engine_client *c, struct engine_event *out, int timeout_ms) {
    return queue_wait(&c->events, out, timeout_ms);
}
int engine_event_fd(const struct engine_client *c) { return c->events.fd; }

const struct engine_metrics *engine_metrics(struct engine_client *c) { return c->engine->ops->metrics(c); }

void engine_watch(struct engine_client *c, uint64_t request, int answer) {
    if (c->engine->ops->watch) c->engine->ops->watch(c, request, answer);
}

bool engine_distribution(struct engine_client *c, const struct sampling *s, struct distribution *out) {
    return c->engine->ops->distribution && c->engine->ops->distribution(c, s, out);
}

void engine_look_at_page(struct engine_client *c, int page) {
    if (c->engine->ops->look_at_page) c->engine->ops->look_at_page(c, page);
}
