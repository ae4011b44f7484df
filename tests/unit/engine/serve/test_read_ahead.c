// Messages that are read ahead while they are written: what the prompt that follows finds of them, and that they are in
// nobody's way.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "app/guide/guide.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/local_engine.h"
#include "engine/serve/prompt_source.h"
#include "tests/unit/scheduler_bench.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/xorshift.h"

enum { START = 1000000000, RUN = 1000000 }; // nanoseconds

static void read_ahead(struct bench *b, uint64_t id, int n_prompt, int common) {
    struct scheduler_request q = bench_ask(id, n_prompt, common, 0);
    q.conversation = 1;
    q.read_ahead = READ_AHEAD_WORDS;
    scheduler_submit(b->scheduler, &q);
}

static const struct engine_metrics *metrics(const struct bench *b) {
    static struct engine_metrics f;
    scheduler_metrics(b->scheduler, &f);
    return &f;
}

static void test_the_prompt_finds_all_that_was_read_ahead(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    read_ahead(b, 1, 100, 100);
    bench_run(b);
    assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[1].n, 0);
    bench_submit(b, 2, 110, 100, 20);
    bench_run(b);
    assert_int_equal(b->answers[2].n_reused, 100);
    bench_assert_text_alone(b, 2, 110, 100, 20);
    // More of it, then the same again, which takes no step.
    read_ahead(b, 3, 130, 130);
    bench_run(b);
    read_ahead(b, 4, 130, 130);
    assert_int_equal(b->answers[4].state, REQUEST_FINISHED);
    assert_true(scheduler_idle(b->scheduler));
    bench_close(b);
}

static void test_what_is_cached_can_be_found_out(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    bench_submit(b, 1, 70, 70, 1);
    bench_run(b);
    struct scheduler_request q = bench_ask(2, 110, 70, 0);
    q.read_ahead = READ_AHEAD_FIND;
    scheduler_submit(b->scheduler, &q);
    assert_int_equal(b->answers[2].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[2].n_prompt, 110);
    assert_int_equal(b->answers[2].n_reused, 70);
    assert_true(scheduler_idle(b->scheduler));
    bench_close(b);
}

// By a clock that stands still between steps, of RUN nanoseconds and so many for each row.
static struct bench *open_timed(int row_ns) {
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 16});
    clock_freeze(START);
    toy.run_ns = RUN;
    toy.row_ns = row_ns;
    return b;
}

static void close_timed(struct bench *b) {
    clock_freeze(0);
    bench_close(b);
}

static void test_nobody_waits_for_what_is_read_ahead(void **state) {
    (void)state;
    struct bench *b = open_timed(RUN); // a row takes as long as a step
    read_ahead(b, 1, 100, 0);
    for (int i = 0; i < 3; i++) scheduler_step(b->scheduler);
    assert_int_equal(b->answers[1].state, REQUEST_PREFILLING);
    assert_int_equal(metrics(b)->running, 0); // nor is it counted
    assert_int_equal(metrics(b)->n_requests, 0);
    assert_true(scheduler_overtakes(b->scheduler, 2, false, 0));
    assert_false(scheduler_overtakes(b->scheduler, 1, false, 0)); // its own prompt takes the step's rows over
    bench_submit(b, 2, 20, 0, 30);
    assert_int_equal(b->answers[1].state, REQUEST_PENDING);
    assert_int_equal(metrics(b)->queue, 1);
    int rows = 0;
    for (int i = 0; i < 20; i++) {
        scheduler_step(b->scheduler);
        bench_check(b);
        rows += metrics(b)->batch_rows;
        assert_int_equal(metrics(b)->running, 1);
    }
    assert_in_range(rows, 16 + 4 + 18, 16 + 4 + 18 + 1); // it was tried once
    bench_run(b);
    assert_true(b->answers[2].ended < b->answers[1].ended);
    assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
    assert_int_equal(b->metrics.preemptions, 0);
    bench_assert_text_alone(b, 2, 20, 0, 30);
    close_timed(b);
}

// Seconds that an answer takes in whose midst something is read ahead, or nothing; *ahead: whether that ended before
// it.
static double seconds_beside(int row_ns, int n_ahead, bool *ahead) {
    struct bench *b = open_timed(row_ns);
    bench_submit(b, 2, 20, 0, 400);
    while (b->answers[2].n < 10) scheduler_step(b->scheduler);
    if (n_ahead) read_ahead(b, 1, n_ahead, 0);
    while (b->answers[2].state < REQUEST_FINISHED) {
        scheduler_step(b->scheduler);
        bench_check(b);
    }
    *ahead = b->answers[1].state == REQUEST_FINISHED;
    const double seconds = clock_seconds() - START * 1e-9;
    bench_run(b);
    bench_assert_text_alone(b, 2, 20, 0, 400);
    if (n_ahead) { // what was read so is what the prompt would have read
        struct scheduler_request again = bench_ask(1, n_ahead, 0, 20);
        again.id = 3;
        scheduler_submit(b->scheduler, &again);
        bench_run(b);
        assert_int_equal(b->answers[3].n_reused, n_ahead - 1);
        bench_assert_answer(b, 3, 1, n_ahead, 0, 20);
    }
    close_timed(b);
    return seconds;
}

