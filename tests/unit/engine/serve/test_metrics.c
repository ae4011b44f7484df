// Metrics: rates over the last second, percentiles, and snapshots that pass between threads whole.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/serve/metrics.h"

#define ABOUT(value, expected) assert_true(fabs((double)(value) - (expected)) <= 0.1 * fabs((double)(expected)))

static const struct engine_metrics *snapshot(struct metrics *f, double now) {
    metrics_begin(f, now);
    metrics_publish(f);
    static struct engine_metrics latest;
    latest.sequence = 0;
    metrics_read(f, &latest);
    return &latest;
}

static void test_rates_of_short_steps(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    for (int i = 0; i < 300; i++) { // 100 steps a second, 4 tokens and 10 prompt rows each
        struct metrics_step s = {
            .start = 1000 + i * 0.01, .end = 1000 + i * 0.01 + 0.01, .decoded = 4, .decode_rows = 4, .prefilled = 10};
        s.work.stages[STAGE_ATTEND] = (struct stage_work){.seconds = 0.002, .bytes = 1e6, .operations = 2e6};
        s.work.stages[STAGE_FEED] = (struct stage_work){.seconds = 0.006, .bytes = 3e6, .operations = 4e6};
        metrics_add_step(&f, &s);
    }
    const struct engine_metrics *e = snapshot(&f, 1003);
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
    metrics_close(&f);
}

// Drafts of the last second: what was right of them, and what that makes of a step of two that decode.
static void test_drafts(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    struct metrics_step plain = {.start = 1000, .end = 1000.01, .decoded = 2, .decode_rows = 2};
    metrics_add_step(&f, &plain);
    const struct engine_metrics *e = snapshot(&f, 1000.01);
    assert_int_equal(e->drafted_tokens, 0);
    assert_true(isnan(e->acceptance));
    ABOUT(e->step_tokens, 1);
    for (int i = 0; i < 200; i++) {
        struct metrics_step s = {.start = 2000 + i * 0.01,
                                 .end = 2000 + i * 0.01 + 0.01,
                                 .decoded = 8,
                                 .decode_rows = 8,
                                 .drafted = 10,
                                 .accepted = 6};
        metrics_add_step(&f, &s);
    }
    e = snapshot(&f, 2002);
    assert_int_equal(e->drafted_tokens, 2000);
    assert_int_equal(e->accepted_tokens, 1200);
    ABOUT(e->acceptance, 0.6);
    ABOUT(e->step_tokens, 4);
    ABOUT(e->decode_now, 800);
    metrics_close(&f);
}

// Steps that read prompts and steps that only decode are told apart.
static void test_phases(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    for (int i = 0; i < 200; i++) {
        struct metrics_step s = {
            .start = 20 + i * 0.01, .end = 20 + i * 0.01 + 0.01, .decoded = 1, .prefilled = i % 4 == 0 ? 100 : 0};
        s.work.stages[STAGE_LOGITS] = (struct stage_work){.seconds = 0.01, .bytes = 1e6, .operations = 5e6};
        metrics_add_step(&f, &s);
    }
    const struct engine_metrics *e = snapshot(&f, 22);
    ABOUT(e->prefill.seconds, 0.25);
    ABOUT(e->prefill.bytes, 25e6);
    ABOUT(e->decode.seconds, 0.75);
    ABOUT(e->decode.operations, 375e6);
    ABOUT(e->stages[STAGE_LOGITS].seconds, 1);
    metrics_close(&f);
}

static void test_long_steps_are_spread(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    metrics_add_step(&f, &(struct metrics_step){.start = 50, .end = 54, .prefilled = 400});
    ABOUT(snapshot(&f, 54)->prefill_now, 100);
    metrics_close(&f);
}

// Adds steps of one decode row each; returns when the last one ends.
static double decode_steps(struct metrics *f, double start, int n, double length) {
    for (int i = 0; i < n; i++, start += length)
        metrics_add_step(f,
                         &(struct metrics_step){.start = start, .end = start + length, .decoded = 1, .decode_rows = 1});
    return start;
}

static void test_rates_after_a_pause_are_not_diluted(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    decode_steps(&f, 70, 40, 0.01);
    ABOUT(snapshot(&f, 70.4)->decode_now, 100); // over 0.4 s, not over the whole window
    metrics_close(&f);
}

// 80 tokens in 26 ms are as fast as they are, now, at the peak and in an answer that follows.
static void test_a_short_answer_has_its_own_rate(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    metrics_add_step(&f, &(struct metrics_step){.start = 30, .end = 30.01, .decoded = 1, .prefilled = 100});
    double end = decode_steps(&f, 30.01, 80, 1.0 / 3000);
    const struct engine_metrics *e = snapshot(&f, end);
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
    metrics_close(&f);
}

static void test_a_few_tokens_have_no_rate(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    double end = decode_steps(&f, 30, 2, 1e-5);
    const struct engine_metrics *e = snapshot(&f, end);
    assert_true(e->decode_now == 0 && e->decode_peak == 0);
    end = decode_steps(&f, 40, 1, 0.5); // a slow one has
    ABOUT(snapshot(&f, end)->decode_now, 2);
    metrics_close(&f);
}

