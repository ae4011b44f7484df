// Draft: guesses are what followed the longest match, and how often they are right is known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/serve/draft.h"

#define ADD(d, ...)                                                                                                    \
    draft_add(d, (const int32_t[]){__VA_ARGS__}, (int)(sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t)))

static void guess(struct draft *d) { draft_guess(d, d->text, d->n); }

static void test_nothing_is_guessed_where_nothing_matches(void **state) {
    (void)state;
    struct draft *d = draft_open();
    guess(d);
    assert_int_equal(d->n_guess, 0);
    ADD(d, 1, 2);
    guess(d);
    assert_int_equal(d->n_guess, 0);
    ADD(d, 3, 4, 9, 2, 3); // two in common are too few
    guess(d);
    assert_int_equal(d->n_guess, 0);
    draft_close(d);
}

static void test_a_guess_is_what_followed(void **state) {
    (void)state;
    struct draft *d = draft_open();
    ADD(d, 1, 2, 3, 40, 41, 42, 43, 9, 1, 2, 3);
    guess(d);
    assert_int_equal(d->match, 3);
    const int32_t followed[] = {40, 41, 42, 43, 9, 1, 2, 3};
    assert_true(d->n_guess >= 8);
    assert_memory_equal(d->guess, followed, sizeof followed);
    draft_close(d);
}

// The latest of equal matches; a longer one whenever it was.
static void test_the_longest_match_and_then_the_latest(void **state) {
    (void)state;
    struct draft *d = draft_open();
    ADD(d, 7, 1, 2, 3, 40, 8, 1, 2, 3, 50, 9, 1, 2, 3, 60, 5, 1, 2, 3);
    guess(d);
    assert_int_equal(d->guess[0], 60);
    ADD(d, 99, 8, 1, 2, 3);
    guess(d);
    assert_int_equal(d->match, 4);
    assert_int_equal(d->guess[0], 50);
    draft_close(d);
}

// What repeats within the guess goes on repeating.
static void test_a_loop_is_guessed_as_far_as_guesses_go(void **state) {
    (void)state;
    struct draft *d = draft_open();
    ADD(d, 5, 6, 5, 6, 5, 6, 5);
    guess(d);
    assert_int_equal(d->n_guess, DRAFT_MOST);
    for (int i = 0; i < DRAFT_MOST; i++) assert_int_equal(d->guess[i], i % 2 ? 5 : 6);
    draft_close(d);
}

static void test_no_guess_goes_from_one_text_into_another(void **state) {
    (void)state;
    struct draft *d = draft_open();
    ADD(d, 1, 2, 3, 40, 41, -1, 1, 2, 3);
    guess(d);
    assert_int_equal(d->n_guess, 2);
    ADD(d, 77, 3, 40, 41);
    guess(d);
    assert_int_equal(d->n_guess, 0);
    draft_close(d);
}

static void test_another_branch_helps_where_its_match_is_longer(void **state) {
    (void)state;
    struct draft *d = draft_open(), *other = draft_open();
    ADD(other, 9, 8, 1, 2, 3, 50, 51);
    ADD(d, 1, 2, 3, 40, 9, 8, 1, 2, 3);
    guess(d);
    assert_int_equal(d->guess[0], 40);
    draft_guess_from(d, other, d->text, d->n);
    assert_int_equal(d->match, 5);
    assert_int_equal(d->n_guess, 2);
    assert_int_equal(d->guess[0], 50);
    ADD(d, 4, 4, 4, 4, 4, 4);
    guess(d);
    draft_guess_from(d, other, d->text, d->n);
    assert_int_equal(d->guess[0], 4);
    draft_close(other);
    draft_close(d);
}

// The hash chains find what a search of the whole text finds, also after the memory has grown.
static void test_finds_every_match_of_a_long_text(void **state) {
    (void)state;
    struct draft *d = draft_open();
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        draft_add(d, &(int32_t){(int32_t)(random >> 26)}, 1);
        if (i < 5000 || i % 50) continue;
        guess(d);
        bool found = false;
        for (int at = DRAFT_LEAST; at < d->n && !found; at++)
            found = !memcmp(d->text + at - DRAFT_LEAST, d->text + d->n - DRAFT_LEAST, DRAFT_LEAST * sizeof *d->text);
        assert_int_equal(d->n_guess > 0, found);
        if (found) assert_true(d->match >= DRAFT_LEAST);
    }
    draft_close(d);
}

static void learn_often(struct draft *d, int match, int right, int of) {
    const int i = match - d->match;
    for (int k = 0; k < 100; k++) draft_learn(d, i, k % of < right);
}

static void test_chances_follow_what_was_right(void **state) {
    (void)state;
    struct draft *d = draft_open();
    ADD(d, 5, 6, 5, 6, 5, 6, 5, 6, 5);
    draft_guess(d, d->text + d->n - 3, 3); // a match of 3
    assert_true(draft_chance(d, 0) <= 0);  // nothing is expected of what was never right
    learn_often(d, 3, 1, 1);
    assert_true(draft_chance(d, 0) > 0.9f);
    assert_true(draft_chance(d, 10) > 0.9f); // nor less of what a longer match says
    learn_often(d, 13, 0, 1);
    assert_true(draft_chance(d, 10) < 0.1f); // until it is known
    learn_often(d, 3, 1, 2);
    assert_true(draft_chance(d, 0) > 0.4f && draft_chance(d, 0) < 0.6f);
    learn_often(d, 3, 0, 1);
    assert_true(draft_chance(d, 0) < 0.05f);
    draft_close(d);
}

// A model is taken at its word until it is known what that is worth.
static void test_chances_of_what_a_model_writes(void **state) {
    (void)state;
    struct draft *d = draft_open();
    draft_write(d, 17, 0.99f);
    draft_write(d, 18, 0.1f);
    assert_int_equal(d->n_guess, 2);
    assert_int_equal(d->guess[1], 18);
    assert_true(draft_chance(d, 0) > 0.8f);
    assert_true(draft_chance(d, 1) < 0.4f);
    for (int i = 0; i < 100; i++) draft_learn(d, 0, i % 2);
    assert_true(draft_chance(d, 0) > 0.4f && draft_chance(d, 0) < 0.6f);
    draft_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_guessed_where_nothing_matches),
        cmocka_unit_test(test_a_guess_is_what_followed),
        cmocka_unit_test(test_the_longest_match_and_then_the_latest),
        cmocka_unit_test(test_a_loop_is_guessed_as_far_as_guesses_go),
        cmocka_unit_test(test_no_guess_goes_from_one_text_into_another),
        cmocka_unit_test(test_another_branch_helps_where_its_match_is_longer),
        cmocka_unit_test(test_finds_every_match_of_a_long_text),
        cmocka_unit_test(test_chances_follow_what_was_right),
        cmocka_unit_test(test_chances_of_what_a_model_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
