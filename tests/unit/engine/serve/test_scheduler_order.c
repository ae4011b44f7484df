// Who is served when: focus, places, pages that are short, limits, and steps that are given up.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/scheduler_bench.h"

static void test_time_limit(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64});
    clock_freeze(5000000000u);
    struct scheduler_request q = bench_ask(1, 10, 0, 0), other = bench_ask(2, 10, 0, 20);
    q.time_limit = 2;
    scheduler_submit(b->scheduler, &q);
    scheduler_submit(b->scheduler, &other);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    clock_freeze(6990000000u);
    scheduler_step(b->scheduler);
    assert_int_equal(b->answers[1].state, REQUEST_DECODING);
    clock_freeze(7000000000u);
    bench_run(b);
    clock_freeze(0);
    assert_int_equal(b->answers[1].state, REQUEST_FINISHED);
    assert_int_equal(b->answers[1].reason, FINISH_TIME);
    bench_assert_text_alone(b, 1, 10, 0, 6);
    bench_assert_text_alone(b, 2, 10, 0, 20);
    bench_close(b);
}

static void test_focus_is_served_first(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 16});
    for (uint64_t id = 1; id <= 4; id++) bench_submit(b, id, 64, 0, 5);
    scheduler_focus(b->scheduler, 3);
    bench_run(b);
    assert_true(b->answers[3].started < b->answers[1].started);
    assert_true(b->answers[1].started < b->answers[2].started);
    assert_true(b->answers[2].started < b->answers[4].started);
    bench_close(b);
}

static void test_focus_takes_the_place_of_others_and_keeps_it(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    struct scheduler_request first = bench_ask(1, 100, 0, 100), second = bench_ask(2, 90, 0, 100);
    scheduler_submit(b->scheduler, &first); // grows to 7 of 8 pages
    for (int i = 0; i < 10; i++) scheduler_step(b->scheduler);
    scheduler_focus(b->scheduler, 2);
    scheduler_submit(b->scheduler, &second);
    scheduler_step(b->scheduler);
    assert_int_equal(b->answers[2].state, REQUEST_DECODING);
    bench_run(b);
    assert_true(b->answers[2].ended < b->answers[1].ended);
    assert_int_equal(b->answers[2].times_pending, 1);
    assert_int_equal(b->answers[1].times_pending, 2);
    assert_int_equal(b->metrics.reused_tokens,
                     64); // the second grew to 6 of 8 pages, two of the first were still there
    bench_assert_text_alone(b, 1, 100, 0, 100);
    bench_assert_text_alone(b, 2, 90, 0, 100);
    bench_close(b);
}

static float rate_shown(const struct bench *b, uint64_t id) {
    static struct engine_metrics f;
    scheduler_metrics(b->scheduler, &f);
    for (int i = 0; i < f.n_requests; i++)
        if (f.requests[i].request == id) return f.requests[i].tokens_per_second;
    return 0;
}

static void test_a_rate_is_without_waiting_for_others(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    struct scheduler_request first = bench_ask(1, 100, 0, 100), second = bench_ask(2, 90, 0, 100);
    uint64_t now = 1000000000u;
    scheduler_submit(b->scheduler, &first);
    for (int i = 0; !scheduler_idle(b->scheduler); i++) {
        clock_freeze(now += 10000000);
        scheduler_step(b->scheduler);
        if (i == 10) scheduler_focus(b->scheduler, 2), scheduler_submit(b->scheduler, &second);
        if (b->answers[1].state == REQUEST_DECODING && b->answers[1].n > 2)
            assert_true(fabs((double)rate_shown(b, 1) - 100) < 1);
    }
    clock_freeze(0);
    assert_int_equal(b->answers[1].times_pending, 2);
    bench_close(b);
}

// All places taken: the newest of the others gives way with its row planned, keeps what was computed, and no more.
static void test_focus_takes_a_place(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .places = 16});
    for (uint64_t id = 1; id <= 16; id++) bench_submit(b, id, 20, 0, 60);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    scheduler_focus(b->scheduler, 17);
    struct scheduler_request q = bench_ask(17, 20, 0, 30);
    scheduler_submit(b->scheduler, &q);
    bench_run(b);
    assert_int_equal(b->metrics.preemptions, 1);
    assert_int_equal(b->answers[16].times_pending, 2);
    assert_true(b->answers[16].started < b->answers[17].started && b->answers[17].ended < b->answers[16].ended);
    assert_true(b->metrics.reused_tokens >= 20); // nobody needed its pages
    for (uint64_t id = 1; id <= 17; id++) bench_assert_text_alone(b, id, 20, 0, id == 17 ? 30 : 60);
    bench_close(b);
}

// The page that a running request will soon need is not given away.
static void test_admission_counts_what_is_promised(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8, .chunk = 32});
    struct scheduler_request first = bench_ask(1, 90, 0, 60),
                             second = bench_ask(2, 150, 0, 10); // 3 pages, soon 5; 5 pages
    scheduler_submit(b->scheduler, &first);
    scheduler_submit(b->scheduler, &second);
    bench_run(b);
    assert_int_equal(b->metrics.preemptions, 0);
    assert_true(b->answers[1].ended < b->answers[2].started);
    bench_close(b);
}

