// The engine from outside: many requests at once, over the toy backend and over the real one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/unit/engine_fixture.h"
#include "tests/unit/shared_files.h"

static void eight_at_once(struct bench *alone, struct bench *together, int n) {
    uint64_t ids[8];
    for (int i = 0; i < 8; i++) ids[i] = ask_raw(together, (uint64_t)i + 1, openings[i], n);
    wait_for_all(together);
    for (int i = 0; i < 8; i++) {
        const struct answer_text *a = &together->answers[ids[i]];
        assert_int_equal(a->state, REQUEST_FINISHED);
        assert_int_equal(a->n_generated, n);
        assert_string_equal(a->text, answer_alone(alone, openings[i], n));
    }
}

static void test_eight_at_once(void **state) {
    (void)state;
    struct bench *alone = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct bench *together =
        bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.prefill_chunk = 8});
    eight_at_once(alone, together, 100);
    bench_close(together);
    together = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.kv_tokens = 256});
    eight_at_once(alone, together, 100);
    assert_true(engine_metrics(together->client)->preemptions > 0);
    bench_close(together);
    bench_close(alone);
}

// ---- stress: commands from another thread while events and metrics are read here ----

struct disturber {
    struct bench *bench;
    uint32_t random;
    int submitted;
};

static void *disturb(void *argument) {
    struct disturber *d = argument;
    struct engine_client *e = d->bench->client;
    for (int i = 0; i < 600; i++) {
        d->random = d->random * 1664525u + 1013904223u;
        uint32_t what = d->random >> 24, pick = d->random >> 8 & 0xff;
        struct sampling sampling = sampling_default();
        sampling.temperature = (float)(pick % 20) / 10;
        if (what < 70 && d->submitted < MOST - 1) {
            struct engine_message messages[] = {{.role = "system", .text = "be brief"},
                                                {.role = "user", .text = openings[pick % 8]}};
            struct request_params p = {.conversation = 1 + pick % 6,
                                       .sampling = sampling,
                                       .max_tokens = 1 + (int)(pick % 60),
                                       .time_limit = pick % 9 ? 0 : 0.01};
            if (pick & 1) p.raw = openings[pick / 2 % 8];
            else p.messages = messages, p.n_messages = 2;
            engine_submit(e, &p);
            d->submitted++;
        } else if (what < 110) engine_cancel(e, 1 + pick % (uint32_t)(d->submitted + 1));
        else if (what < 140) engine_focus(e, pick % 7);
        else if (what < 160) engine_forget(e, pick % 7, 0);
        else if (what < 200) engine_set_sampling(e, 1 + pick % (uint32_t)(d->submitted + 1), &sampling);
        else usleep(pick);
    }
    return NULL;
}

static void test_random_commands(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.chat_template = TINY_CHATML}, &toy_backend,
                                 (struct engine_params){.kv_tokens = 400, .prefill_chunk = 16});
    struct disturber d = {.bench = b, .random = 42};
    pthread_t thread;
    struct engine_event e;
    assert_int_equal(pthread_create(&thread, NULL, disturb, &d), 0);
    uint64_t last_sequence = 0;
    for (int quiet = 0; quiet < 5;) {
        bool any = engine_wait(b->client, &e, 20);
        if (any) note(b, &e);
        const struct engine_metrics *f = engine_metrics(b->client);
        assert_true(f->sequence >= last_sequence);
        assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
        last_sequence = f->sequence;
        quiet = any ? 0 : quiet + 1;
    }
    pthread_join(thread, NULL);
    b->open_requests += d.submitted; // counted down as they ended
    wait_for_all(b);
    for (int id = 1; id <= d.submitted; id++) assert_true(b->answers[id].state >= REQUEST_FINISHED);
    bench_close(b);
}

// ---- several answers ----

enum { ANSWERS = 3 };

// Each answer has its own text, states and end; the events say whose they are.
static void test_answers_to_one_prompt(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct request_params p = {
        .conversation = 1,
        .raw = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
        .sampling = greedy(),
        .max_tokens = 40,
        .ignore_end = true};
    const char *alone = answer_alone(b, p.raw, 40);
    engine_forget(b->client, 1, 0);
    p.n_answers = ANSWERS;
    uint64_t id = engine_submit(b->client, &p);
    struct engine_event e;
    char text[ANSWERS][4096] = {{0}};
    int pending[ANSWERS] = {0}, ends[ANSWERS] = {0}, n_prompt = 0;
    for (int open = ANSWERS; open;) {
        assert_true(engine_wait(b->client, &e, 60000));
        assert_int_equal(e.request, id);
        assert_in_range(e.answer, 0, ANSWERS - 1);
        assert_false(ends[e.answer]);
        if (e.kind == EVENT_TEXT) strcat(text[e.answer], e.text);
        if (e.kind != EVENT_STATE) continue;
        n_prompt = e.n_prompt;
        pending[e.answer] += e.state == REQUEST_PENDING;
        ends[e.answer] = e.state == REQUEST_FINISHED;
        open -= ends[e.answer];
        if (ends[e.answer]) assert_int_equal(e.n_generated, 40);
    }
    for (int i = 0; i < ANSWERS; i++) {
        assert_int_equal(pending[i], 1);
        assert_string_equal(text[i], alone);
    }
    for (int ms = 0; engine_metrics(b->client)->decode_tokens < 40 * (1 + ANSWERS) && ms < 20000; ms++) usleep(1000);
    assert_true(n_prompt > 2 * KV_PAGE_TOKENS);
    assert_in_range(engine_metrics(b->client)->prefill_tokens, 2 * n_prompt, 2 * n_prompt + ANSWERS - 1);
    bench_close(b);
}

