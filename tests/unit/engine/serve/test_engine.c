// The engine from outside: text in, events and metrics out, over the toy backend.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/unit/engine_fixture.h"

static void test_streams_the_text_of_the_tokens(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    uint64_t id = ask_raw(b, 1, "one two", 200);
    wait_for_all(b);
    struct answer_text *a = &b->answers[id];
    assert_int_equal(a->reason, FINISH_LENGTH);
    assert_int_equal(a->n_generated, 200);
    assert_int_equal(a->n_tokens, 200); // each token once, long or split ones too
    // The same by hand: ids, the toy's continuation, bytes, valid UTF-8.
    int n_vocab = model_file_info(b->file)->n_vocab;
    size_t count, size;
    int32_t *ids = model_file_tokenize(b->file, "one two", 7, true, &count), with_bos[64], next[200];
    with_bos[0] = tokenizer_bos(b->file->tokenizer);
    memcpy(with_bos + 1, ids, count * sizeof *ids);
    toy_continue(with_bos, (int)count + 1, n_vocab, next, 200);
    assert_int_equal(a->n_prompt, count + 1);
    char expected[8192], *at = expected;
    struct utf8_stream stream = {0};
    for (int i = 0; i < 200; i++) {
        struct span piece = tokenizer_piece(b->file->tokenizer, next[i], false);
        if (piece.size) at += utf8_stream_push(&stream, piece.data, piece.size, at);
    }
    at += utf8_stream_finish(&stream, at);
    size = (size_t)(at - expected);
    assert_int_equal(a->size, size);
    assert_memory_equal(a->text, expected, size);
    free(ids);
    bench_close(b);
}

static void test_reports_alternatives(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    uint64_t started = clock_ns(), last = 0;
    ask_raw(b, 1, "x", 5);
    struct engine_event e;
    int texts = 0;
    while (b->open_requests) {
        assert_true(engine_wait(b->client, &e, 60000));
        note(b, &e);
        if (e.kind != EVENT_TEXT || e.token < 0) continue;
        texts++;
        assert_int_equal(e.n_alternatives, SAMPLING_TOP);
        assert_true(e.at >= started && e.at <= clock_ns() && e.at >= last);
        last = e.at;
        assert_int_equal(e.alternatives[0].id, e.token); // greedy
        assert_true(e.probability == e.alternatives[0].probability);
        for (int i = 1; i < SAMPLING_TOP; i++)
            assert_true(e.alternatives[i].probability <= e.alternatives[i - 1].probability);
        assert_true(e.entropy > 0);
    }
    assert_int_equal(texts, 5);
    bench_close(b);
}

static void test_chat_template_and_end_token(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){.pre = "gpt-2", .chat_template = TINY_CHATML},
                                 &toy_backend, (struct engine_params){0});
    const struct tokenizer *t = b->file->tokenizer;
    int32_t end = tokenizer_find(t, "<|im_end|>", 10);
    struct engine_message messages[] = {{.role = "user", .text = "say <|im_end|> please"}};
    struct request_params p = {
        .conversation = 1, .messages = messages, .n_messages = 1, .sampling = greedy(), .max_tokens = 10};
    toy.likely = end;
    uint64_t id = engine_submit(b->client, &p);
    b->open_requests++;
    wait_for_all(b);
    assert_int_equal(b->answers[id].reason, FINISH_END);
    assert_int_equal(b->answers[id].n_generated, 0);
    // What a user types stays text: its ids alone hold no mark, and the prompt is as long as marks and text together.
    struct token_list list = {0};
    tokenizer_encode(t, "say <|im_end|> please", 21, false, &list);
    for (size_t i = 0; i < list.count; i++) assert_int_not_equal(list.ids[i], end);
    tokenizer_encode(t, "<|im_start|>user\n", 17, true, &list);
    tokenizer_encode(t, "<|im_end|>\n<|im_start|>assistant\n", 33, true, &list);
    assert_int_equal(b->answers[id].n_prompt, list.count);
    free(list.ids);
    bench_close(b);
}

// An answer ends where the first of several texts begins, whatever tokens those are made of.
static void test_stop_texts(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    const char *whole = answer_alone(b, "one two", 200);
    size_t size = strlen(whole), at = size / 2;
    while ((whole[at] & 0xc0) == 0x80) at++;
    char *stop = xstrndup(whole + at, 9 - utf8_incomplete(whole + at, 9));
    at = (size_t)(strstr(whole, stop) - whole); // its first place
    const char *const stops[] = {"nowhere to be found", stop};
    struct request_params p = {.conversation = 1,
                               .raw = "one two",
                               .sampling = greedy(),
                               .max_tokens = 200,
                               .ignore_end = true,
                               .stops = stops,
                               .n_stops = 2};
    uint64_t id = engine_submit(b->client, &p);
    b->open_requests++;
    wait_for_all(b);
    struct answer_text *a = &b->answers[id];
    assert_int_equal(a->reason, FINISH_END);
    assert_int_equal(a->stop, 2);
    assert_int_equal(a->size, at);
    assert_memory_equal(a->text, whole, at);
    assert_true(a->n_generated < 200);
    free(stop);
    bench_close(b);
}

