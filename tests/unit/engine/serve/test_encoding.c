// Prompts become tokens before the engine's thread: what else goes on while one is encoded, which here takes as long as
// a test holds the gate closed. Linked with --wrap=prompt_source_encode.
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/metrics.h"
#include "engine/serve/local_engine_state.h"
#include "engine/serve/prompt_source.h"
#include "tests/unit/tiny_model.h"
#include "tests/unit/toy_backend.h"

enum { PATIENCE = 60000 };

// ---- a gate in the encoder ----

#define GATED "gated "

static sem_t arrived, gate;

void __real_prompt_source_encode(const struct model_file *m, const struct prompt_source *source,
                                 struct token_list *list, struct prompt_outcome *outcome);
void __wrap_prompt_source_encode(const struct model_file *m, const struct prompt_source *source,
                                 struct token_list *list, struct prompt_outcome *outcome);
void __wrap_prompt_source_encode(const struct model_file *m, const struct prompt_source *source,
                                 struct token_list *list, struct prompt_outcome *outcome) {
    if (source->raw && !strncmp(source->raw, GATED, strlen(GATED))) {
        sem_post(&arrived);
        sem_wait(&gate);
    }
    __real_prompt_source_encode(m, source, list, outcome);
}

// ---- an engine ----

static void *bytes;
static struct model_file *file;
static struct engine *engine;
static struct engine_client *client;

static int setup(void **state) {
    (void)state;
    struct status st = {0};
    size_t size;
    toy_reset();
    sem_init(&arrived, 0, 0), sem_init(&gate, 0, 0);
    bytes = tiny_model_bytes((struct tiny_model_options){.n_context = 4096}, &size);
    file = model_file_open_memory("tiny.gguf", bytes, size, NULL, &st);
    engine = local_engine_open_on(file, &(struct engine_params){.n_threads = 1}, &toy_backend, &st);
    client = engine ? engine_client_open(engine, &st) : NULL;
    return client ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    engine_client_close(client);
    engine_close(engine);
    model_file_close(file);
    free(bytes);
    return 0;
}

static struct request_params params(uint64_t conversation, const char *text, int n) {
    struct request_params p = {
        .conversation = conversation, .raw = text, .sampling = sampling_default(), .max_tokens = n, .ignore_end = true};
    p.sampling.temperature = 0;
    return p;
}

static uint64_t ask(uint64_t conversation, const char *text, int n) {
    struct request_params p = params(conversation, text, n);
    return engine_submit(client, &p);
}

// Submits a request and returns when it is in the encoder, which is held there.
static uint64_t ask_gated(uint64_t conversation, int n) {
    uint64_t id = ask(conversation, GATED "prompt", n);
    sem_wait(&arrived);
    return id;
}

static struct engine_event next_event(void) {
    struct engine_event e;
    if (!engine_wait(client, &e, PATIENCE)) fail_msg("no event for a minute");
    return e;
}

static bool is_end(const struct engine_event *e) { return e->kind == EVENT_STATE && e->state >= REQUEST_FINISHED; }

// The end of this request; its text, if it is wanted. Events of others are passed over.
static struct engine_event end_of(uint64_t request, char text[4096]) {
    struct engine_event e;
    if (text) text[0] = 0;
    do {
        e = next_event();
        if (e.request == request && e.kind == EVENT_TEXT && text) strcat(text, e.text);
    } while (e.request != request || !is_end(&e));
    return e;
}

static void wait_for_queue(int n) {
    for (int ms = 0; engine_metrics(client)->queue != n; ms++) {
        if (ms > PATIENCE) fail_msg("%d requests wait", engine_metrics(client)->queue);
        usleep(1000);
    }
}

// These become pending one after the other.
static void assert_order(const uint64_t *requests, int n) {
    for (int i = 0; i < n;) {
        struct engine_event e = next_event();
        if (e.kind == EVENT_STATE && e.state == REQUEST_PENDING) assert_int_equal(e.request, requests[i++]);
    }
}

// ---- tests ----

static void test_others_go_on_while_a_prompt_is_encoded(void **state) {
    (void)state;
    toy.step_delay = 500;
    uint64_t running = ask(1, "Once upon", 200);
    while (next_event().kind != EVENT_TEXT) continue;
    uint64_t gated = ask_gated(2, 5);
    assert_int_equal(end_of(running, NULL).n_generated, 200);
    wait_for_queue(1); // it is counted among those that wait
    sem_post(&gate);
    assert_int_equal(end_of(gated, NULL).n_generated, 5);
    wait_for_queue(0);
}