// Steps of several requests: the sum of their rates. What they wait for between the steps counts.
static void test_rates_of_several_add_up(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    for (int i = 0; i < 50; i++)
        metrics_add_step(&f, &(struct metrics_step){.start = 30 + i * 0.01,
                                                    .end = 30 + i * 0.01 + 0.005,
                                                    .pause = i ? 0.005 : 0,
                                                    .decode_rows = 3,
                                                    .prefilled = i == 20 ? 50 : 0});
    const struct engine_metrics *e = snapshot(&f, 30.5);
    ABOUT(e->decode_now, 300);
    ABOUT(e->prefill_now, 5000);
    metrics_close(&f);
}

static void test_percentiles(void **state) {
    (void)state;
    struct metrics f;
    metrics_open(&f);
    assert_int_equal(snapshot(&f, 1)->next_token.count, 0);
    for (int i = 0; i < 1000; i++) metrics_add_latency(&f.next_token, 5); // forgotten by the next
    for (int i = 0; i < METRICS_SAMPLES; i++) metrics_add_latency(&f.next_token, (i * 37 % METRICS_SAMPLES) + 1);
    metrics_add_latency(&f.first_token, 2);
    const struct engine_metrics *e = snapshot(&f, 1);
    assert_int_equal(e->next_token.count, METRICS_SAMPLES);
    ABOUT(e->next_token.p50, 0.50 * METRICS_SAMPLES);
    ABOUT(e->next_token.p90, 0.90 * METRICS_SAMPLES);
    assert_true(e->next_token.p99 > 0.98 * METRICS_SAMPLES && e->next_token.p99 < METRICS_SAMPLES);
    assert_true(e->first_token.p50 == 2 && e->first_token.p99 == 2);
    metrics_close(&f);
}

static void test_each_reader_has_its_own_snapshot(void **state) {
    (void)state;
    struct metrics f;
    static struct engine_metrics one, another;
    metrics_open(&f);
    snapshot(&f, 1);
    assert_true(metrics_read(&f, &one));
    assert_false(metrics_read(&f, &one)); // no news
    snapshot(&f, 1);
    assert_true(metrics_read(&f, &another));
    assert_int_equal(another.sequence, one.sequence + 1);
    assert_true(metrics_read(&f, &one));
    assert_false(metrics_read(&f, &another));
    metrics_close(&f);
}

static void test_what_is_unknown_is_not_0(void **state) {
    (void)state;
    static struct engine_metrics f;
    f.sequence = 7;
    metrics_set_unknown(&f);
    assert_false(metric_known(f.decode_now) || metric_known(f.next_token.p99) || metric_known(f.stages[0].bytes));
    assert_false(metric_known(f.running) || metric_known((double)f.kv_bytes) || metric_known(f.n_pages));
    assert_true(metric_known(0) && metric_known(0.5));
    assert_int_equal(f.n_requests, 0);
    assert_int_equal(f.sequence, 7);
}

enum { PUBLISHED = 20000 };

static void *write_snapshots(void *argument) {
    struct metrics *f = argument;
    for (int i = 0; i < PUBLISHED; i++) {
        struct engine_metrics *e = metrics_begin(f, 1);
        e->n_pages = 64;
        for (int k = 0; k < 64; k++) e->pages[k].conversation = e->sequence; // must be seen all or none
        metrics_publish(f);
    }
    return NULL;
}

static void *read_snapshots(void *argument) {
    struct metrics *f = argument;
    struct engine_metrics *e = calloc(1, sizeof *e);
    for (uint64_t last = 0; e && last < PUBLISHED; last = e->sequence) {
        metrics_read(f, e);
        if (e->sequence < last) break;
        int k = 0;
        while (k < e->n_pages && e->pages[k].conversation == e->sequence) k++;
        if (k < e->n_pages) break;
    }
    bool whole = e && e->sequence == PUBLISHED;
    free(e);
    return whole ? f : NULL;
}

static void test_snapshots_pass_to_several_readers_whole(void **state) {
    (void)state;
    enum { READERS = 3 };
    struct metrics f;
    metrics_open(&f);
    pthread_t writer, readers[READERS];
    for (int i = 0; i < READERS; i++) assert_int_equal(pthread_create(&readers[i], NULL, read_snapshots, &f), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_snapshots, &f), 0);
    pthread_join(writer, NULL);
    for (int i = 0; i < READERS; i++) {
        void *whole;
        pthread_join(readers[i], &whole);
        assert_non_null(whole);
    }
    metrics_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_of_short_steps),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_long_steps_are_spread),
        cmocka_unit_test(test_rates_after_a_pause_are_not_diluted),
        cmocka_unit_test(test_a_short_answer_has_its_own_rate),
        cmocka_unit_test(test_a_few_tokens_have_no_rate),
        cmocka_unit_test(test_rates_of_several_add_up),
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_each_reader_has_its_own_snapshot),
        cmocka_unit_test(test_what_is_unknown_is_not_0),
        cmocka_unit_test(test_snapshots_pass_to_several_readers_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