static void test_refused_conversation_is_told(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.pre = "gpt-2",
                                               .chat_template = "{{ raise_exception('too many') if messages|"
                                                                "length > 3 }}<|im_start|>"},
                   &toy_backend, (struct engine_params){0});
    struct engine_message messages[4];
    for (int i = 0; i < 4; i++)
        messages[i] = (struct engine_message){.role = i % 2 ? "assistant" : "user", .text = "x"};
    for (int n = 3; n <= 4; n++) {
        struct request_params p = {
            .conversation = 1, .messages = messages, .n_messages = n, .sampling = greedy(), .max_tokens = 3};
        engine_submit(b->client, &p);
        b->open_requests++;
        char notice[512] = "";
        struct engine_event e;
        while (b->open_requests) {
            assert_true(engine_wait(b->client, &e, 60000));
            note(b, &e);
            if (e.kind == EVENT_NOTICE) snprintf(notice, sizeof notice, "%s", e.text);
        }
        assert_string_equal(notice,
                            n == 3 ? ""
                                   : "the model's own chat template refuses this conversation (too many); confab's "
                                     "for chatml is used instead");
    }
    bench_close(b);
}

static void test_refusals(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){.kv_tokens = 64});
    char text[400];
    memset(text, 'q', sizeof text);
    text[sizeof text - 1] = 0;
    int32_t wrong[] = {3, 1 << 20};
    uint64_t large = ask_raw(b, 1, text, 5);
    struct request_params ids = {.conversation = 1, .ids = wrong, .n_ids = 2, .sampling = greedy()};
    uint64_t out_of_range = engine_submit(b->client, &ids);
    b->open_requests += 1;
    wait_for_all(b);
    assert_int_equal(b->answers[large].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[large].message, "a conversation may have 64"));
    assert_int_equal(b->answers[out_of_range].state, REQUEST_FAILED);
    assert_non_null(strstr(b->answers[out_of_range].message, "token 1 of the prompt is 1048576"));
    struct status st = {0};
    assert_null(local_engine_open_on(b->file, &(struct engine_params){.kv_tokens = 1 << 30}, &toy_backend, &st));
    assert_int_equal(st.code, STATUS_LIMIT);
    bench_close(b);
}

static void test_metrics_after_work(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 1000;
    for (int i = 0; i < 4; i++) ask_raw(b, (uint64_t)i + 1, openings[i], 100);
    float fastest = 0;
    int most_rows = 0;
    while (b->open_requests) {
        struct engine_event e;
        assert_true(engine_wait(b->client, &e, 60000));
        note(b, &e);
        const struct engine_metrics *f = engine_metrics(b->client);
        if (f->decode_now > fastest) fastest = f->decode_now;
        if (f->batch_decode_rows > most_rows) most_rows = f->batch_decode_rows;
        assert_int_equal(f->pages_used + f->pages_kept + f->pages_free, f->n_pages);
    }
    assert_true(fastest > 0);
    assert_true(most_rows > 0 && most_rows <= 4);
    const struct engine_metrics *f = engine_metrics(b->client);
    for (int i = 0; f->decode_now > 0 && i < 600; i++) { // the last snapshot comes when the window has passed
        usleep(100 * 1000);
        f = engine_metrics(b->client);
    }
    assert_string_equal(f->backend, "toy");
    assert_true(f->decode_now == 0 && f->prefill_now == 0);
    assert_true(f->stages[STAGE_ATTEND].bytes > 0 && f->decode.bytes > 0); // the last second of work is kept
    assert_true(f->decode_peak >= fastest);
    assert_int_equal(f->decode_tokens, 400);
    assert_int_equal(f->first_token.count, 4);
    assert_true(f->next_token.p50 > 0 && f->next_token.p50 <= f->next_token.p99);
    assert_int_equal(f->running + f->queue, 0);
    assert_int_equal(f->pages_used, 0);
    assert_true(f->pages_kept > 0);
    // From now on nothing moves, and nothing is computed.
    uint64_t sequence = f->sequence;
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(300 * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_int_equal(engine_metrics(b->client)->sequence, sequence);
    assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 150000000L);
    bench_close(b);
}

static bool prepare_forever(struct backend *b) {
    (void)b;
    usleep(1000);
    return true;
}

// Whoever cancels an answer while weights are prepared sees that nothing is computed any more.
static void test_metrics_move_during_preparation(void **state) {
    (void)state;
    struct backend_ops preparing = toy_backend;
    preparing.repack = prepare_forever;
    struct bench *b = bench_open((struct tiny_model_options){.n_context = 4096}, &preparing,
                                 (struct engine_params){.options.quick_start = true});
    toy.step_delay = 1000;
    uint64_t id = ask_raw(b, 1, "Once", 3000);
    while (!(engine_metrics(b->client)->decode_now > 0)) usleep(1000);
    engine_cancel(b->client, id);
    wait_for_all(b);
    for (int ms = 0; engine_metrics(b->client)->decode_now > 0; ms++) {
        if (ms > 20000) fail_msg("the metrics stand still");
        usleep(1000);
    }
    assert_true(engine_metrics(b->client)->preparing);
    bench_close(b);
}

