// Stress tests of the engine with the real backend: requests that arrive and are cancelled at random while pages are
// scarce, storms of commands from several threads, broken weights, closing in the middle of everything.
//
// STORM_SECONDS: length of the storms (default 1).
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/backend.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/engine_ops.h"
#include "engine/local_engine.h"
#include "engine/metrics.h"
#include "engine/model/opened_model.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_model.h"

enum { CONVERSATIONS = 8, TOKENS = 40, MOST_PROMPT = 48, PATIENCE = 60000 };

// ---- models ----

struct model_in_memory {
    void *bytes; // NULL: a file on disk
    struct model_file *file;
};

static struct model_in_memory tiny_open(struct tiny_model_options o) {
    struct model_in_memory m;
    struct status st = {0};
    size_t size;
    m.bytes = tiny_model_bytes(o, &size);
    m.file = model_file_open_memory("tiny.gguf", m.bytes, size, NULL, &st);
    if (!m.file) fail_msg("%s", st.text);
    return m;
}

static void model_close_in_memory(struct model_in_memory m) {
    model_file_close(m.file);
    free(m.bytes);
}

// The client of an engine of its own.
static struct engine_client *open_engine(struct model_file *file, struct engine_params p) {
    struct status st = {0};
    struct engine *e = local_engine_open(file, &p, &st);
    struct engine_client *c = e ? engine_client_open(e, &st) : NULL;
    if (!c) fail_msg("%s", st.text);
    return c;
}

static void close_engine(struct engine_client *c) {
    struct engine *e = c->engine;
    engine_client_close(c);
    engine_close(e);
}

// ---- requests ----

// The outcome of a request.
struct outcome {
    int32_t tokens[TOKENS];
    int n_tokens, n_reused;
    enum request_state state;
    enum finish_reason reason;
    char message[512];
};

static struct request_params ask(uint64_t conversation, const int32_t *ids, int n) {
    struct request_params p = {.conversation = conversation,
                               .ids = ids,
                               .n_ids = n,
                               .sampling = sampling_default(),
                               .max_tokens = TOKENS,
                               .ignore_end = true};
    p.sampling.temperature = 0;
    return p;
}

// Takes events until n requests have ended. Outcomes are by request id, which is at most `most`.
static void collect(struct engine_client *e, struct outcome *outcomes, uint64_t most, int n) {
    struct engine_event event;
    while (n > 0) {
        if (!engine_wait(e, &event, PATIENCE)) fail_msg("no event, %d requests open", n);
        if (event.request > most) fail_msg("unknown request %llu", (unsigned long long)event.request);
        struct outcome *o = &outcomes[event.request];
        if (event.kind == EVENT_TEXT) {
            if (event.token >= 0) o->tokens[o->n_tokens++] = event.token;
            continue;
        }
        o->state = event.state, o->reason = event.reason, o->n_reused = event.n_reused;
        if (event.state == REQUEST_FAILED) snprintf(o->message, sizeof o->message, "%s", event.text);
        n -= event.state >= REQUEST_FINISHED;
    }
}

static struct outcome answer(struct engine_client *e, const int32_t *ids, int n) {
    struct request_params p = ask(1, ids, n);
    uint64_t id = engine_submit(e, &p);
    struct outcome *all = xcalloc(id + 1, sizeof *all);
    collect(e, all, id, 1);
    struct outcome o = all[id];
    free(all);
    return o;
}

static uint32_t random_below(uint32_t *state, uint32_t n) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

struct question {
    int32_t ids[MOST_PROMPT];
    int n;
};

// Some have a common beginning, so that pages are shared and copied.
static void make_questions(struct question *questions, int n, int n_vocab, uint32_t *random) {
    for (int i = 0; i < n; i++) {
        questions[i].n = 1 + (int)random_below(random, MOST_PROMPT);
        for (int k = 0; k < MOST_PROMPT; k++) questions[i].ids[k] = (int32_t)random_below(random, (uint32_t)n_vocab);
        if (i % 3) memcpy(questions[i].ids, questions[0].ids, sizeof *questions[i].ids * (size_t)questions[i].n / 2);
    }
}

// ---- together as alone ----