static void test_nobody_overtakes_one_that_waits_for_pages(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8});
    struct scheduler_request large = bench_ask(1, 100, 0, 50), larger = bench_ask(2, 180, 0, 10),
                             small = bench_ask(3, 5, 0, 5);
    scheduler_submit(b->scheduler, &large);
    scheduler_step(b->scheduler);
    scheduler_submit(b->scheduler, &larger);
    scheduler_submit(b->scheduler, &small);
    bench_run(b);
    assert_true(b->answers[1].ended < b->answers[2].started);
    assert_true(b->answers[2].started < b->answers[3].started);
    bench_close(b);
}

// The pages of a prompt that gives way to an older answer are for itself again, not for whoever came later.
static void test_nobody_overtakes_a_prompt_that_gives_way(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 8, .chunk = 4});
    bench_submit(b, 1, 30, 0, 120); // 1 page, in the end 5
    bench_submit(b, 2, 170, 0, 10); // 6 pages, which 40 steps fill
    bench_submit(b, 3, 5, 0, 5);
    bench_run(b);
    assert_int_equal(b->answers[2].times_pending, 2);
    assert_true(b->answers[1].ended < b->answers[3].started);
    bench_assert_text_alone(b, 2, 170, 0, 10);
    bench_close(b);
}

// While others decode, a long prompt comes in chunks and every step still gives each of them a token.
static void test_prompts_do_not_stop_the_others(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 64});
    struct scheduler_request first = bench_ask(1, 10, 0, 100), second = bench_ask(2, 1000, 0, 5);
    scheduler_submit(b->scheduler, &first);
    scheduler_step(b->scheduler);
    scheduler_submit(b->scheduler, &second);
    while (b->answers[2].state <= REQUEST_PREFILLING && b->answers[1].state == REQUEST_DECODING) {
        int before = b->answers[1].n;
        scheduler_step(b->scheduler);
        assert_int_equal(b->answers[1].n, before + 1);
    }
    assert_true(toy.most_rows <= 65);
    bench_run(b);
    bench_assert_text_alone(b, 1, 10, 0, 100);
    bench_assert_text_alone(b, 2, 1000, 0, 5);
    bench_close(b);
}

// Pages are short, so that giving up meets copies, pre-emption and kept sequences.
static void test_steps_given_up_are_done_again(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 24, .chunk = 20});
    for (uint64_t id = 1; id <= 6; id++) bench_submit(b, id, id == 1 ? 500 : 100, 37, 20);
    for (bool more = true; more;) {
        b->stops = toy.runs % 3;
        more = scheduler_step(b->scheduler);
        bench_check(b);
    }
    assert_true(toy.given_up >= 10);
    for (uint64_t id = 1; id <= 6; id++) bench_assert_text_alone(b, id, id == 1 ? 500 : 100, 37, 20);
    bench_close(b);
}

static int looks;

static void look_during_step(struct bench *b) {
    looks++;
    assert_true(scheduler_computes(b->scheduler, 1));
    assert_false(scheduler_computes(b->scheduler, 2)); // there is no place for it
    assert_false(scheduler_computes(b->scheduler, 99));
    assert_true(scheduler_overtakes(b->scheduler, 2, false, 2));
    assert_false(scheduler_overtakes(b->scheduler, 2, false, 1));
    assert_false(scheduler_overtakes(b->scheduler, 1, false, 1)); // after its own
}

// A step says what it computes, and who would go first.
static void test_what_a_step_computes(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 64, .chunk = 48, .places = 1});
    struct scheduler_request first = bench_ask(1, 100, 0, 5), second = bench_ask(2, 100, 0, 5);
    scheduler_submit(b->scheduler, &first);
    scheduler_submit(b->scheduler, &second);
    assert_false(scheduler_computes(b->scheduler, 1)); // between steps none does
    looks = 0;
    b->in_step = look_during_step;
    scheduler_step(b->scheduler);
    assert_int_equal(looks, 1);
    b->in_step = NULL;
    bench_run(b);
    bench_close(b);
}

// ---- prompts ----

static void test_a_short_prompt_does_not_wait_for_a_long_one(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 64});
    for (uint64_t id = 1; id <= 4; id++) bench_submit(b, id, 10, 0, 400);
    for (int i = 0; i < 5; i++) scheduler_step(b->scheduler);
    bench_submit(b, 5, 1500, 0, 5);
    bench_submit(b, 6, 20, 0, 5);
    while (!b->answers[6].answered) {
        int before = b->answers[1].n;
        scheduler_step(b->scheduler);
        assert_int_equal(b->answers[1].n, before + 1); // nor do those who stream
    }
    assert_int_equal(b->answers[5].answered, 0);
    bench_run(b);
    assert_true(b->answers[6].ended < b->answers[5].answered);
    bench_assert_text_alone(b, 5, 1500, 0, 5);
    bench_assert_text_alone(b, 6, 20, 0, 5);
    bench_close(b);
}

