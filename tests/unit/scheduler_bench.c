#include "tests/unit/scheduler_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"

static struct bench_answer *answer_of(struct bench *b, const struct sequence *q) {
    assert_true(q->request->id + (uint64_t)q->answer < MOST_REQUESTS);
    return &b->answers[q->request->id + (uint64_t)q->answer];
}

static void on_state(void *context, const struct sequence *q, const char *message) {
    struct bench *b = context;
    struct bench_answer *a = answer_of(b, q);
    b->events++;
    a->state = q->state;
    a->reason = q->reason;
    a->n_prompt = q->request->n_prompt;
    a->n_reused = q->n_reused;
    a->times_pending += q->state == REQUEST_PENDING;
    if (q->state == REQUEST_PREFILLING && !a->started) a->started = b->events;
    if (q->state >= REQUEST_FINISHED) a->ended = b->events;
    snprintf(a->message, sizeof a->message, "%s", message);
}

static bool on_token(void *context, const struct sequence *q, const struct sample *sample) {
    struct bench *b = context;
    struct bench_answer *a = answer_of(b, q);
    b->events++;
    if (!a->answered) a->answered = b->events;
    if (sample->token == b->end_token) return true;
    assert_true(a->n < MOST_TOKENS);
    a->tokens[a->n++] = sample->token;
    a->n_accepted += sample->accepted;
    return false;
}

static void on_scored(void *context, const struct sequence *q, const struct sample *sample) {
    struct bench_answer *a = answer_of(context, q);
    assert_true(a->n_scored < MOST_TOKENS);
    a->scores[a->n_scored] = sample->probability;
    a->scored[a->n_scored++] = sample->token;
}

static bool on_step(void *context) {
    struct bench *b = context;
    if (b->in_step) b->in_step(b);
    return b->stops > 0 && b->stops--;
}

static void on_moved(void *context, const char *message) {
    struct bench *b = context;
    b->n_moved++;
    snprintf(b->moved, sizeof b->moved, "%s", message);
}

struct bench *bench_open(struct bench_options o) {
    toy_reset();
    struct bench *b = xcalloc(1, sizeof *b);
    b->model.spec.n_vocab = o.n_vocab ? o.n_vocab : VOCAB;
    b->end_token = -1;
    metrics_open(&b->metrics);
    struct scheduler_params p = {.placement = o.model ? o.placement : placement_on(&toy_backend, 0),
                                 .fallback = o.fallback,
                                 .hibernation = o.hibernation,
                                 .options = o.backend,
                                 .model = o.model ? o.model : &b->model,
                                 .n_pages = o.n_pages,
                                 .metrics = &b->metrics,
                                 .context = o.context ? o.context : o.n_pages * KV_PAGE_TOKENS,
                                 .prefill_chunk = o.chunk,
                                 .max_running = o.places,
                                 .drafts = o.drafts,
                                 .events = {.context = b,
                                            .state = on_state,
                                            .token = on_token,
                                            .scored = on_scored,
                                            .stop = on_step,
                                            .moved = on_moved}};
    struct status st;
    b->scheduler = scheduler_open(&p, &st);
    assert_non_null(b->scheduler);
    if (!o.drafter) return b;
    b->small.spec.n_vocab = o.draft_vocab;
    const struct drafter_params d = {.placement = placement_on(o.drafter, 0),
                                     .model = o.draft_vocab ? &b->small : p.model,
                                     .n_pages = o.draft_pages ? o.draft_pages : o.n_pages,
                                     .context = p.context,
                                     .n_vocab = p.model->spec.n_vocab};
    struct drafter *drafter = drafter_open(&d, &st);
    assert_non_null(drafter);
    scheduler_set_drafter(b->scheduler, drafter);
    return b;
}

void bench_close(struct bench *b) {
    scheduler_close(b->scheduler);
    metrics_close(&b->metrics);
    free(b);
}

int32_t *bench_prompt(uint64_t id, int n, int common) {
    int32_t *ids = xmalloc((size_t)n * sizeof *ids);
    for (int i = 0; i < n; i++)
        ids[i] = (int32_t)((i < common ? (uint64_t)i * 31 + 5 : (uint64_t)i * 17 + id * 29 + 1) % (VOCAB - 1));
    return ids;
}

struct sampling bench_greedy(void) {
    struct sampling s = sampling_default();
    s.temperature = 0;
    s.repeat_penalty = 1;
    return s;
}

struct scheduler_request bench_ask(uint64_t id, int n_prompt, int common, int n_answer) {
    return (struct scheduler_request){.id = id,
                                      .conversation = id,
                                      .ids = bench_prompt(id, n_prompt, common),
                                      .n_ids = n_prompt,
                                      .sampling = bench_greedy(),
                                      .max_tokens = n_answer};
}

void bench_submit(struct bench *b, uint64_t id, int n_prompt, int common, int n_answer) {
    struct scheduler_request q = bench_ask(id, n_prompt, common, n_answer);
    scheduler_submit(b->scheduler, &q);
}

void bench_check(struct bench *b) {
    struct status st = {0};
    if (!scheduler_check(b->scheduler, &st)) fail_msg("%s", st.text);
}

void bench_run(struct bench *b) {
    while (scheduler_step(b->scheduler)) bench_check(b);
    assert_true(scheduler_idle(b->scheduler));
}

void bench_assert_answer(const struct bench *b, uint64_t at, uint64_t id, int n_prompt, int common, int n_answer) {
    int32_t *ids = bench_prompt(id, n_prompt, common), expected[MOST_TOKENS];
    toy_continue(ids, n_prompt, VOCAB, expected, n_answer);
    free(ids);
    assert_int_equal(b->answers[at].n, n_answer);
    assert_memory_equal(b->answers[at].tokens, expected, (size_t)n_answer * sizeof *expected);
}

void bench_assert_text_alone(const struct bench *b, uint64_t id, int n_prompt, int common, int n_answer) {
    bench_assert_answer(b, id, id, n_prompt, common, n_answer);
}