static void test_beside_answers_it_has_rows_to_spare(void **state) {
    (void)state;
    static const int row_costs[] = {0, RUN / 1000, RUN / 20, RUN};
    for (size_t i = 0; i < sizeof row_costs / sizeof *row_costs; i++) {
        bool ahead;
        const double alone = seconds_beside(row_costs[i], 0, &ahead),
                     beside = seconds_beside(row_costs[i], 300, &ahead);
        assert_int_equal(ahead, i < 2); // where they are free
        if (beside > 1.02 * alone) fail_msg("rows of %d ns: %.3f times as long", row_costs[i], beside / alone);
    }
}

// Where pages or places are short it gives its own up, to whoever has waited longest.
static void test_it_takes_no_place_from_anybody(void **state) {
    (void)state;
    for (int places = 0; places < 2; places++) {
        struct bench *b = bench_open((struct bench_options){.n_pages = places ? 64 : 8, .places = places ? 2 : 0});
        clock_freeze(START);
        toy.run_ns = RUN;
        bench_submit(b, 2, 60, 0, 120);
        while (b->answers[2].n < 10) scheduler_step(b->scheduler);
        read_ahead(b, 1, 120, 0);
        for (int i = 0; i < 4; i++) scheduler_step(b->scheduler);
        assert_int_equal(b->answers[1].state, REQUEST_PREFILLING);
        bench_submit(b, 3, 60, 0, 40);
        assert_int_equal(b->answers[1].state, REQUEST_PENDING);
        bench_run(b);
        assert_int_equal(b->answers[2].times_pending, 1);
        assert_int_equal(b->answers[3].times_pending, 1);
        assert_int_equal(b->metrics.preemptions, 0);
        assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
        bench_assert_text_alone(b, 2, 60, 0, 120);
        bench_assert_text_alone(b, 3, 60, 0, 40);
        close_timed(b);
    }
}

static void test_what_is_read_ahead_is_given_up_without_a_trace(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 16});
    read_ahead(b, 1, 100, 100);
    for (int i = 0; i < 3; i++) scheduler_step(b->scheduler);
    scheduler_cancel(b->scheduler, 1);
    assert_true(scheduler_idle(b->scheduler));
    bench_check(b);
    bench_submit(b, 2, 110, 100, 5);
    bench_run(b);
    assert_in_range(b->answers[2].n_reused, 32, 48); // what was there by then
    bench_assert_text_alone(b, 2, 110, 100, 5);
    bench_close(b);
}

static void test_its_pages_are_evicted_first(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 10});
    bench_submit(b, 2, 64, 0, 1); // the oldest
    bench_run(b);
    read_ahead(b, 1, 96, 0);
    bench_run(b);
    bench_submit(b, 3, 128, 0, 20); // five pages of ten: what was read ahead goes
    bench_run(b);
    bench_submit(b, 102, 64, 0, 1);
    struct scheduler_request again = bench_ask(2, 64, 0, 1);
    again.id = 4;
    scheduler_submit(b->scheduler, &again);
    bench_run(b);
    assert_int_equal(b->answers[4].n_reused, 63);
    bench_close(b);
}

static void test_prompts_and_what_is_read_ahead_in_any_order(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 24, .chunk = 16, .places = 4});
    uint64_t random = 7;
    int n_prompt[61] = {0}, common[61] = {0};
    for (uint64_t id = 1; id <= 60; id++) {
        const bool ahead = xorshift(&random) % 2;
        n_prompt[id] = 10 + (int)(xorshift(&random) % 150);
        common[id] = (int)(xorshift(&random) % (uint64_t)n_prompt[id]);
        if (ahead) read_ahead(b, id, n_prompt[id], common[id]), n_prompt[id] = 0;
        else bench_submit(b, id, n_prompt[id], common[id], 12);
        if (ahead && xorshift(&random) % 3 == 0) scheduler_cancel(b->scheduler, id);
        for (uint64_t steps = xorshift(&random) % 12; steps; steps--) {
            b->stops = xorshift(&random) % 5 == 0;
            scheduler_step(b->scheduler);
            bench_check(b);
        }
    }
    bench_run(b);
    for (uint64_t id = 1; id <= 60; id++)
        if (n_prompt[id]) bench_assert_text_alone(b, id, n_prompt[id], common[id], 12);
    bench_close(b);
}

// ---- texts ----

static struct token_list encode(const struct model_file *m, const char *draft, enum read_ahead ahead) {
    const struct engine_message messages[] = {
        {.role = "user", .text = "What is a page?"},
        {.role = "assistant", .text = "A part of the KV cache."},
        {.role = "user", .text = draft},
    };
    struct prompt_source source =
        prompt_source_copy(&(struct request_params){.messages = messages, .n_messages = 3, .read_ahead = ahead});
    struct token_list list = {0};
    struct prompt_outcome outcome;
    prompt_source_encode(m, &source, &list, &outcome);
    prompt_source_free(&source);
    return list;
}