// Also when it is looked at: half of a step is for others.
static void test_a_long_prompt_in_focus_leaves_room_for_short_ones(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .chunk = 64});
    scheduler_focus(b->scheduler, 1);
    bench_submit(b, 1, 1500, 0, 5);
    bench_submit(b, 2, 20, 0, 5);
    bench_run(b);
    assert_true(b->answers[2].answered < b->answers[1].answered);
    bench_close(b);
}

// However many short ones come, the first has half of every step.
static void test_a_long_prompt_has_its_turn(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .chunk = 32});
    bench_submit(b, 1, 640, 0, 1);
    int steps = 0;
    for (uint64_t id = 2; !b->answers[1].answered && id < MOST_REQUESTS; steps++) {
        for (int i = 0; i < 3; i++, id++) bench_submit(b, id, 16, 0, 1);
        scheduler_step(b->scheduler);
    }
    assert_true(b->answers[1].answered && steps <= 40);
    bench_run(b);
    bench_close(b);
}

// What the conversation in focus waits for is computed before everything else.
static void test_focus_lends_its_place_to_what_it_waits_for(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 256, .chunk = 32});
    bench_submit(b, 1, 640, 0, 5);
    bench_submit(b, 2, 1200, 1200, 5);
    bench_submit(b, 4, 900, 0, 5);
    scheduler_step(b->scheduler);
    scheduler_focus(b->scheduler, 3);
    bench_submit(b, 3, 601, 600, 5);
    bench_run(b);
    assert_true(b->answers[3].answered < b->answers[4].answered);
    assert_int_equal(b->answers[3].n_reused, 600);
    bench_assert_text_alone(b, 1, 640, 0, 5);
    bench_assert_text_alone(b, 2, 1200, 1200, 5);
    bench_assert_text_alone(b, 3, 601, 600, 5);
    bench_assert_text_alone(b, 4, 900, 0, 5);
    bench_close(b);
}

// ---- places ----

// Draws are fewer than sequences: these take turns, and nobody is left out.
static void test_more_run_than_draw_in_a_step(void **state) {
    (void)state;
    enum { MANY = 128 };
    struct bench *b = bench_open((struct bench_options){.n_pages = 512});
    for (uint64_t id = 1; id <= MANY; id++) bench_submit(b, id, 20, 0, 30);
    int most = 0, most_rows = 0;
    struct engine_metrics *f = xcalloc(1, sizeof *f);
    while (scheduler_step(b->scheduler)) {
        bench_check(b);
        scheduler_metrics(b->scheduler, f);
        if (f->running > most) most = f->running;
        if (f->batch_decode_rows > most_rows) most_rows = f->batch_decode_rows;
        int least = 30, furthest = 0; // of those that all decode
        for (uint64_t id = 1; id <= MANY; id++) {
            if (b->answers[id].n < least) least = b->answers[id].n;
            if (b->answers[id].n > furthest) furthest = b->answers[id].n;
        }
        if (least > 0) assert_true(furthest - least <= 12);
    }
    assert_int_equal(most, MANY);
    assert_int_equal(most_rows, 64);
    assert_int_equal(b->metrics.preemptions, 0);
    for (uint64_t id = 1; id <= MANY; id++) bench_assert_text_alone(b, id, 20, 0, 30);
    free(f);
    bench_close(b);
}

static void test_more_requests_than_places(void **state) {
    (void)state;
    struct bench *b = bench_open((struct bench_options){.n_pages = 128, .places = 16});
    for (uint64_t id = 1; id < 41; id++) bench_submit(b, id, 20, 0, 12);
    bench_run(b);
    assert_int_equal(toy.most_segments, 16);
    for (uint64_t id = 1; id < 41; id++) bench_assert_text_alone(b, id, 20, 0, 12);
    bench_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_focus_is_served_first),
        cmocka_unit_test(test_focus_takes_the_place_of_others_and_keeps_it),
        cmocka_unit_test(test_a_rate_is_without_waiting_for_others),
        cmocka_unit_test(test_focus_takes_a_place),
        cmocka_unit_test(test_admission_counts_what_is_promised),
        cmocka_unit_test(test_nobody_overtakes_one_that_waits_for_pages),
        cmocka_unit_test(test_nobody_overtakes_a_prompt_that_gives_way),
        cmocka_unit_test(test_prompts_do_not_stop_the_others),
        cmocka_unit_test(test_steps_given_up_are_done_again),
        cmocka_unit_test(test_what_a_step_computes),
        cmocka_unit_test(test_a_short_prompt_does_not_wait_for_a_long_one),
        cmocka_unit_test(test_a_long_prompt_in_focus_leaves_room_for_short_ones),
        cmocka_unit_test(test_a_long_prompt_has_its_turn),
        cmocka_unit_test(test_focus_lends_its_place_to_what_it_waits_for),
        cmocka_unit_test(test_more_run_than_draw_in_a_step),
        cmocka_unit_test(test_more_requests_than_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
