// Searching messages: the nearest match above first, round the ends, counted anew when a message changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ui/message_search.h"

static struct view_message messages[3];
static struct screen_view view;
static struct message_search search;

static void say(int message, const char *text) {
    messages[message].text = text;
    messages[message].size = strlen(text);
    messages[message].revision++;
}

static int setup(void **state) {
    (void)state;
    search = (struct message_search){0};
    for (int i = 0; i < 3; i++) messages[i].id = 4 * (uint64_t)(i + 1);
    say(0, "the end of the day"), say(1, "nothing"), say(2, "The THE");
    view = (struct screen_view){.messages = messages, .n_messages = 3};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    message_search_free(&search);
    return 0;
}

static void update(int step) {
    search.step = step;
    message_search_update(&search, &view, 1);
}

static void assert_at(uint64_t message, int at, int total) {
    assert_int_equal(search.message, message);
    assert_int_equal(search.at, at);
    assert_int_equal(search.total, total);
}

static void test_the_nearest_match_above_comes_first(void **state) {
    (void)state;
    message_search_set(&search, "the");
    update(0); // message 1 is in sight
    assert_at(4, 2, 4);
    assert_true(search.moved);
}

static void test_the_way_leads_round_the_ends(void **state) {
    (void)state;
    message_search_set(&search, "the");
    update(0), update(-1);
    assert_at(4, 1, 4);
    update(-1);
    assert_at(12, 4, 4);
    update(1);
    assert_at(4, 1, 4);
}

static void test_more_letters_begin_where_the_search_began(void **state) {
    (void)state;
    message_search_set(&search, "t");
    update(0);
    assert_at(8, 3, 5); // in what is in sight
    message_search_set(&search, "th");
    update(0);
    assert_at(8, 3, 5);
    message_search_set(&search, "the");
    update(0);
    assert_at(4, 2, 4);
}

static void test_messages_that_change_are_counted_anew(void **state) {
    (void)state;
    message_search_set(&search, "day");
    update(0);
    assert_at(4, 1, 1);
    say(1, "day by day");
    update(0);
    assert_at(4, 1, 3);
    say(0, "night"); // that it was at
    update(0);
    assert_at(8, 2, 2);
    say(1, "night");
    update(0);
    assert_at(0, 0, 0);
    update(1);
    assert_at(0, 0, 0);
}

static void test_the_row_of_a_match_is_found_in_the_layout(void **state) {
    (void)state;
    struct lines l = {0};
    const struct style plain = {0};
    static const char *const rows[] = {"the end", "of", "the day, the night"};
    for (int i = 0; i < 3; i++) lines_row(&l), lines_run(&l, 0, plain, rows[i], strlen(rows[i]));
    message_search_set(&search, "the");
    for (int match = 0; match < 4; match++) {
        search.match = match; // the last one stands for those that are hidden
        assert_int_equal(lines_row_of(&l, message_search_place(&search, &l)), match ? 2 : 0);
    }
    lines_free(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_the_nearest_match_above_comes_first),       TEST(test_the_way_leads_round_the_ends),
        TEST(test_more_letters_begin_where_the_search_began), TEST(test_messages_that_change_are_counted_anew),
        TEST(test_the_row_of_a_match_is_found_in_the_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
