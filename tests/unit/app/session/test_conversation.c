// The tree of messages: paths, versions, titles.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "app/session/conversation.h"

static struct conversation talk;

static int talk_open(void **state) {
    (void)state;
    struct settings s = settings_default();
    conversation_open(&talk, 1, &s);
    return 0;
}

static int talk_close(void **state) {
    (void)state;
    conversation_close(&talk);
    return 0;
}

static int add(int parent, enum message_role role, const char *text) {
    return conversation_add(&talk, parent, role, text, strlen(text));
}

static void assert_path(int n, const int *expected) {
    int path[64];
    assert_int_equal(conversation_path(&talk, path), n);
    for (int i = 0; i < n; i++) assert_int_equal(path[i], expected[i]);
    assert_int_equal(conversation_last(&talk), n ? expected[n - 1] : -1);
}
#define ASSERT_PATH(...) assert_path(sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

static void test_an_empty_one_has_no_path(void **state) {
    (void)state;
    assert_path(0, NULL);
}

static void test_messages_follow_each_other(void **state) {
    (void)state;
    int question = add(-1, MESSAGE_USER, "q"), answer = add(question, MESSAGE_MODEL, "a");
    int more = add(answer, MESSAGE_USER, "q2");
    ASSERT_PATH(question, answer, more);
}

static void test_regenerating_keeps_the_old_answer(void **state) {
    (void)state;
    int total, question = add(-1, MESSAGE_USER, "q"), first = add(question, MESSAGE_MODEL, "one");
    int reply = add(first, MESSAGE_USER, "reply to one"), second = add(question, MESSAGE_MODEL, "two");
    ASSERT_PATH(question, second);
    assert_int_equal(conversation_version(&talk, second, &total), 2);
    assert_int_equal(total, 2);
    assert_true(conversation_switch(&talk, second, -1));
    ASSERT_PATH(question, first, reply); // what was said after it is there again
    assert_int_equal(conversation_version(&talk, first, &total), 1);
    assert_false(conversation_switch(&talk, first, -1)); // there is none before
    assert_true(conversation_switch(&talk, first, 9));
    ASSERT_PATH(question, second);
}

static void test_first_messages_have_versions_too(void **state) {
    (void)state;
    int total, one = add(-1, MESSAGE_USER, "one"), two = add(-1, MESSAGE_USER, "two");
    ASSERT_PATH(two);
    assert_int_equal(conversation_version(&talk, two, &total), 2);
    assert_true(conversation_switch(&talk, two, -1));
    ASSERT_PATH(one);
}

static void test_versions_of_all_at_once(void **state) {
    (void)state;
    int numbers[8], totals[9], total;
    int one = add(-1, MESSAGE_USER, "one");
    add(one, MESSAGE_MODEL, "a");
    add(-1, MESSAGE_USER, "two");
    add(one, MESSAGE_MODEL, "b");
    add(3, MESSAGE_USER, "c");
    conversation_versions(&talk, numbers, totals);
    for (int i = 0; i < talk.count; i++) {
        assert_int_equal(numbers[i], conversation_version(&talk, i, &total));
        assert_int_equal(totals[talk.messages[i].parent + 1], total);
    }
}

static void test_choosing_leads_the_path_through_a_message(void **state) {
    (void)state;
    int question = add(-1, MESSAGE_USER, "q"), first = add(question, MESSAGE_MODEL, "one");
    int reply = add(first, MESSAGE_USER, "r");
    int second = add(question, MESSAGE_MODEL, "two");
    ASSERT_PATH(question, second);
    conversation_choose(&talk, reply);
    ASSERT_PATH(question, first, reply);
}

static void test_pruning_takes_all_that_comes_after(void **state) {
    (void)state;
    int total, question = add(-1, MESSAGE_USER, "q"), one = add(question, MESSAGE_MODEL, "one");
    int reply = add(one, MESSAGE_USER, "reply"), two = add(question, MESSAGE_MODEL, "two");
    int three = add(question, MESSAGE_MODEL, "three");
    assert_int_equal(conversation_prune(&talk, one), 2);
    ASSERT_PATH(question, three); // which was not touched
    assert_int_equal(conversation_version(&talk, two, &total), 1);
    assert_int_equal(total, 2);
    assert_int_equal(conversation_prune(&talk, three), 1);
    ASSERT_PATH(question, two); // the version before it
    assert_false(conversation_switch(&talk, two, -1));
    assert_int_equal(conversation_prune(&talk, question), 2); // what is gone already does not count
    assert_path(0, NULL);
    assert_true(talk.messages[reply].pruned);
}