// One of two answers is changed, then cancelled, before there are any.
static void test_one_answer_is_cancelled_before_it_is_scheduled(void **state) {
    (void)state;
    struct request_params p = params(1, GATED "prompt", 5);
    p.n_answers = 2;
    uint64_t gated = engine_submit(client, &p);
    sem_wait(&arrived);
    engine_set_answer_sampling(client, gated, 0, &p.sampling);
    engine_set_answer_sampling(client, gated, 7, &p.sampling); // there is none
    engine_cancel_answer(client, gated, 1);
    engine_cancel_answer(client, gated, -5);
    sem_post(&gate);
    enum request_state ends[2] = {REQUEST_PENDING, REQUEST_PENDING};
    for (int i = 0; i < 2; i++) {
        struct engine_event e = end_of(gated, NULL);
        ends[e.answer] = e.state;
    }
    assert_int_equal(ends[0], REQUEST_FINISHED);
    assert_int_equal(ends[1], REQUEST_CANCELLED);
}

static void test_it_is_cancelled_at_once(void **state) {
    (void)state;
    uint64_t gated = ask_gated(1, 5), behind = ask(1, "Once upon", 5);
    engine_cancel(client, gated);
    struct engine_event e = next_event();
    assert_int_equal(e.request, gated);
    assert_int_equal(e.state, REQUEST_CANCELLED);
    assert_int_equal(e.reason, FINISH_CANCELLED);
    engine_cancel(client, gated); // it is gone
    sem_post(&gate);
    e = end_of(behind, NULL);
    assert_int_equal(e.state, REQUEST_FINISHED);
    assert_false(engine_poll(client, &e));
}

// Nobody wants it any more when it is encoded, though its conversation is in focus.
static void test_once_cancelled_it_ends_no_step(void **state) {
    (void)state;
    char prompt[2000];
    memset(prompt, 'x', sizeof prompt - 1);
    prompt[sizeof prompt - 1] = 0;
    toy.patience = 100; // in each of the steps that it takes
    engine_focus(client, 2);
    uint64_t running = ask(1, prompt, 1), gated = ask_gated(2, 5);
    engine_cancel(client, gated);
    assert_int_equal(end_of(gated, NULL).state, REQUEST_CANCELLED);
    for (int runs = toy.runs; toy.runs == runs;) usleep(1000); // the next step has begun
    sem_post(&gate);
    assert_int_equal(end_of(running, NULL).state, REQUEST_FINISHED);
    assert_int_equal(toy.given_up, 0);
}

static void test_all_answers_of_one_are_cancelled(void **state) {
    (void)state;
    struct request_params p = params(1, GATED "prompt", 5);
    p.n_answers = 3;
    uint64_t gated = engine_submit(client, &p);
    sem_wait(&arrived);
    engine_cancel(client, gated);
    for (int i = 0; i < 3; i++) {
        struct engine_event e = next_event();
        assert_int_equal(e.answer, i);
        assert_int_equal(e.state, REQUEST_CANCELLED);
    }
    sem_post(&gate);
}

// Those that come later wait for it, ids too, although they need no encoding.
static void test_the_order_of_submission_stays(void **state) {
    (void)state;
    static const int32_t ids[] = {1, 5, 9};
    uint64_t first = ask_gated(1, 5), second = ask(2, "Once upon", 5);
    struct request_params p = {
        .conversation = 3, .ids = ids, .n_ids = 3, .sampling = sampling_default(), .max_tokens = 5, .ignore_end = true};
    uint64_t third = engine_submit(client, &p);
    wait_for_queue(3);
    assert_int_equal(toy.runs, 0);
    sem_post(&gate);
    assert_order((const uint64_t[]){first, second, third}, 3);
    end_of(third, NULL);
}

static void test_a_persons_prompt_comes_before_programs(void **state) {
    (void)state;
    struct request_params p = params(1, "Once upon", 5);
    p.background = true;
    uint64_t first = ask_gated(1, 5), program = engine_submit(client, &p), person = ask(2, "Once upon", 5);
    wait_for_queue(3);
    sem_post(&gate);
    assert_order((const uint64_t[]){first, person, program}, 3);
    end_of(program, NULL);
}

static void test_sampling_can_be_changed_meanwhile(void **state) {
    (void)state;
    char greedy[4096], changed[4096];
    uint64_t plain = ask_gated(1, 40);
    sem_post(&gate);
    end_of(plain, greedy);
    struct request_params p = params(2, GATED "prompt", 40);
    struct sampling calm = p.sampling;
    p.sampling.temperature = 5;
    p.sampling.seed = 7;
    uint64_t wild = engine_submit(client, &p);
    sem_wait(&arrived);
    engine_set_sampling(client, wild, &calm);
    wait_for_queue(1);
    sem_post(&gate);
    end_of(wild, changed);
    assert_string_equal(changed, greedy);
}

