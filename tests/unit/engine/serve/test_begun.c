// Answers that begin with given tokens or text: forked = alone, on shared pages.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_families.h"
#include "tests/unit/tiny_model.h"

enum { PROMPT = 70, ANSWER = 60 };

// ---- the scheduler ----

// As bench_ask(id, PROMPT, PROMPT, ANSWER), the answer beginning with `begun`.
static struct scheduler_request ask_begun(uint64_t id, const int32_t *begun, int n) {
    struct scheduler_request q = bench_ask(id, PROMPT, PROMPT, ANSWER);
    q.ids = xrealloc(q.ids, (size_t)(PROMPT + n) * sizeof *q.ids);
    memcpy(q.ids + PROMPT, begun, (size_t)n * sizeof *begun);
    q.n_ids += n;
    q.n_begun = n;
    return q;
}

static void answer_alone(int32_t out[ANSWER]) {
    int32_t *ids = bench_prompt(1, PROMPT, PROMPT);
    toy_continue(ids, PROMPT, VOCAB, out, ANSWER);
    free(ids);
}

// Pages that were taken for this conversation and belong to nobody else.
static int own_pages(const struct bench *b, uint64_t conversation) {
    static struct engine_metrics f;
    int n = 0;
    scheduler_metrics(b->scheduler, &f);
    for (int i = 0; i < f.n_pages; i++) n += f.pages[i].references && f.pages[i].conversation == conversation;
    return n;
}

// Wherever it is forked, while the other streams or after it has ended: the same text on the other's pages.
static void test_forked_is_alone(void **state) {
    (void)state;
    int32_t alone[ANSWER];
    answer_alone(alone);
    for (int streams = 0; streams < 2; streams++) {
        for (int k = 0; k < ANSWER; k++) {
            struct bench *b = bench_open((struct bench_options){.n_pages = 32});
            bench_submit(b, 1, PROMPT, PROMPT, ANSWER);
            while (b->answers[1].n <= k) scheduler_step(b->scheduler);
            if (!streams) bench_run(b);
            struct scheduler_request q = ask_begun(2, alone, k);
            scheduler_submit(b->scheduler, &q);
            assert_int_equal(b->answers[2].n, k); // told before anything is computed
            scheduler_step(b->scheduler);
            bench_check(b);
            assert_int_equal(b->answers[2].n, k + 1);
            assert_int_equal(b->answers[2].n_prompt, PROMPT);
            assert_int_equal(b->answers[2].n_reused, PROMPT + k - 1);
            assert_in_range(own_pages(b, 2), 0, 2); // none where it goes on in a page that nobody else has
            bench_run(b);
            bench_assert_text_alone(b, 1, PROMPT, PROMPT, ANSWER);
            bench_assert_text_alone(b, 2, PROMPT, PROMPT, ANSWER);
            bench_close(b);
        }
    }
}

static void test_a_forced_token_makes_another_text(void **state) {
    (void)state;
    int32_t ids[PROMPT + ANSWER], expected[ANSWER];
    int32_t *prompt = bench_prompt(1, PROMPT, PROMPT);
    memcpy(ids, prompt, PROMPT * sizeof *ids);
    answer_alone(ids + PROMPT);
    const int k = 20;
    ids[PROMPT + k] = (ids[PROMPT + k] + 1) % VOCAB;
    memcpy(expected, ids + PROMPT, (size_t)(k + 1) * sizeof *ids);
    toy_continue(ids, PROMPT + k + 1, VOCAB, expected + k + 1, ANSWER - k - 1);
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = ask_begun(1, ids + PROMPT, k + 1);
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    assert_int_equal(b->answers[1].n, ANSWER);
    assert_memory_equal(b->answers[1].tokens, expected, sizeof expected);
    free(prompt);
    bench_close(b);
}

// What a seed draws behind a beginning is what it drew there before.
static void test_a_seed_goes_on_after_the_beginning(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    struct sampling wild = sampling_default();
    wild.seed = 4321;
    wild.temperature = 1.5f;
    struct scheduler_request q = bench_ask(1, PROMPT, PROMPT, ANSWER);
    q.sampling = wild;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    for (int k = 0; k < ANSWER; k += 7) {
        const uint64_t id = 2 + (uint64_t)k;
        q = ask_begun(id, b->answers[1].tokens, k);
        q.sampling = wild;
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
        assert_int_equal(b->answers[id].n, ANSWER);
        assert_memory_equal(b->answers[id].tokens, b->answers[1].tokens, ANSWER * sizeof(int32_t));
    }
    bench_close(b);
}