static void test_cancel_ends_all_answers(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 1000;
    struct request_params p = {.conversation = 1,
                               .raw = "Once",
                               .sampling = greedy(),
                               .n_answers = ANSWERS,
                               .max_tokens = 3000,
                               .ignore_end = true};
    uint64_t id = engine_submit(b->client, &p);
    struct engine_event e;
    int texts = 0;
    for (int open = ANSWERS; open;) {
        assert_true(engine_wait(b->client, &e, 60000));
        if (e.kind == EVENT_TEXT && ++texts == 20) engine_cancel(b->client, id);
        open -= e.kind == EVENT_STATE && e.state == REQUEST_CANCELLED;
    }
    assert_true(texts >= 20);
    bench_close(b);
}

// ---- the real backend ----

static void test_real_backend_eight_at_once(void **state) {
    (void)state;
    const struct tiny_model_options models[] = {
        {0}, {.family = TINY_QWEN3, .format = BLOCK_Q8_0}, {.family = TINY_QWEN2, .format = BLOCK_Q4_K, .tied = true}};
    for (size_t i = 0; i < sizeof models / sizeof *models * 2; i++) { // each in halves, then in blocks
        const struct tiny_model_options model = models[i / 2];
        const enum kv_type types[] = {KV_BF16, KV_F16, KV_Q8_0, KV_Q4_0};
        const enum kv_type type = types[i % 2 * 2 + i / 2 % 2];
        struct bench *alone = bench_open(model, &cpu_backend, (struct engine_params){.options.kv_type = type});
        struct bench *together =
            bench_open(model, &cpu_backend,
                       (struct engine_params){.kv_tokens = 256, .prefill_chunk = 16, .options.kv_type = type});
        eight_at_once(alone, together, 80);
        assert_true(engine_metrics(together->client)->preemptions > 0);
        bench_close(together);
        bench_close(alone);
    }
}

static void close_while_it_prepares(struct model_file *file) {
    const struct engine_params params = {.n_threads = 2, .options.quick_start = true};
    const struct request_params request = {
        .conversation = 1, .raw = "Once upon a time", .sampling = greedy(), .max_tokens = 100, .ignore_end = true};
    struct status st = {0};
    for (int i = 0; i < 4; i++) {
        struct engine *e = local_engine_open_on(file, &params, &cpu_backend, &st);
        assert_non_null(e);
        struct engine_client *c = engine_client_open(e, &st);
        if (i % 2) engine_submit(c, &request);
        usleep((useconds_t)i * 1000);
        engine_client_close(c);
        engine_close(e);
    }
}

static void test_answers_during_preparation_are_the_same(void **state) {
    (void)state;
    // Large enough for several steps.
    const struct tiny_model_options model = {.format = BLOCK_Q8_0, .n_layer = 4, .n_embd = 512, .n_ff = 1024};
    struct bench *ready = bench_open(model, &cpu_backend, (struct engine_params){0});
    assert_false(engine_metrics(ready->client)->preparing);
    struct bench *quick = bench_open(model, &cpu_backend, (struct engine_params){.options.quick_start = true});
    eight_at_once(ready, quick, 30);
    for (int ms = 0; engine_metrics(quick->client)->preparing; ms++) {
        if (ms > 60000) fail_msg("the weights are never prepared");
        usleep(1000);
    }
    eight_at_once(ready, quick, 15);
    close_while_it_prepares(quick->file);
    bench_close(quick);
    bench_close(ready);
}

static const char story[] =
    ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball. "
    "She wanted to play with it, but it was too high.";

static void test_trained_model_tells_its_story(void **state) {
    (void)state;
    const char *path = shared_file("models/stories260K-f32.gguf");
    struct status st = {0};
    struct bench *alone = bench_open_file(model_file_open(path, &st), &cpu_backend, (struct engine_params){0});
    assert_memory_equal(answer_alone(alone, "Once upon a time", 100), story, sizeof story - 1);
    struct bench *together =
        bench_open_file(model_file_open(path, &st), &cpu_backend, (struct engine_params){.kv_tokens = 320});
    eight_at_once(alone, together, 100);
    assert_true(engine_metrics(together->client)->preemptions > 0);
    bench_close(together);
    bench_close(alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_at_once),
        cmocka_unit_test(test_random_commands),
        cmocka_unit_test(test_answers_to_one_prompt),
        cmocka_unit_test(test_cancel_ends_all_answers),
        cmocka_unit_test(test_real_backend_eight_at_once),
        cmocka_unit_test(test_answers_during_preparation_are_the_same),
        cmocka_unit_test(test_trained_model_tells_its_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