static void test_what_is_forgotten_meanwhile_is_not_kept(void **state) {
    (void)state;
    uint64_t gated = ask_gated(1, 100);
    engine_forget(client, 1, 0);
    sem_post(&gate);
    assert_int_equal(end_of(gated, NULL).n_generated, 100);
    for (int ms = 0; engine_metrics(client)->decode_tokens < 100 || engine_metrics(client)->pages_used; ms++) {
        if (ms > PATIENCE) fail_msg("the engine never rests");
        usleep(1000);
    }
    assert_int_equal(engine_metrics(client)->pages_kept, 0);
}

static void test_logits_wait_for_nobody(void **state) {
    (void)state;
    struct status st = {0};
    const int32_t id = 1;
    float *logits = calloc((size_t)model_file_info(file)->n_vocab, sizeof *logits);
    uint64_t gated = ask_gated(1, 5);
    assert_false(engine_logits(engine, &id, 1, logits, &st));
    assert_string_equal(st.text, "1 requests are running");
    sem_post(&gate);
    end_of(gated, NULL);
    assert_true(engine_logits(engine, &id, 1, logits, &st));
    free(logits);
}

static void test_a_client_goes_meanwhile(void **state) {
    (void)state;
    struct status st = {0};
    struct engine_client *other = engine_client_open(engine, &st);
    struct request_params p = params(1, GATED "prompt", 5);
    engine_submit(other, &p);
    engine_submit(other, &p);
    sem_wait(&arrived);
    wait_for_queue(2);
    engine_client_close(other);
    wait_for_queue(0);
    uint64_t behind = ask(1, "Once upon", 5);
    sem_post(&gate);
    assert_int_equal(end_of(behind, NULL).n_generated, 5);
    assert_int_equal(sem_trywait(&arrived), -1); // the other's second is not encoded any more
}

static void test_the_engine_closes_meanwhile(void **state) {
    (void)state;
    ask_gated(1, 5);
    for (int i = 0; i < 10; i++) ask(1, "Once upon", 5);
    sem_post(&gate);
}

// On the caller's thread, without the encoder: that one may be busy.
static void test_the_tokens_of_a_prompt_are_told_at_once(void **state) {
    (void)state;
    struct prompt_tokens told;
    const struct request_params p = {.conversation = 2, .raw = "hello \xf0\x9f\xa7\x84</s>"};
    ask_gated(1, 1);
    assert_true(engine_prompt(client, &p, &told));
    sem_post(&gate);
    assert_true(told.n > 3);
    assert_true(told.tokens[0].special);
    assert_string_equal(told.tokens[0].text, "<s>");
    assert_string_equal(told.tokens[told.n - 1].text, "</s>");
    assert_true(told.tokens[told.n - 1].special);
    size_t count;
    int32_t *ids = model_file_tokenize(file, p.raw, strlen(p.raw), true, &count);
    assert_int_equal(told.n, count + 1);
    char text[256] = "";
    for (int i = 1; i < told.n; i++) {
        assert_int_equal(told.tokens[i].id, ids[i - 1]);
        if (i < told.n - 1) assert_false(told.tokens[i].special);
        strcat(text, told.tokens[i].text);
    }
    assert_string_equal(text, " hello \\xf0\\x9f\\xa7\\x84</s>"); // by bytes
    free(told.tokens), free(ids);
}

#define ENCODING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        ENCODING_TEST(test_others_go_on_while_a_prompt_is_encoded),
        ENCODING_TEST(test_one_answer_is_cancelled_before_it_is_scheduled),
        ENCODING_TEST(test_it_is_cancelled_at_once),
        ENCODING_TEST(test_once_cancelled_it_ends_no_step),
        ENCODING_TEST(test_all_answers_of_one_are_cancelled),
        ENCODING_TEST(test_the_order_of_submission_stays),
        ENCODING_TEST(test_a_persons_prompt_comes_before_programs),
        ENCODING_TEST(test_sampling_can_be_changed_meanwhile),
        ENCODING_TEST(test_what_is_forgotten_meanwhile_is_not_kept),
        ENCODING_TEST(test_logits_wait_for_nobody),
        ENCODING_TEST(test_the_tokens_of_a_prompt_are_told_at_once),
        ENCODING_TEST(test_a_client_goes_meanwhile),
        ENCODING_TEST(test_the_engine_closes_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