// Eight conversations arrive at random times, with others in between that are cancelled; there are pages for two or
// three.
static void together(struct model_file *file, int n_threads, const struct question *questions,
                     const struct outcome *alone, uint32_t *random) {
    struct engine_client *e = open_engine(
        file, (struct engine_params){.n_threads = n_threads, .kv_tokens = 8 * KV_PAGE_TOKENS, .prefill_chunk = 16});
    struct outcome outcomes[2 * CONVERSATIONS + 1] = {0};
    uint64_t ids[CONVERSATIONS];
    for (int i = 0; i < CONVERSATIONS; i++) {
        struct request_params p = ask((uint64_t)i + 1, questions[i].ids, questions[i].n);
        uint64_t doomed = engine_submit(e, &p);
        usleep(random_below(random, 1500));
        ids[i] = engine_submit(e, &p);
        usleep(random_below(random, 1500));
        engine_cancel(e, doomed);
    }
    collect(e, outcomes, 2 * CONVERSATIONS, 2 * CONVERSATIONS);
    for (int i = 0; i < CONVERSATIONS; i++) {
        const struct outcome *o = &outcomes[ids[i]];
        if (o->state != REQUEST_FINISHED) fail_msg("%s: %s", request_state_name(o->state), o->message);
        assert_int_equal(o->n_tokens, TOKENS);
        assert_memory_equal(o->tokens, alone[i].tokens, sizeof o->tokens);
    }
    close_engine(e);
}

static void at_once_as_alone(struct model_file *file, uint32_t seed) {
    struct question questions[CONVERSATIONS];
    struct outcome alone[CONVERSATIONS];
    make_questions(questions, CONVERSATIONS, model_file_info(file)->n_vocab, &seed);
    for (int i = 0; i < CONVERSATIONS; i++) { // one engine for each: nothing is reused
        struct engine_client *e = open_engine(file, (struct engine_params){.n_threads = 1});
        alone[i] = answer(e, questions[i].ids, questions[i].n);
        close_engine(e);
    }
    for (int n_threads = 1; n_threads <= 3; n_threads++) together(file, n_threads, questions, alone, &seed);
}

static void test_every_format_at_once_as_alone(void **state) {
    (void)state;
    static const struct tiny_model_options models[] = {
        {.format = BLOCK_F32},
        {.format = BLOCK_F16, .family = TINY_LLAMA_ROPE_FREQS},
        {.format = BLOCK_BF16, .family = TINY_QWEN2, .tied = true},
        {.format = BLOCK_Q8_0, .family = TINY_QWEN3},
        {.format = BLOCK_Q4_0},
        {.format = BLOCK_Q4_K, .family = TINY_QWEN2},
        {.format = BLOCK_Q6_K, .family = TINY_QWEN3, .tied = true},
    };
    for (uint32_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct model_in_memory m = tiny_open(models[i]);
        at_once_as_alone(m.file, i + 1);
        model_close_in_memory(m);
    }
}

static void test_trained_model_at_once_as_alone(void **state) {
    (void)state;
    const char *path = shared_file("models/stories260K-f32.gguf");
    struct status st = {0};
    struct model_file *file = model_file_open(path, &st);
    assert_non_null(file);
    at_once_as_alone(file, 42);
    model_file_close(file);
}

// The pages of a cancelled answer are reused and lead to the same answer.
static void test_regenerated_after_cancellation(void **state) {
    (void)state;
    struct model_in_memory m = tiny_open((struct tiny_model_options){.format = BLOCK_Q8_0});
    uint32_t random = 7;
    struct question question;
    make_questions(&question, 1, model_file_info(m.file)->n_vocab, &random);
    question.n = 40;
    for (int k = 0; k < question.n; k++) question.ids[k] = 3 + k;
    struct engine_client *e = open_engine(m.file, (struct engine_params){.n_threads = 2, .prefill_chunk = 16});
    const struct outcome first = answer(e, question.ids, question.n);
    assert_int_equal(first.n_reused, 0);
    for (int round = 0; round < 20; round++) {
        struct outcome outcomes[64] = {0};
        struct request_params p = ask(1, question.ids, question.n);
        uint64_t id = engine_submit(e, &p);
        usleep(random_below(&random, 3000));
        engine_cancel(e, id);
        uint64_t again = engine_submit(e, &p);
        collect(e, outcomes, 63, 2);
        assert_int_equal(outcomes[again].state, REQUEST_FINISHED);
        assert_int_equal(outcomes[again].n_reused, question.n - 1);
        assert_memory_equal(outcomes[again].tokens, first.tokens, sizeof first.tokens);
    }
    close_engine(e);
    model_close_in_memory(m);
}

