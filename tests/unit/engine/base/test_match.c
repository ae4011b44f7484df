// Matches: letter case aside, whole letters, the best titles first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "engine/base/match.h"

static void assert_found(const char *needle, const char *text, size_t from, size_t start, size_t end) {
    const struct match_needle n = match_needle(needle, strlen(needle));
    size_t at, to;
    assert_true(match_find(&n, text, strlen(text), from, &at, &to));
    assert_int_equal(at, start);
    assert_int_equal(to, end);
}

static void assert_missing(const char *needle, const char *text, size_t from) {
    const struct match_needle n = match_needle(needle, strlen(needle));
    size_t at, to;
    assert_false(match_find(&n, text, strlen(text), from, &at, &to));
}

static void test_case_is_left_aside(void **state) {
    (void)state;
    assert_found("RUST", "why rust", 0, 4, 8);
    assert_found("\xc3\x9c"
                 "ber",
                 "dar\xc3\xbc"
                 "ber",
                 0, 3, 8); // Über, darüber
    assert_missing("rust", "rus", 0);
    assert_missing("", "anything", 0);
}

static void test_matches_are_found_one_behind_the_other(void **state) {
    (void)state;
    assert_found("aa", "aaaa", 0, 0, 2);
    assert_found("aa", "aaaa", 2, 2, 4);
    assert_missing("aa", "aaaa", 3);
    assert_found("aab", "aaab", 0, 1, 4); // after a beginning that leads nowhere
}

static void test_broken_text_is_no_trap(void **state) {
    (void)state;
    assert_missing("x", "\xff\xc3", 0);
    assert_found("\xef\xbf\xbd", "a\xff", 0, 1, 2); // what is shown in its place
}

static void test_first_of_several_words(void **state) {
    (void)state;
    assert_int_equal(match_first("one two three", 13, "three TWO"), 4);
    assert_int_equal(match_first("one two three", 13, "\"three\" four"), 8);
    assert_int_equal(match_first("one two three", 13, "four"), 0);
}

static void test_titles_are_scored(void **state) {
    (void)state;
    const char *words = "rust";
    const int begins = match_score("Rust lifetimes", words), word = match_score("About Rust", words);
    const int piece = match_score("Trusted", words), letters = match_score("Trip up some time", "trp tim");
    assert_true(begins > word && word > piece && piece > MATCH_LETTERS_ONLY);
    assert_int_equal(letters, MATCH_LETTERS_ONLY);
    assert_int_equal(match_score("Poem", words), -1);
    assert_int_equal(match_score("Rust", "rust poem"), -1);
    assert_int_equal(match_score("Anything", "  "), 0);
}

static void test_misspelt_words_are_near_their_names(void **state) {
    (void)state;
    assert_int_equal(match_distance("model", "MODEL"), 0);
    assert_int_equal(match_distance("modle", "model"), 2);
    assert_int_equal(match_distance("exprt", "export"), 1);
    assert_int_equal(match_distance("attach", "attach-file"), 1); // a beginning
    assert_int_equal(match_distance("", "quit"), 1);
    assert_int_equal(match_distance("quit", ""), 4);
    char longest[3 * MATCH_LETTERS];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(match_distance("a", longest), 1);
    assert_int_equal(match_distance(longest, "a"), sizeof longest - 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_is_left_aside),     cmocka_unit_test(test_matches_are_found_one_behind_the_other),
        cmocka_unit_test(test_broken_text_is_no_trap), cmocka_unit_test(test_first_of_several_words),
        cmocka_unit_test(test_titles_are_scored),      cmocka_unit_test(test_misspelt_words_are_near_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
