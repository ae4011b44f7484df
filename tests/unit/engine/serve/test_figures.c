// Figures: rates over the last second, percentiles, and snapshots that pass between threads whole.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/serve/figures.h"

#define ABOUT(value, expected) assert_true(fabs((double)(value) - (expected)) <= 0.1 * fabs((double)(expected)))

static const struct engine_figures *snapshot(struct figures *f, double now) {
    figures_begin(f, now);
    figures_publish(f);
    return figures_latest(f);
}

static void test_rates_of_short_steps(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    for (int i = 0; i < 300; i++) { // 100 steps a second, 4 tokens and 10 prompt rows each
        struct figures_step s = {
            .start = 1000 + i * 0.01, .end = 1000 + i * 0.01 + 0.01, .decoded = 4, .decode_rows = 4, .prefilled = 10};
        s.work.stages[STAGE_ATTEND] = (struct stage_work){.seconds = 0.002, .bytes = 1e6, .operations = 2e6};
        s.work.stages[STAGE_FEED] = (struct stage_work){.seconds = 0.006, .bytes = 3e6, .operations = 4e6};
        figures_add_step(&f, &s);
    }
    const struct engine_figures *e = snapshot(&f, 1003);
    ABOUT(e->decode_now, 400);
    ABOUT(e->prefill_now, 1000);
    ABOUT(e->stages[STAGE_ATTEND].seconds, 0.2);
    ABOUT(e->stages[STAGE_ATTEND].bytes, 1e8);
    ABOUT(e->stages[STAGE_FEED].seconds, 0.6);
    ABOUT(e->stages[STAGE_FEED].operations, 4e8);
    ABOUT(e->prefill.seconds, 1); // 0.2 of it elsewhere
    ABOUT(e->prefill.bytes, 4e8);
    assert_true(e->decode.seconds == 0);
    assert_int_equal(e->decode_tokens, 1200);
    assert_int_equal(e->prefill_tokens, 3000);
    assert_int_equal(e->steps, 300);
    ABOUT(snapshot(&f, 1003.5)->decode_now, 400); // although half of the window is idle
    e = snapshot(&f, 1004.1);
    assert_true(e->decode_now == 0 && e->prefill_now == 0);
    ABOUT(e->stages[STAGE_FEED].seconds, 0.6); // the last second of work stays
    ABOUT(e->prefill.seconds, 1);
    ABOUT(e->decode_peak, 400);
    assert_int_equal(e->decode_tokens, 1200);
    figures_close(&f);
}

// Steps that read prompts and steps that only decode are told apart.
static void test_phases(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    for (int i = 0; i < 200; i++) {
        struct figures_step s = {
            .start = 20 + i * 0.01, .end = 20 + i * 0.01 + 0.01, .decoded = 1, .prefilled = i % 4 == 0 ? 100 : 0};
        s.work.stages[STAGE_LOGITS] = (struct stage_work){.seconds = 0.01, .bytes = 1e6, .operations = 5e6};
        figures_add_step(&f, &s);
    }
    const struct engine_figures *e = snapshot(&f, 22);
    ABOUT(e->prefill.seconds, 0.25);
    ABOUT(e->prefill.bytes, 25e6);
    ABOUT(e->decode.seconds, 0.75);
    ABOUT(e->decode.operations, 375e6);
    ABOUT(e->stages[STAGE_LOGITS].seconds, 1);
    figures_close(&f);
}

static void test_long_steps_are_spread(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    figures_add_step(&f, &(struct figures_step){.start = 50, .end = 54, .prefilled = 400});
    ABOUT(snapshot(&f, 54)->prefill_now, 100);
    figures_close(&f);
}

// Adds steps of one decode row each; returns when the last one ends.
static double decode_steps(struct figures *f, double start, int n, double length) {
    for (int i = 0; i < n; i++, start += length)
        figures_add_step(f,
                         &(struct figures_step){.start = start, .end = start + length, .decoded = 1, .decode_rows = 1});
    return start;
}

static void test_rates_after_a_pause_are_not_diluted(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    decode_steps(&f, 70, 40, 0.01);
    ABOUT(snapshot(&f, 70.4)->decode_now, 100); // over 0.4 s, not over the whole window
    figures_close(&f);
}

