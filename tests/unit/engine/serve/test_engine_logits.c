// The engine from outside: logits of every position, asked for from several threads.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/engine_fixture.h"

static void test_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    int n_vocab = model_file_info(b->file)->n_vocab;
    const int32_t ids[] = {1, 5, 9, 5};
    float *logits = xmalloc(2 * 4 * (size_t)n_vocab * sizeof *logits), *expected = logits + 4 * n_vocab;
    struct status st = {0};
    assert_true(engine_logits(b->engine, ids, 4, logits, &st));
    for (int i = 0; i < 4; i++) toy_logits(ids, i + 1, n_vocab, expected + i * n_vocab);
    assert_memory_equal(logits, expected, 4 * (size_t)n_vocab * sizeof *logits);
    assert_false(engine_logits(b->engine, ids, 0, logits, &st));
    free(logits);
    bench_close(b);
}

// A caller of engine_logits on a thread of its own.
enum { LONG_TEXT = 400 };

struct logits_caller {
    struct engine *engine;
    pthread_t thread;
    atomic_int id; // of the thread, once it runs
    int32_t ids[LONG_TEXT];
    float *logits;
    bool ok;
    struct status st;
};

static void *call_logits(void *argument) {
    struct logits_caller *c = argument;
    c->id = gettid();
    c->ok = engine_logits(c->engine, c->ids, LONG_TEXT, c->logits, &c->st);
    return NULL;
}

static void *call_close(void *argument) {
    struct logits_caller *c = argument;
    c->id = gettid();
    engine_close(c->engine);
    return NULL;
}

static struct logits_caller *caller_start(struct bench *b, void *(*call)(void *)) {
    struct logits_caller *c = xcalloc(1, sizeof *c);
    c->engine = b->engine;
    for (int i = 0; i < LONG_TEXT; i++) c->ids[i] = i % 7;
    c->logits = xcalloc(LONG_TEXT * (size_t)model_file_info(b->file)->n_vocab, sizeof *c->logits);
    if (pthread_create(&c->thread, NULL, call, c)) fail_msg("no thread");
    return c;
}

static void caller_free(struct logits_caller *c) {
    free(c->logits);
    free(c);
}

static void caller_join(struct logits_caller *c) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    if (pthread_timedjoin_np(c->thread, NULL, &until)) fail_msg("a caller waits for ever");
}

// Until it has pushed its command and waits for what comes of that.
static void caller_settle(const struct logits_caller *c) {
    for (char state = 0; state != 'S';) {
        char path[64];
        usleep(1000);
        if (!c->id) continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", c->id);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%*d %*[^)]) %c", &state), 1);
        fclose(f);
    }
}

static void wait_for_runs(int n) {
    while (toy.runs < n) usleep(1000);
}

static void assert_logits_right(const struct logits_caller *c, int n_vocab) {
    float *expected = xmalloc((size_t)n_vocab * sizeof *expected);
    if (!c->ok) fail_msg("%s", c->st.text);
    for (int i = 0; i < LONG_TEXT; i++) {
        toy_logits(c->ids, i + 1, n_vocab, expected);
        assert_memory_equal(c->logits + (size_t)i * (size_t)n_vocab, expected, (size_t)n_vocab * sizeof *expected);
    }
    free(expected);
}

static void bench_free_closed(struct bench *b) {
    b->engine = NULL;
    bench_close(b);
}

// Whoever waits for logits is told that the engine closes: in the middle of them, in the queue behind them, and with a
// command that came after the one to close.
static void test_closing_wakes_who_waits_for_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct logits_caller *callers[4];
    toy.allowed = 3;
    callers[0] = caller_start(b, call_logits);
    wait_for_runs(4); // waits in its fourth pass
    callers[1] = caller_start(b, call_logits);
    caller_settle(callers[1]);
    engine_client_close(b->client);
    b->client = NULL;
    callers[2] = caller_start(b, call_close);
    caller_settle(callers[2]);
    callers[3] = caller_start(b, call_logits);
    caller_settle(callers[3]);
    toy.patience = 10000; // of the fourth pass, which is given up
    toy.allowed = -1;
    for (int i = 0; i < 4; i++) caller_join(callers[i]);
    for (int i = 0; i < 4; i++) {
        if (i != 2) assert_false(callers[i]->ok);
        if (i != 2) assert_int_equal(callers[i]->st.code, STATUS_CANCELLED);
        caller_free(callers[i]);
    }
    assert_int_equal(toy.runs, 4);
    assert_int_equal(toy.given_up, 1);
    bench_free_closed(b);
}

static void test_commands_are_obeyed_between_passes_of_logits(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    const int n_vocab = model_file_info(b->file)->n_vocab;
    toy.allowed = 1;
    struct logits_caller *first = caller_start(b, call_logits);
    wait_for_runs(2);
    struct logits_caller *second = caller_start(b, call_logits);
    caller_settle(second);
    uint64_t unwanted = ask_raw(b, 1, "Once upon", 20), wanted = ask_raw(b, 2, "The", 8);
    engine_cancel(b->client, unwanted);
    struct logits_caller *refused = caller_start(b, call_logits); // a request is there before it
    caller_settle(refused);
    toy.allowed = 2; // the third pass waits
    struct engine_event e;
    while (b->open_requests > 1 && engine_wait(b->client, &e, 10000)) note(b, &e);
    const int still_open = b->open_requests;
    toy.allowed = -1;
    caller_join(first), caller_join(second), caller_join(refused);
    wait_for_all(b);
    assert_int_equal(still_open, 1);
    assert_int_equal(b->answers[unwanted].state, REQUEST_CANCELLED);
    assert_logits_right(first, n_vocab);
    assert_logits_right(second, n_vocab);
    assert_false(refused->ok);
    assert_string_equal(refused->st.text, "1 requests are running");
    assert_int_equal(b->answers[wanted].state, REQUEST_FINISHED);
    assert_string_equal(b->answers[wanted].text, answer_alone(b, "The", 8));
    caller_free(first), caller_free(second), caller_free(refused);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_closing_wakes_who_waits_for_logits),
        cmocka_unit_test(test_commands_are_obeyed_between_passes_of_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
