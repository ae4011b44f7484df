// What of a model's words is taken as a title.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/title.h"

static void assert_title(const char *answer, const char *title) {
    char *found = title_of_answer(answer, strlen(answer), true);
    if (!title) assert_null(found);
    else assert_string_equal(found, title);
    free(found);
}

static void test_a_short_line_is_taken_as_it_is(void **state) {
    (void)state;
    assert_title("Lifetimes in Rust", "Lifetimes in Rust");
    assert_title("Wozu braucht man C#?", "Wozu braucht man C#?");
    assert_title("東京への旅", "東京への旅");
    assert_title("\"Emma\" and \"Persuasion\"", "\"Emma\" and \"Persuasion\"");
    assert_title("And so on...", "And so on...");
}

static void test_what_stands_around_it_goes(void **state) {
    (void)state;
    assert_title("  \"Lifetimes in Rust\"\n", "Lifetimes in Rust");
    assert_title("**Title: Lifetimes in Rust.**", "Lifetimes in Rust");
    assert_title("# “Lifetimes”", "Lifetimes");
    assert_title("Title: `grep`", "grep");
    assert_title("- *A trip to Oslo*.", "A trip to Oslo");
    assert_title("„Reise nach Oslo“", "Reise nach Oslo");
}

static void test_the_first_line_that_says_something(void **state) {
    (void)state;
    assert_title("\n\nHere is a title:\n\nA trip to Oslo\nIt is short.", "A trip to Oslo");
    assert_title("<think>\nA trip", "A trip");
    assert_title("", NULL);
    assert_title(" \n\"\"\n**\n", NULL);
    assert_title("This conversation is about a trip to Oslo, about what one can see there, and about what it costs.",
                 NULL);
}

static void test_a_line_that_may_go_on_is_not_taken(void **state) {
    (void)state;
    assert_null(title_of_answer("A trip to", 9, false));
    char *title = title_of_answer("A trip\nto", 9, false);
    assert_string_equal(title, "A trip");
    free(title);
}

static void test_a_title_holds_nothing_that_a_terminal_obeys(void **state) {
    (void)state;
    assert_title("A\033[31m trip\ato \xff Oslo\x7f", "A [31m trip to Oslo");
    assert_title("A \xe2\x80\xae trip", "A trip");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_short_line_is_taken_as_it_is),
        cmocka_unit_test(test_what_stands_around_it_goes),
        cmocka_unit_test(test_the_first_line_that_says_something),
        cmocka_unit_test(test_a_line_that_may_go_on_is_not_taken),
        cmocka_unit_test(test_a_title_holds_nothing_that_a_terminal_obeys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