// 80 tokens in 26 ms are as fast as they are, now, at the peak and in an answer that follows.
static void test_a_short_answer_has_its_own_rate(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    figures_add_step(&f, &(struct figures_step){.start = 30, .end = 30.01, .decoded = 1, .prefilled = 100});
    double end = decode_steps(&f, 30.01, 80, 1.0 / 3000);
    const struct engine_figures *e = snapshot(&f, end);
    ABOUT(e->decode_now, 3000);
    ABOUT(e->prefill_now, 10000);
    assert_true(e->decode_peak >= e->decode_now);
    e = snapshot(&f, end + 0.5);
    ABOUT(e->decode_now, 3000);
    end = decode_steps(&f, end + 0.5, 20, 1.0 / 3000); // a second answer half a second later
    ABOUT(snapshot(&f, end)->decode_now, 3000);
    e = snapshot(&f, end + 2);
    assert_true(e->decode_now == 0 && e->prefill_now == 0);
    ABOUT(e->decode_peak, 3000);
    figures_close(&f);
}

static void test_a_few_tokens_have_no_rate(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    double end = decode_steps(&f, 30, 2, 1e-5);
    const struct engine_figures *e = snapshot(&f, end);
    assert_true(e->decode_now == 0 && e->decode_peak == 0);
    end = decode_steps(&f, 40, 1, 0.5); // a slow one has
    ABOUT(snapshot(&f, end)->decode_now, 2);
    figures_close(&f);
}

// Steps of several requests: the sum of their rates. What they wait for between the steps counts.
static void test_rates_of_several_add_up(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    for (int i = 0; i < 50; i++)
        figures_add_step(&f, &(struct figures_step){.start = 30 + i * 0.01,
                                                    .end = 30 + i * 0.01 + 0.005,
                                                    .pause = i ? 0.005 : 0,
                                                    .decode_rows = 3,
                                                    .prefilled = i == 20 ? 50 : 0});
    const struct engine_figures *e = snapshot(&f, 30.5);
    ABOUT(e->decode_now, 300);
    ABOUT(e->prefill_now, 5000);
    figures_close(&f);
}

static void test_percentiles(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    assert_int_equal(snapshot(&f, 1)->next_token.count, 0);
    for (int i = 0; i < 1000; i++) figures_add_latency(&f.next_token, 5); // forgotten by the next
    for (int i = 0; i < FIGURES_SAMPLES; i++) figures_add_latency(&f.next_token, (i * 37 % FIGURES_SAMPLES) + 1);
    figures_add_latency(&f.first_token, 2);
    const struct engine_figures *e = snapshot(&f, 1);
    assert_int_equal(e->next_token.count, FIGURES_SAMPLES);
    ABOUT(e->next_token.p50, 0.50 * FIGURES_SAMPLES);
    ABOUT(e->next_token.p90, 0.90 * FIGURES_SAMPLES);
    assert_true(e->next_token.p99 > 0.98 * FIGURES_SAMPLES && e->next_token.p99 < FIGURES_SAMPLES);
    assert_true(e->first_token.p50 == 2 && e->first_token.p99 == 2);
    figures_close(&f);
}

static void test_snapshot_stays_until_the_next_call(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    const struct engine_figures *first = snapshot(&f, 1);
    uint64_t sequence = first->sequence;
    for (int i = 0; i < 5; i++) {
        figures_begin(&f, 1);
        figures_publish(&f);
        assert_int_equal(first->sequence, sequence); // the writer has two others to turn between
    }
    assert_int_equal(figures_latest(&f)->sequence, sequence + 5);
    assert_ptr_equal(figures_latest(&f), figures_latest(&f)); // without news the same
    figures_close(&f);
}

enum { PUBLISHED = 20000 };

static void *write_snapshots(void *argument) {
    struct figures *f = argument;
    for (int i = 0; i < PUBLISHED; i++) {
        struct engine_figures *e = figures_begin(f, 1);
        e->n_pages = 64;
        for (int k = 0; k < 64; k++) e->pages[k].conversation = e->sequence; // must be seen all or none
        figures_publish(f);
    }
    return NULL;
}

static void test_snapshots_pass_between_threads_whole(void **state) {
    (void)state;
    struct figures f;
    figures_open(&f);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_snapshots, &f), 0);
    uint64_t last = 0;
    while (last < PUBLISHED) {
        const struct engine_figures *e = figures_latest(&f);
        assert_true(e->sequence >= last);
        last = e->sequence;
        for (int k = 0; k < e->n_pages; k++) assert_int_equal(e->pages[k].conversation, last);
    }
    pthread_join(thread, NULL);
    figures_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_of_short_steps),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_long_steps_are_spread),
        cmocka_unit_test(test_rates_after_a_pause_are_not_diluted),
        cmocka_unit_test(test_a_short_answer_has_its_own_rate),
        cmocka_unit_test(test_a_few_tokens_have_no_rate),
        cmocka_unit_test(test_rates_of_several_add_up),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_snapshot_stays_until_the_next_call),
        cmocka_unit_test(test_snapshots_pass_between_threads_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
