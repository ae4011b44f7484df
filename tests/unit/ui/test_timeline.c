// The timeline: means of rates and peaks of latencies in every level, gaps, and what is forgotten.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "ui/timeline.h"

static struct timeline line;

static void add(double seconds, float decode, float latency) {
    float values[SERIES_COUNT];
    for (int s = 0; s < SERIES_COUNT; s++) values[s] = NAN;
    values[SERIES_DECODE] = decode, values[SERIES_LATENCY] = latency;
    timeline_add(&line, seconds, values);
}

static float value(int level, double seconds, enum timeline_series series) {
    return timeline_value(&line, level, timeline_number(level, seconds), series);
}

static int start(void **state) {
    (void)state;
    line = (struct timeline){0};
    return 0;
}

static void rates_are_means_and_latencies_peaks(void **state) {
    (void)state;
    add(100, 10, 0.5f), add(100.25, 20, 0.1f);
    assert_float_equal(value(0, 100, SERIES_DECODE), 15, 1e-5);
    assert_float_equal(value(0, 100, SERIES_LATENCY), 0.5, 1e-5);
}

static void every_level_has_every_sample(void **state) {
    (void)state;
    for (int i = 0; i < 7200; i++) add(36000 + i * 0.25, i < 3600 ? 10 : 30, NAN);
    for (int level = 0; level < TIMELINE_LEVELS - 1; level++)
        assert_float_equal(value(level, 37799, SERIES_DECODE), 30, 1e-3);
    assert_float_equal(value(TIMELINE_LEVELS - 1, 37799, SERIES_DECODE), 20, 1e-3);
}

static void spans_without_samples_are_gaps(void **state) {
    (void)state;
    add(100, 10, NAN), add(110, 10, NAN);
    assert_true(isnan(value(0, 105, SERIES_DECODE)));
    assert_true(isnan(value(0, 100, SERIES_LATENCY)));
    assert_true(isnan(value(TIMELINE_LEVELS - 1, 7200, SERIES_DECODE)));
    assert_true(isnan(timeline_value(&line, 0, -1, SERIES_DECODE)));
}

static void unknown_samples_do_not_count(void **state) {
    (void)state;
    add(100, NAN, NAN), add(100.1, 30, -1), add(100.2, -1, 2);
    assert_float_equal(value(0, 100, SERIES_DECODE), 30, 1e-5);
    assert_float_equal(value(0, 100, SERIES_LATENCY), 2, 1e-5);
}

// Right after the machine started, too.
static void the_first_span_of_the_clock_counts(void **state) {
    (void)state;
    add(0.1, 10, NAN);
    for (int level = 0; level < TIMELINE_LEVELS; level++)
        assert_float_equal(value(level, 0.1, SERIES_DECODE), 10, 1e-5);
}

static void old_spans_give_their_place_to_new_ones(void **state) {
    (void)state;
    const double later = 100 + TIMELINE_SPANS * timeline_seconds[0];
    add(100, 10, NAN), add(later, 20, NAN);
    assert_true(isnan(value(0, 100, SERIES_DECODE)));
    assert_float_equal(value(0, later, SERIES_DECODE), 20, 1e-5);
    assert_float_equal(value(1, 100, SERIES_DECODE), 10, 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rates_are_means_and_latencies_peaks, start),
        cmocka_unit_test_setup(every_level_has_every_sample, start),
        cmocka_unit_test_setup(spans_without_samples_are_gaps, start),
        cmocka_unit_test_setup(unknown_samples_do_not_count, start),
        cmocka_unit_test_setup(the_first_span_of_the_clock_counts, start),
        cmocka_unit_test_setup(old_spans_give_their_place_to_new_ones, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
