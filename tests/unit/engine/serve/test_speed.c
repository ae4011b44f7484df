// Speed: what steps took, and what is made of it for steps that were not measured.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/serve/speed.h"

#define ABOUT(value, expected) assert_true(fabs((value) - (expected)) <= 0.01 * (expected))

static void learn_often(struct speed *s, int n_rows, double seconds) {
    for (int i = 0; i < 10; i++) speed_learn(s, n_rows, 0, seconds);
}

static void test_nothing_is_known_at_first(void **state) {
    (void)state;
    struct speed s = {0};
    assert_true(speed_decode(&s, 1) <= 0);
    assert_true(speed_decode_lately(&s, 1) <= 0);
    learn_often(&s, 4, 0.02);
    ABOUT(speed_decode(&s, 1), 0.02);
    assert_true(speed_decode_lately(&s, 1) <= 0); // fewer rows than were ever tried
}

static void test_between_what_was_measured_it_is_interpolated(void **state) {
    (void)state;
    struct speed s = {0};
    learn_often(&s, 1, 0.01);
    learn_often(&s, 5, 0.03);
    ABOUT(speed_decode_lately(&s, 1), 0.01);
    ABOUT(speed_decode_lately(&s, 2), 0.015);
    ABOUT(speed_decode_lately(&s, 5), 0.03);
    ABOUT(speed_decode_lately(&s, 10), 0.03); // worth a try
    assert_true(speed_decode_lately(&s, 11) <= 0);
}

static void test_what_was_measured_long_ago_is_measured_again(void **state) {
    (void)state;
    struct speed s = {0};
    learn_often(&s, 2, 0.05);
    for (int i = 0; i < 1000; i++) speed_learn(&s, 1, 0, 0.01);
    ABOUT(speed_decode_lately(&s, 2), 0.01);
    speed_learn(&s, 2, 0, 0.02);
    ABOUT(speed_decode_lately(&s, 2), 0.02); // nothing is left of what it was
}

// The first step of its kind may prepare what the others find.
static void test_of_the_first_steps_the_shortest_counts(void **state) {
    (void)state;
    struct speed s = {0};
    speed_learn(&s, 3, 0, 0.5);
    speed_learn(&s, 3, 0, 0.01);
    ABOUT(speed_decode_lately(&s, 3), 0.01);
    speed_learn(&s, 3, 0, 0.01);
    for (int i = 0; i < 60; i++) speed_learn(&s, 3, 0, 0.02);
    ABOUT(speed_decode_lately(&s, 3), 0.02);
}

// One step that was disturbed says little; a machine that has become slower is believed soon.
static void test_a_step_that_was_disturbed_says_little(void **state) {
    (void)state;
    struct speed s = {0};
    learn_often(&s, 1, 0.01);
    speed_learn(&s, 1, 0, 5);
    assert_true(speed_decode(&s, 1) < 0.011);
    for (int i = 0; i < 100; i++) speed_learn(&s, 1, 0, 0.05);
    assert_true(speed_decode(&s, 1) > 0.045);
}

static void test_beside_a_person_one_more_row_is_tried(void **state) {
    (void)state;
    struct speed s = {0};
    for (int i = 0; i < 10; i++) s.step++, speed_learn_beside(&s, 2, 0.01);
    ABOUT(speed_beside(&s, 3), 0.01);
    assert_true(speed_beside(&s, 4) <= 0);
    speed_learn_beside(&s, 3, 0.02);
    ABOUT(speed_beside(&s, 4), 0.02);
}

static void test_rows_of_prompts(void **state) {
    (void)state;
    struct speed s = {0};
    speed_learn(&s, 64, 64, 0.64);
    ABOUT(s.prompt_row, 0.01);
    speed_learn(&s, 8, 8, 8); // too few to tell
    ABOUT(s.prompt_row, 0.01);
    speed_learn(&s, 10, 6, 0.2);
    ABOUT(s.shared_row, 0.02);
    assert_true(speed_decode(&s, 4) <= 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_at_first),
        cmocka_unit_test(test_between_what_was_measured_it_is_interpolated),
        cmocka_unit_test(test_what_was_measured_long_ago_is_measured_again),
        cmocka_unit_test(test_of_the_first_steps_the_shortest_counts),
        cmocka_unit_test(test_a_step_that_was_disturbed_says_little),
        cmocka_unit_test(test_beside_a_person_one_more_row_is_tried),
        cmocka_unit_test(test_rows_of_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
