// What the tests of the engine from outside share: an engine over a small model, on a machine with as much free memory
// as a test says, and what became of each of its requests.
//
// It defines machine_memory_free in place of the library's; so each program includes it in one file.
#ifndef CONFAB_TESTS_ENGINE_FIXTURE_H
#define CONFAB_TESTS_ENGINE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/metrics.h"
#include "engine/model/opened_model.h"
#include "engine/serve/local_engine_state.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

enum { MOST = 512 };
#define PLENTY (1ull << 40)

static uint64_t memory_free = PLENTY; // of the machine
uint64_t machine_memory_free(void) { return memory_free; }

struct answer_text {
    char *text;
    size_t size;
    enum request_state state;
    enum finish_reason reason;
    int stop;
    int n_prompt, n_reused, n_generated, n_tokens, n_accepted, times_pending;
    char message[512];
};

struct bench {
    void *bytes;
    struct model_file *file;
    struct engine *engine;
    struct engine_client *client;
    struct answer_text answers[MOST];
    int open_requests;
};

static inline struct bench *bench_open_file(struct model_file *file, const struct backend_ops *ops,
                                            struct engine_params p) {
    struct bench *b = xcalloc(1, sizeof *b);
    struct status st = {0};
    toy_reset();
    b->file = file;
    if (!p.n_threads) p.n_threads = 2;
    b->engine = local_engine_open_on(b->file, &p, ops, &st);
    if (!b->engine) fail_msg("%s", st.text);
    b->client = engine_client_open(b->engine, &st);
    return b;
}

static inline struct bench *bench_open(struct tiny_model_options o, const struct backend_ops *ops,
                                       struct engine_params p) {
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes(o, &size);
    struct model_file *file = model_file_open_memory("tiny.gguf", bytes, size, NULL, &st);
    if (!file) fail_msg("%s", st.text);
    struct bench *b = bench_open_file(file, ops, p);
    b->bytes = bytes;
    return b;
}

static inline void bench_close_engine(struct bench *b) {
    engine_client_close(b->client);
    engine_close(b->engine);
    b->client = NULL, b->engine = NULL;
}

static inline void bench_close(struct bench *b) {
    bench_close_engine(b);
    model_file_close(b->file);
    free(b->bytes);
    for (int i = 0; i < MOST; i++) free(b->answers[i].text);
    free(b);
}

static inline struct sampling greedy(void) {
    struct sampling s = sampling_default();
    s.temperature = 0;
    s.repeat_penalty = 1;
    return s;
}

static inline uint64_t ask_raw(struct bench *b, uint64_t conversation, const char *text, int n) {
    struct request_params p = {
        .conversation = conversation, .raw = text, .sampling = greedy(), .max_tokens = n, .ignore_end = true};
    b->open_requests++;
    return engine_submit(b->client, &p);
}

static inline void note(struct bench *b, const struct engine_event *e) {
    assert_true(e->request > 0 && e->request < MOST);
    struct answer_text *a = &b->answers[e->request];
    if (e->kind == EVENT_NOTICE) return;
    if (e->kind == EVENT_TEXT) {
        a->n_tokens += e->token >= 0;
        assert_true(e->size < sizeof e->text);
        assert_int_equal(utf8_incomplete(e->text, e->size), 0);
        a->text = xrealloc(a->text, a->size + e->size + 1);
        memcpy(a->text + a->size, e->text, e->size + 1);
        a->size += e->size;
        return;
    }
    a->state = e->state;
    a->reason = e->reason;
    a->stop = e->stop;
    a->n_prompt = e->n_prompt, a->n_reused = e->n_reused, a->n_generated = e->n_generated;
    a->n_accepted = e->n_accepted;
    a->times_pending += e->state == REQUEST_PENDING;
    if (e->state == REQUEST_FAILED) snprintf(a->message, sizeof a->message, "%s", e->text);
    if (e->state >= REQUEST_FINISHED) b->open_requests--;
}

static inline void wait_for_all(struct bench *b) {
    struct engine_event e;
    while (b->open_requests) {
        if (!engine_wait(b->client, &e, 60000)) fail_msg("no event for a minute, %d requests open", b->open_requests);
        note(b, &e);
    }
}

static inline const char *answer_alone(struct bench *b, const char *text, int n) {
    uint64_t id = ask_raw(b, 1, text, n);
    wait_for_all(b);
    assert_int_equal(b->answers[id].state, REQUEST_FINISHED);
    return b->answers[id].text;
}

static const char *const openings[8] = {
    "Once upon a time", "Once upon a day",        "The", "Lily had a dog", "In the park",
    "Tom and Ben",      "It was a big, red ball", "Once"};

#endif