// What is read ahead begins every prompt in which the message goes on, and holds all of it.
static void assert_beginning(const struct model_file *m) {
    static const char *const drafts[] = {"And", "And a draft", "Two\n\nparagraphs of", "void main(void) {",
                                         "Grüße, 世界"};
    static const char *const more[] = {"", " it goes on", "\n\nit goes on", ", and on", " x"};
    for (size_t d = 0; d < sizeof drafts / sizeof *drafts; d++) {
        struct token_list ahead = encode(m, drafts[d], READ_AHEAD_WORDS), empty = encode(m, "", READ_AHEAD_WORDS);
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
            char *text = xasprintf("%s%s", drafts[d], more[i]);
            struct token_list real = encode(m, text, i % 2 ? READ_AHEAD_OFF : READ_AHEAD_ALL);
            size_t same = 0;
            while (same < ahead.count && same < real.count && ahead.ids[same] == real.ids[same]) same++;
            assert_true(same < real.count);
            assert_true(same + 1 >= ahead.count); // punctuation may take the last token up
            free(real.ids);
            free(text);
        }
        assert_true(ahead.count > empty.count);
        free(empty.ids);
        free(ahead.ids);
    }
}

static void test_words_that_are_whole_begin_the_prompt(void **state) {
    (void)state;
    struct status st = {0};
    size_t size;
    const void *data = guide_data(&size);
    struct model_file *guide = model_file_open_memory("guide.gguf", data, size, guide_template(), &st);
    if (!guide) fail_msg("%s", st.text);
    assert_beginning(guide);
    model_file_close(guide);
    struct model_file *m = model_file_open(shared_file("models/stories260K-f32.gguf"), &st);
    if (!m) fail_msg("%s", st.text);
    assert_beginning(m);
    model_file_close(m);
}

// ---- an engine ----

static struct engine_event ask(struct engine_client *c, const char *text, enum read_ahead ahead, char *answer) {
    const struct engine_message message = {.role = "user", .text = text};
    struct request_params p = {.conversation = 1,
                               .messages = &message,
                               .n_messages = 1,
                               .sampling = sampling_default(),
                               .max_tokens = ahead ? 0 : 12,
                               .read_ahead = ahead};
    p.sampling.temperature = 0;
    const uint64_t id = engine_submit(c, &p);
    struct engine_event e;
    do {
        assert_true(engine_wait(c, &e, 60000));
        if (e.request == id && e.kind == EVENT_TEXT && answer) strcat(answer, e.text);
    } while (e.request != id || e.kind != EVENT_STATE || e.state < REQUEST_FINISHED);
    return e;
}

static void test_an_answer_is_the_same_and_begins_with_one_row(void **state) {
    (void)state;
    static const char draft[] = "How do I begin a second chat, and what",
                      text[] = "How do I begin a second chat, and what is it?";
    struct status st = {0};
    size_t size;
    const void *data = guide_data(&size);
    struct model_file *guide = model_file_open_memory("guide.gguf", data, size, guide_template(), &st);
    if (!guide) fail_msg("%s", st.text);
    char answers[2][512] = {"", ""};
    for (int ahead = 0; ahead < 2; ahead++) {
        struct engine *e = local_engine_open(guide, &(struct engine_params){.n_threads = 1, .kv_tokens = 1024}, &st);
        if (!e) fail_msg("%s", st.text);
        struct engine_client *c = engine_client_open(e, &st);
        if (ahead) {
            const struct engine_event words = ask(c, draft, READ_AHEAD_WORDS, NULL);
            assert_int_equal(words.n_generated, 0);
            assert_int_equal(ask(c, draft, READ_AHEAD_FIND, NULL).n_reused, words.n_prompt);
            const struct engine_event all = ask(c, text, READ_AHEAD_ALL, NULL);
            assert_true(all.n_reused >= words.n_prompt - 1);
        }
        const struct engine_event end = ask(c, text, READ_AHEAD_OFF, answers[ahead]);
        assert_int_equal(end.n_reused, ahead ? end.n_prompt - 1 : 0);
        engine_client_close(c);
        engine_close(e);
    }
    assert_string_equal(answers[0], answers[1]);
    assert_true(strlen(answers[0]) > 10);
    model_file_close(guide);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_prompt_finds_all_that_was_read_ahead),
                                       cmocka_unit_test(test_what_is_cached_can_be_found_out),
                                       cmocka_unit_test(test_nobody_waits_for_what_is_read_ahead),
                                       cmocka_unit_test(test_beside_answers_it_has_rows_to_spare),
                                       cmocka_unit_test(test_it_takes_no_place_from_anybody),
                                       cmocka_unit_test(test_what_is_read_ahead_is_given_up_without_a_trace),
                                       cmocka_unit_test(test_its_pages_are_evicted_first),
                                       cmocka_unit_test(test_prompts_and_what_is_read_ahead_in_any_order),
                                       cmocka_unit_test(test_words_that_are_whole_begin_the_prompt),
                                       cmocka_unit_test(test_an_answer_is_the_same_and_begins_with_one_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