static void test_prunings_are_taken_back_one_by_one(void **state) {
    (void)state;
    int total, question = add(-1, MESSAGE_USER, "q"), one = add(question, MESSAGE_MODEL, "one");
    int reply = add(one, MESSAGE_USER, "reply"), two = add(question, MESSAGE_MODEL, "two");
    conversation_prune(&talk, reply);
    conversation_prune(&talk, one);
    conversation_prune(&talk, two);
    ASSERT_PATH(question);
    assert_int_equal(conversation_restore(&talk), two);
    ASSERT_PATH(question, two);
    assert_int_equal(conversation_restore(&talk), one);
    ASSERT_PATH(question, two); // as before
    assert_int_equal(conversation_version(&talk, two, &total), 2);
    assert_int_equal(conversation_restore(&talk), reply);
    conversation_switch(&talk, two, -1);
    ASSERT_PATH(question, one, reply);
    assert_int_equal(conversation_restore(&talk), -1);
}

// The one that is asked for goes too where it is not among them, and is there again when it is taken back.
static void test_marked_versions_are_kept_together(void **state) {
    (void)state;
    int total, question = add(-1, MESSAGE_USER, "q"), answers[4];
    for (int i = 0; i < 4; i++) answers[i] = add(question, MESSAGE_MODEL, "answer");
    int reply = add(answers[2], MESSAGE_USER, "reply");
    talk.messages[answers[1]].marked = talk.messages[answers[3]].marked = true;
    assert_int_equal(conversation_marked(&talk, answers[0]), 2);
    assert_int_equal(conversation_keep(&talk, answers[2]), 3); // with the reply
    ASSERT_PATH(question, answers[1]);
    assert_int_equal(conversation_version(&talk, answers[3], &total), 2);
    assert_int_equal(total, 2);
    assert_int_equal(conversation_marked(&talk, answers[1]), 0);
    assert_int_equal(conversation_restore(&talk), answers[0]);
    ASSERT_PATH(question, answers[2], reply);
    talk.messages[answers[1]].marked = talk.messages[answers[2]].marked = true;
    assert_int_equal(conversation_keep(&talk, answers[2]), 2);
    ASSERT_PATH(question, answers[2], reply);
}

static void test_a_branch_has_a_name_of_one_line(void **state) {
    (void)state;
    int question = add(-1, MESSAGE_USER, "q");
    conversation_name(&talk, question, " plan B\nand more");
    assert_string_equal(talk.messages[question].name, "plan B");
    conversation_name(&talk, question, "  ");
    assert_null(talk.messages[question].name);
}

static void test_text_grows(void **state) {
    (void)state;
    int m = add(-1, MESSAGE_MODEL, "");
    uint32_t revision = talk.messages[m].revision;
    for (int i = 0; i < 1000; i++) conversation_append(&talk, m, "word ", 5);
    assert_int_equal(talk.messages[m].size, 5000);
    assert_int_equal(strlen(talk.messages[m].text), 5000);
    assert_true(talk.messages[m].revision > revision);
    conversation_append(&talk, m, "a\0b", 3);
    assert_string_equal(talk.messages[m].text + 5000, "a\xef\xbf\xbd"
                                                      "b");
    assert_int_equal(talk.messages[m].size, 5005);
}

static void test_the_title_is_the_first_line(void **state) {
    (void)state;
    add(-1, MESSAGE_USER, "\n  Tell me of Oslo\nand more");
    assert_string_equal(talk.title, "Tell me of Oslo");
    add(0, MESSAGE_USER, "something else");
    assert_string_equal(talk.title, "Tell me of Oslo");
    conversation_rename(&talk, "Trip");
    assert_string_equal(talk.title, "Trip");
    assert_true(talk.named);
    conversation_rename(&talk, " ");
    assert_string_equal(talk.title, "Tell me of Oslo");
    assert_false(talk.named);
}

static void test_a_long_title_is_cut_at_a_character(void **state) {
    (void)state;
    char text[400];
    for (int i = 0; i < 133; i++) memcpy(text + 3 * i, "\xe6\xbc\xa2", 3);
    text[399] = 0;
    add(-1, MESSAGE_USER, text);
    assert_int_equal(strlen(talk.title) % 3, 0);
    assert_true(strlen(talk.title) > 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_one_has_no_path, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_messages_follow_each_other, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_regenerating_keeps_the_old_answer, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_first_messages_have_versions_too, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_versions_of_all_at_once, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_choosing_leads_the_path_through_a_message, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_pruning_takes_all_that_comes_after, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_prunings_are_taken_back_one_by_one, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_marked_versions_are_kept_together, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_a_branch_has_a_name_of_one_line, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_text_grows, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_the_title_is_the_first_line, talk_open, talk_close),
        cmocka_unit_test_setup_teardown(test_a_long_title_is_cut_at_a_character, talk_open, talk_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