// ---- broken weights ----

// The embedding of one token becomes NaN.
static void spoil_token(struct model_in_memory m, int32_t token) {
    const struct gguf_tensor *t = gguf_tensor_find(&m.file->gguf, "token_embd.weight");
    assert_int_equal(t->format->id, BLOCK_F32);
    float *row =
        (float *)((char *)m.bytes + ((const char *)t->data - (const char *)m.bytes)) + (size_t)token * t->dims[0];
    row[t->dims[0] / 2] = NAN;
}

// Metrics are published a moment after the events.
static void wait_for_free_pages(struct engine_client *e) {
    for (int i = 0; engine_metrics(e)->pages_used && i < PATIENCE; i++) usleep(1000);
    assert_int_equal(engine_metrics(e)->pages_used, 0);
}

// A request with the token fails with a message; others in the batch, later ones and other engines are not affected.
static void test_nan_weights_fail_their_request_alone(void **state) {
    (void)state;
    enum { SPOILT = 5 };
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        struct model_in_memory m = tiny_open((struct tiny_model_options){0}),
                               other = tiny_open((struct tiny_model_options){.seed = 9});
        spoil_token(m, SPOILT);
        struct engine_client *e =
            open_engine(m.file, (struct engine_params){.n_threads = n_threads, .prefill_chunk = 8});
        struct engine_client *beside = open_engine(other.file, (struct engine_params){.n_threads = n_threads});
        int32_t good[] = {1, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49},
                bad[] = {1, 40, 41, 42, 43, 44, 45, 46, 47, SPOILT, 49};
        const int n = sizeof good / sizeof *good;
        const struct outcome alone = answer(e, good, n), elsewhere = answer(beside, bad, n);
        for (int round = 0; round < 5; round++) {
            struct outcome outcomes[64] = {0};
            struct request_params wrong = ask(2, bad, n), right = ask(3, good, n);
            uint64_t failing = engine_submit(e, &wrong), fine = engine_submit(e, &right),
                     again = engine_submit(e, &wrong);
            collect(e, outcomes, 63, 3);
            assert_int_equal(outcomes[failing].state, REQUEST_FAILED);
            assert_int_equal(outcomes[again].state, REQUEST_FAILED);
            assert_non_null(strstr(outcomes[failing].message, "NaN"));
            assert_int_equal(outcomes[fine].state, alone.state);
            assert_int_equal(outcomes[fine].n_tokens, alone.n_tokens);
            assert_memory_equal(outcomes[fine].tokens, alone.tokens, (size_t)alone.n_tokens * sizeof *alone.tokens);
            wait_for_free_pages(e);
        }
        const struct outcome there = answer(beside, bad, n);
        assert_int_equal(there.state, REQUEST_FINISHED);
        assert_memory_equal(there.tokens, elsewhere.tokens, sizeof there.tokens);
        close_engine(e);
        close_engine(beside);
        model_close_in_memory(m);
        model_close_in_memory(other);
    }
}

// ---- storms ----

static double storm_seconds(void) {
    const char *seconds = getenv("STORM_SECONDS");
    return seconds ? atof(seconds) : 1;
}

struct storm {
    struct engine_client *engine;
    atomic_ullong submitted; // a lower bound of the requests
    atomic_bool over;
};

static void *cancel_storm(void *argument) {
    struct storm *s = argument;
    uint32_t random = 99;
    struct sampling hot = sampling_default();
    while (!atomic_load(&s->over)) {
        uint64_t last = atomic_load(&s->submitted), back = random_below(&random, 80),
                 id = last > back ? last - back : 1;
        engine_cancel(s->engine, id);
        engine_set_sampling(s->engine, id, &hot);
        engine_focus(s->engine, random_below(&random, 9));
        if (random_below(&random, 10) == 0) engine_forget(s->engine, random_below(&random, 9), 0);
        usleep(random_below(&random, 400));
    }
    return NULL;
}