static void test_a_beginning_may_end_the_answer(void **state) {
    (void)state;
    int32_t alone[ANSWER];
    answer_alone(alone);
    struct bench *b = bench_open((struct bench_options){.n_pages = 16});
    b->end_token = VOCAB - 1;
    alone[5] = VOCAB - 1;
    struct scheduler_request q = ask_begun(1, alone, 10);
    scheduler_submit(b->scheduler, &q);
    assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[1].reason, FINISH_END);
    assert_int_equal(b->answers[1].n, 5);
    assert_true(scheduler_idle(b->scheduler));
    bench_close(b);
}

static void test_a_beginning_as_long_as_the_answer_may_be(void **state) {
    (void)state;
    int32_t alone[ANSWER];
    answer_alone(alone);
    struct bench *b = bench_open((struct bench_options){.n_pages = 16, .context = PROMPT + 30});
    struct scheduler_request q = ask_begun(1, alone, 20);
    q.max_tokens = 20;
    scheduler_submit(b->scheduler, &q);
    assert_int_equal(b->answers[1].reason, FINISH_LENGTH);
    assert_int_equal(b->answers[1].n, 20);
    q = ask_begun(2, alone, 40);
    q.n_answers = 2;
    scheduler_submit(b->scheduler, &q);
    for (int i = 2; i < 4; i++) {
        assert_int_equal(b->answers[i].state, REQUEST_FINISHED);
        assert_int_equal(b->answers[i].reason, FINISH_CONTEXT);
        assert_int_equal(b->answers[i].n, 30);
    }
    bench_check(b);
    bench_close(b);
}

// Fanned out = alone with the same sampling, whatever the others do.
static void test_each_answer_has_its_own_sampling(void **state) {
    (void)state;
    struct sampling own[3];
    int32_t alone[3][ANSWER];
    for (int i = 0; i < 3; i++) {
        own[i] = sampling_default();
        own[i].seed = 99 + (uint32_t)i;
        own[i].temperature = 0.5f + (float)i;
        struct bench *b = bench_open((struct bench_options){.n_pages = 16});
        struct scheduler_request q = bench_ask(1, PROMPT, PROMPT, ANSWER);
        q.sampling = own[i];
        scheduler_submit(b->scheduler, &q);
        bench_run(b);
        memcpy(alone[i], b->answers[1].tokens, sizeof alone[i]);
        bench_close(b);
    }
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = bench_ask(1, PROMPT, PROMPT, ANSWER);
    q.n_answers = 3;
    q.samplings = own;
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    for (int i = 0; i < 3; i++) assert_memory_equal(b->answers[1 + i].tokens, alone[i], sizeof alone[i]);
    bench_close(b);
}

static void test_one_answer_is_cancelled_or_changed_alone(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 32});
    struct scheduler_request q = bench_ask(1, PROMPT, PROMPT, ANSWER);
    struct sampling wild = sampling_default();
    wild.seed = 5;
    wild.temperature = 5;
    q.n_answers = 3;
    scheduler_submit(b->scheduler, &q);
    while (b->answers[3].n < 10) scheduler_step(b->scheduler);
    scheduler_cancel_answer(b->scheduler, 1, 1);
    scheduler_set_answer_sampling(b->scheduler, 1, 2, &wild);
    scheduler_cancel_answer(b->scheduler, 1, 7); // there is none
    bench_run(b);
    bench_assert_answer(b, 1, 1, PROMPT, PROMPT, ANSWER);
    assert_int_equal(b->answers[2].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[3].state, REQUEST_FINISHED);
    assert_memory_not_equal(b->answers[3].tokens, b->answers[1].tokens, ANSWER * sizeof(int32_t));
    bench_close(b);
}

// ---- the engine ----

struct told {
    char text[2][4096]; // by channel
    int32_t tokens[512];
    float probabilities[512];
    int n;
    struct engine_event end;
};