static void test_event_fd_and_cancel(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.step_delay = 2000;
    struct pollfd fd = {.fd = engine_event_fd(b->client), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 0), 0);
    uint64_t id = ask_raw(b, 1, "Once", 3000);
    while (b->answers[id].n_tokens < 5) {
        struct engine_event e;
        assert_int_equal(poll(&fd, 1, 60000), 1);
        while (engine_poll(b->client, &e)) note(b, &e);
    }
    engine_cancel(b->client, id);
    wait_for_all(b);
    assert_int_equal(b->answers[id].state, REQUEST_CANCELLED);
    assert_true(b->answers[id].n_generated < 3000);
    bench_close(b);
}

// A long step computes a prompt; each of these commands ends it at once, though the backend would wait a minute. Each
// waits until the step that it ends has begun: between two steps a command is obeyed without ending one.
static void test_urgent_commands_end_a_step(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    toy.patience = 60000;
    uint64_t first = ask_raw(b, 1, "Once", 5);
    while (!toy.runs) usleep(1000);
    engine_focus(b->client, 2);
    uint64_t second = ask_raw(b, 2, "Upon", 5); // is looked at: goes first
    while (toy.runs < 2) usleep(1000);
    engine_cancel(b->client, second);
    while (toy.runs < 3) usleep(1000);
    engine_cancel(b->client, first);
    wait_for_all(b);
    assert_int_equal(toy.given_up, 3);
    assert_int_equal(b->answers[first].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[second].state, REQUEST_CANCELLED);
    const int runs = toy.runs;
    ask_raw(b, 2, "More", 5);
    while (toy.runs == runs) usleep(1000);
    bench_close(b); // likewise
    assert_int_equal(toy.given_up, 4);
}

// A step for other programs is given up when a person asks, also one that brings their next tokens; not for each other,
// nor when one of them goes.
static void test_a_person_ends_a_step_of_programs(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    struct request_params p = {.conversation = 1,
                               .raw = "Once",
                               .sampling = greedy(),
                               .max_tokens = 3000,
                               .ignore_end = true,
                               .background = true};
    b->open_requests = 3;
    const uint64_t first = engine_submit(b->client, &p);
    while (b->answers[first].n_tokens < 3) {
        struct engine_event e;
        assert_true(engine_wait(b->client, &e, 60000));
        note(b, &e);
    }
    toy.patience = 60000;
    usleep(20000); // a step has begun since
    p.raw = "Upon";
    const uint64_t second = engine_submit(b->client, &p);
    engine_cancel(b->client, second);
    engine_cancel(b->client, first);
    usleep(20000);
    assert_int_equal(toy.given_up, 0);
    toy.patience = 0; // of the next steps
    p.background = false;
    p.max_tokens = 5;
    engine_submit(b->client, &p);
    wait_for_all(b);
    assert_int_equal(toy.given_up, 1);
    assert_int_equal(b->answers[first].state, REQUEST_CANCELLED);
    assert_int_equal(b->answers[second].state, REQUEST_CANCELLED);
    bench_close(b);
}

// The prompt of several answers is computed for the others as long as one of them is wanted.
static void test_one_of_several_cancelled_ends_no_step(void **state) {
    (void)state;
    struct bench *b = bench_open((struct tiny_model_options){0}, &toy_backend, (struct engine_params){0});
    struct request_params p = {
        .conversation = 1, .raw = "Once", .sampling = greedy(), .max_tokens = 5, .ignore_end = true, .n_answers = 3};
    toy.patience = 60000;
    b->open_requests = 3;
    const uint64_t id = engine_submit(b->client, &p);
    while (!toy.runs) usleep(1000);
    engine_cancel_answer(b->client, id, 0);
    engine_cancel_answer(b->client, id, 2);
    usleep(20000);
    assert_int_equal(toy.given_up, 0);
    engine_cancel_answer(b->client, id, 1);
    wait_for_all(b);
    assert_int_equal(toy.given_up, 1);
    bench_close(b);
}

static void test_close_while_running(void **state) {
    (void)state;
    struct bench *b =
        bench_open((struct tiny_model_options){.n_context = 4096}, &toy_backend, (struct engine_params){0});
    for (int i = 0; i < 20; i++) ask_raw(b, 1, openings[i % 8], 3000);
    usleep(20000);
    ask_raw(b, 1, "late", 10); // may be discarded unread
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_the_text_of_the_tokens),
        cmocka_unit_test(test_reports_alternatives),
        cmocka_unit_test(test_chat_template_and_end_token),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_refused_conversation_is_told),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_metrics_after_work),
        cmocka_unit_test(test_metrics_move_during_preparation),
        cmocka_unit_test(test_event_fd_and_cancel),
        cmocka_unit_test(test_urgent_commands_end_a_step),
        cmocka_unit_test(test_a_person_ends_a_step_of_programs),
        cmocka_unit_test(test_one_of_several_cancelled_ends_no_step),
        cmocka_unit_test(test_close_while_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