// Bursts of 64 requests from this thread, cancellations and other commands from two others; pages for only a few.
static void test_storm_of_requests_and_cancellations(void **state) {
    (void)state;
    enum { BURST = 64 };
    struct model_in_memory m = tiny_open((struct tiny_model_options){.format = BLOCK_Q4_0});
    struct storm storm = {
        .engine = open_engine(m.file, (struct engine_params){.n_threads = 2, .kv_tokens = 512, .prefill_chunk = 64})};
    pthread_t threads[2];
    struct question questions[BURST];
    uint32_t random = 4;
    uint64_t ended = 0, finished = 0, asked = 0;
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, cancel_storm, &storm), 0);
    for (double until = clock_seconds() + storm_seconds(); clock_seconds() < until;) {
        make_questions(questions, BURST, model_file_info(m.file)->n_vocab, &random);
        for (int i = 0; i < BURST; i++, asked++) {
            struct request_params p = ask(1 + random_below(&random, 8), questions[i].ids, questions[i].n);
            if (random_below(&random, 8) == 0) p.time_limit = 0.002;
            atomic_store(&storm.submitted, engine_submit(storm.engine, &p));
        }
        struct engine_event event;
        while (ended + BURST / 2 < asked) {
            if (!engine_wait(storm.engine, &event, PATIENCE)) fail_msg("no event");
            ended += event.kind == EVENT_STATE && event.state >= REQUEST_FINISHED;
            finished += event.kind == EVENT_STATE && event.state == REQUEST_FINISHED;
            const struct engine_metrics *f = engine_metrics(storm.engine);
            assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
        }
    }
    atomic_store(&storm.over, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (struct engine_event event; ended < asked;) {
        if (!engine_wait(storm.engine, &event, PATIENCE)) fail_msg("no event");
        ended += event.kind == EVENT_STATE && event.state >= REQUEST_FINISHED;
    }
    print_message("%llu requests, %llu finished before the last\n", (unsigned long long)asked,
                  (unsigned long long)finished);
    const struct outcome after = answer(storm.engine, questions[0].ids, questions[0].n);
    assert_int_equal(after.state, REQUEST_FINISHED);
    close_engine(storm.engine);
    model_close_in_memory(m);
}

static void test_close_in_the_middle(void **state) {
    (void)state;
    struct model_in_memory m = tiny_open((struct tiny_model_options){.format = BLOCK_Q8_0, .n_context = 4096});
    uint32_t random = 1;
    struct question questions[24];
    for (int round = 0; round < 10; round++) {
        make_questions(questions, 24, model_file_info(m.file)->n_vocab, &random);
        struct engine_client *e = open_engine(m.file, (struct engine_params){.n_threads = 1 + round % 3});
        for (int i = 0; i < 24; i++) {
            struct request_params p = ask((uint64_t)i + 1, questions[i].ids, questions[i].n);
            p.max_tokens = 0;
            engine_submit(e, &p);
        }
        usleep(random_below(&random, 20000));
        close_engine(e);
    }
    model_close_in_memory(m);
}

// ---- closing and limits ----

static void test_context_time_and_length(void **state) {
    (void)state;
    struct model_in_memory m = tiny_open((struct tiny_model_options){0});
    struct engine_client *e = open_engine(m.file, (struct engine_params){.n_threads = 2, .context = 48});
    struct outcome outcomes[8] = {0};
    int32_t ids[64];
    for (int i = 0; i < 64; i++) ids[i] = 3 + i;
    struct request_params to_the_end = ask(1, ids, 8), too_long = ask(2, ids, 64), late = ask(3, ids, 8);
    to_the_end.max_tokens = 0;
    late.time_limit = 1e-9;
    uint64_t full = engine_submit(e, &to_the_end), refused = engine_submit(e, &too_long),
             expired = engine_submit(e, &late);
    collect(e, outcomes, 7, 3);
    assert_int_equal(outcomes[full].reason, FINISH_CONTEXT);
    assert_int_equal(outcomes[full].n_tokens, 40);
    assert_int_equal(outcomes[refused].state, REQUEST_FAILED);
    assert_non_null(strstr(outcomes[refused].message, "the prompt has 64 tokens, a conversation may have 48"));
    assert_int_equal(outcomes[expired].reason, FINISH_TIME);
    assert_int_equal(outcomes[expired].n_tokens, 0);
    close_engine(e);
    model_close_in_memory(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_at_once_as_alone),
        cmocka_unit_test(test_trained_model_at_once_as_alone),
        cmocka_unit_test(test_regenerated_after_cancellation),
        cmocka_unit_test(test_nan_weights_fail_their_request_alone),
        cmocka_unit_test(test_storm_of_requests_and_cancellations),
        cmocka_unit_test(test_close_in_the_middle),
        cmocka_unit_test(test_context_time_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