static struct told run(struct engine_client *client, const struct request_params *p) {
    struct told t = {.n = 0};
    struct engine_event e;
    engine_submit(client, p);
    do {
        if (!engine_wait(client, &e, 60000)) fail_msg("no event for a minute");
        if (e.kind != EVENT_TEXT) continue;
        strcat(t.text[e.channel], e.text);
        if (e.token < 0) continue;
        t.probabilities[t.n] = e.probability;
        t.tokens[t.n++] = e.token;
    } while (e.kind != EVENT_STATE || e.state < REQUEST_FINISHED);
    t.end = e;
    return t;
}

struct opened {
    void *bytes;
    struct model_file *file;
    struct engine *engine;
    struct engine_client *client;
};

static struct opened open_with(struct model_file *file, void *bytes, int kv_tokens) {
    struct status st = {0};
    struct opened o = {.file = file, .bytes = bytes};
    o.engine =
        file ? local_engine_open(file, &(struct engine_params){.n_threads = 1, .kv_tokens = kv_tokens}, &st) : NULL;
    if (!o.engine) fail_msg("%s", st.text);
    o.client = engine_client_open(o.engine, &st);
    return o;
}

static struct opened open_file(struct model_file *file, void *bytes) { return open_with(file, bytes, 0); }

static struct opened open_tiny(struct tiny_model_options options) {
    struct status st = {0};
    size_t size;
    void *bytes = tiny_model_bytes(options, &size);
    return open_file(model_file_open_memory("tiny.gguf", bytes, size, NULL, &st), bytes);
}

static struct opened open_stories(void) {
    struct status st = {0};
    return open_file(model_file_open(shared_file("models/stories260K-f32.gguf"), &st), NULL);
}

static void opened_close(struct opened *o) {
    engine_client_close(o->client);
    engine_close(o->engine);
    model_file_close(o->file);
    free(o->bytes);
}

static struct request_params story(void) {
    struct request_params p = {
        .conversation = 1, .raw = "Once upon a time", .sampling = sampling_default(), .max_tokens = 100};
    p.sampling.temperature = 0;
    return p;
}

static void test_a_story_goes_on_from_any_of_its_tokens(void **state) {
    (void)state;
    struct opened o = open_stories();
    struct request_params p = story();
    const struct told whole = run(o.client, &p);
    assert_int_equal(whole.n, 100);
    p.begun = whole.tokens;
    for (p.n_begun = 1; p.n_begun < 100; p.n_begun += 13) {
        const struct told fork = run(o.client, &p);
        assert_string_equal(fork.text[CHANNEL_ANSWER], whole.text[CHANNEL_ANSWER]);
        assert_int_equal(fork.n, whole.n);
        assert_int_equal(fork.end.n_generated, 100);
        assert_int_equal(fork.end.n_prompt, whole.end.n_prompt);
        assert_int_equal(fork.end.n_reused, whole.end.n_prompt + p.n_begun - 1);
        for (int i = 0; i < fork.n; i++) {
            if (i < p.n_begun) assert_true(isnan(fork.probabilities[i]));
            else assert_true(fork.probabilities[i] == whole.probabilities[i]);
        }
    }
    opened_close(&o);
}

enum { SOME = 40, MORE = 30, AT_ONCE = 3 };

// At once, so that they take each other's pages where those are few.
static void check_forks(struct engine_client *client, const struct request_params *whole, const struct told *alone) {
    static const int places[AT_ONCE] = {1, 14, 29};
    struct told forks[AT_ONCE] = {{.n = 0}};
    uint64_t ids[AT_ONCE];
    struct engine_event e;
    for (int i = 0; i < AT_ONCE; i++) {
        struct request_params p = *whole;
        p.conversation = 2 + (uint64_t)i;
        p.begun = alone->tokens;
        p.n_begun = places[i];
        ids[i] = engine_submit(client, &p);
    }
    for (int open = AT_ONCE; open;) {
        if (!engine_wait(client, &e, 60000)) fail_msg("no event for a minute");
        open -= e.kind == EVENT_STATE && e.state >= REQUEST_FINISHED;
        for (int i = 0; i < AT_ONCE; i++)
            if (e.request == ids[i] && e.kind == EVENT_TEXT && e.token >= 0) forks[i].tokens[forks[i].n++] = e.token;
    }
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(forks[i].n, alone->n);
        assert_memory_equal(forks[i].tokens, alone->tokens, (size_t)alone->n * sizeof(int32_t));
    }
}

static void check_family(const struct tiny_shape *shape, int kv_tokens) {
    struct status st = {0};
    size_t size;
    int32_t ids[SOME];
    void *bytes = tiny_shape_bytes(shape, &size);
    struct opened o = open_with(model_file_open_memory(shape->name, bytes, size, NULL, &st), bytes, kv_tokens);
    for (int i = 0; i < SOME; i++) ids[i] = 3 + i * 7 % 50;
    struct request_params p = {.conversation = 1,
                               .ids = ids,
                               .n_ids = SOME,
                               .sampling = sampling_default(),
                               .max_tokens = MORE,
                               .ignore_end = true};
    p.sampling.temperature = 0;
    const struct told alone = run(o.client, &p);
    check_forks(o.client, &p, &alone);
    p.sampling.temperature = 1; // draws go on where they were
    p.sampling.seed = 12;
    const struct told drawn = run(o.client, &p);
    check_forks(o.client, &p, &drawn);
    opened_close(&o);
}

static void test_every_family_goes_on_from_any_token(void **state) {
    (void)state;
    static const enum block_id formats[] = {BLOCK_F32, BLOCK_Q4_0, BLOCK_Q8_0};
    for (int i = 0; i < tiny_family_count; i++) {
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            struct tiny_shape shape = tiny_families[i];
            shape.format = formats[k];
            check_family(&shape, k == 1 ? 3 * 32 : 0); // once with too few pages for all
        }
    }
}

static void test_text_is_a_beginning_too(void **state) {
    (void)state;
    struct opened o = open_stories();
    struct request_params p = story();
    p.begun_text = ", there was a dragon";
    const struct told t = run(o.client, &p);
    assert_memory_equal(t.text[CHANNEL_ANSWER], p.begun_text, strlen(p.begun_text));
    assert_int_equal(t.end.n_generated, 100);
    assert_true(strlen(t.text[CHANNEL_ANSWER]) > 100);
    p.begun = t.tokens; // tokens, then text
    p.n_begun = 3;
    p.begun_text = " cat";
    char expected[64];
    snprintf(expected, sizeof expected, ", there was cat");
    const struct told both = run(o.client, &p);
    assert_memory_equal(both.text[CHANNEL_ANSWER], expected, strlen(expected));
    opened_close(&o);
}

// A beginning is taken apart as an answer is: stop texts end it, thinking is told as such.
static void test_a_beginning_goes_through_the_splitter(void **state) {
    (void)state;
    struct opened o = open_tiny((struct tiny_model_options){.chat_template = TINY_CHATML "{# <think> </think> #}"});
    const struct engine_message question = {.role = "user", .text = "Hello"};
    struct request_params p = {.conversation = 1,
                               .messages = &question,
                               .n_messages = 1,
                               .sampling = sampling_default(),
                               .max_tokens = 60,
                               .begun_text = "<think>so</think>it is STOP here",
                               .stops = (const char *const[]){"STOP"},
                               .n_stops = 1};
    const struct told t = run(o.client, &p);
    assert_string_equal(t.text[CHANNEL_THINKING], "so");
    assert_string_equal(t.text[CHANNEL_ANSWER], "it is ");
    assert_int_equal(t.end.state, REQUEST_FINISHED);
    assert_int_equal(t.end.reason, FINISH_END);
    opened_close(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forked_is_alone),
        cmocka_unit_test(test_a_forced_token_makes_another_text),
        cmocka_unit_test(test_a_seed_goes_on_after_the_beginning),
        cmocka_unit_test(test_a_beginning_may_end_the_answer),
        cmocka_unit_test(test_a_beginning_as_long_as_the_answer_may_be),
        cmocka_unit_test(test_each_answer_has_its_own_sampling),
        cmocka_unit_test(test_one_answer_is_cancelled_or_changed_alone),
        cmocka_unit_test(test_a_story_goes_on_from_any_of_its_tokens),
        cmocka_unit_test(test_every_family_goes_on_from_any_token),
        cmocka_unit_test(test_text_is_a_beginning_too),
        cmocka_unit_test(test_a_beginning_goes_through_the_splitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
