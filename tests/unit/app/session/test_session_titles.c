// Titles that the model gives: when it is asked, with what, and what becomes of the answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_fixture.h"

#define QUESTION "Give this conversation a title of two to six words, in its language. Reply with the title only."

static struct model_info tiny = {.chat_template = "chatml", .thinking = ""};

static int setup_titles(void **state) {
    const int failed = setup(state);
    session_set_titles(session, &tiny);
    return failed;
}

static const char *title(void) { return chat(0)->conversation.title; }

// Its first answer is there; the model is asked for a title as request 2.
static void answer_first(const char *text) {
    send(0, "What is worth seeing in Oslo?");
    say(1, text);
    end(1, REQUEST_FINISHED, "");
    pass(1);
}

static void test_after_the_first_answer_the_model_gives_a_title(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_stops, "\n", NULL));
    send(0, "What is worth seeing in Oslo?");
    assert_string_equal(title(), "What is worth seeing in Oslo?");
    say(1, "The fjord.");
    end(1, REQUEST_FINISHED, "");
    assert_int_equal(engine.n_requests, 1); // not at once
    pass(1);
    assert_int_equal(engine.n_requests, 2);
    assert_string_equal(engine.prompt, "user: What is worth seeing in Oslo?|assistant: The fjord.|user: " QUESTION "|");
    assert_string_equal(engine.stops, "");
    assert_int_equal(engine.max_tokens, 32);
    assert_false(session_busy(chat(0)));
    say(2, "\"A trip ");
    say(2, "to Oslo\"");
    assert_string_equal(title(), "What is worth seeing in Oslo?");
    end(2, REQUEST_FINISHED, "");
    assert_string_equal(title(), "A trip to Oslo");
    assert_int_equal(told[SESSION_TITLED], 1);
    assert_int_equal(chat(0)->conversation.count, 2);
    send(0, "And in Bergen?");
    say(3, "Much.");
    end(3, REQUEST_FINISHED, "");
    pass(1);
    assert_int_equal(engine.n_requests, 3); // it has one
    settle();
    close_session();
    open_session();
    assert_string_equal(session_chat(session, 1)->conversation.title, "A trip to Oslo");
}

static void test_more_than_a_line_is_not_waited_for(void **state) {
    (void)state;
    answer_first("The fjord.");
    say(2, "A trip to Oslo\nThis title");
    assert_string_equal(title(), "A trip to Oslo");
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    say(2, " says");
    end(2, REQUEST_CANCELLED, "");
    assert_string_equal(title(), "A trip to Oslo");
}

static void test_what_is_no_title_leaves_the_first_words(void **state) {
    (void)state;
    answer_first("The fjord.");
    say(2, "Sure! Here are some thoughts on what a title of this conversation about a trip to Oslo could be");
    end(2, REQUEST_FINISHED, "");
    assert_string_equal(title(), "What is worth seeing in Oslo?");
    pass(60);
    assert_int_equal(engine.n_requests, 2);
}

static void test_a_title_that_a_person_gave_stays(void **state) {
    (void)state;
    answer_first("The fjord.");
    session_rename(chat(0), "Norway");
    say(2, "A trip to Oslo\n");
    end(2, REQUEST_FINISHED, "");
    assert_string_equal(title(), "Norway");
    send(0, "And in Bergen?");
    say(3, "Much.");
    end(3, REQUEST_FINISHED, "");
    pass(1);
    assert_int_equal(engine.n_requests, 3);
}

static void test_a_title_is_given_up_for_a_message(void **state) {
    (void)state;
    answer_first("The fjord.");
    say(2, "A trip");
    send(0, "And in Bergen?");
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    end(2, REQUEST_CANCELLED, "");
    pass(60);
    assert_int_equal(engine.n_requests, 3); // while that is answered, none is asked for
    say(3, "Much.");
    end(3, REQUEST_FINISHED, "");
    pass(1);
    assert_int_equal(engine.n_requests, 4);
    assert_string_equal(engine.prompt, "user: What is worth seeing in Oslo?|assistant: The fjord.|user: " QUESTION "|");
    say(4, "A trip to Oslo\n");
    assert_string_equal(title(), "A trip to Oslo");
}

// Also where the message is one of a chat that has a name.
static void test_a_title_that_was_given_up_is_asked_for_after_any_answer(void **state) {
    (void)state;
    answer_first("The fjord.");
    session_new(session);
    session_rename(chat(0), "Named");
    send(0, "What is a fjord?");
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    say(3, "A valley.");
    end(3, REQUEST_FINISHED, "");
    pass(1);
    say(4, "A trip to Oslo\n");
    assert_string_equal(chat(1)->conversation.title, "A trip to Oslo");
}

static void test_a_title_is_given_up_for_what_is_read_ahead(void **state) {
    (void)state;
    answer_first("The fjord.");
    session_read_ahead(session, chat(0), 1, "And in ", true);
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    assert_int_equal(engine.n_ahead, 1);
    pass(4);
    assert_int_equal(engine.n_requests, 2);
    pass(2);
    assert_int_equal(engine.n_requests, 3);
}

static void test_chats_get_their_titles_one_after_the_other(void **state) {
    (void)state;
    session_new(session);
    send(0, "one");
    send(1, "two");
    say(1, "First.");
    end(1, REQUEST_FINISHED, "");
    pass(60);
    assert_int_equal(engine.n_requests, 2);
    say(2, "Second.");
    end(2, REQUEST_FINISHED, "");
    pass(1);
    say(3, "The first\n");
    pass(1);
    say(4, "The second\n");
    assert_string_equal(chat(0)->conversation.title, "The first");
    assert_string_equal(chat(1)->conversation.title, "The second");
}

static void test_a_chat_that_is_deleted_needs_none(void **state) {
    (void)state;
    answer_first("The fjord.");
    session_delete(session, chat(0));
    settle();
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    end(2, REQUEST_CANCELLED, "");
}

static void test_where_none_is_asked_for(void **state) {
    (void)state;
    settings.name_chats = 0;
    answer_first("The fjord.");
    assert_int_equal(engine.n_requests, 1);
    settings.name_chats = 1;
    session_set_titles(session, NULL); // the built-in model
    session_ask(session, chat(0), 0, 1, NULL);
    say(2, "The opera.");
    end(2, REQUEST_FINISHED, "");
    pass(1);
    session_set_titles(session, &(struct model_info){.chat_template = "none", .thinking = ""});
    session_ask(session, chat(0), 0, 1, NULL);
    end(3, REQUEST_FAILED, "it went wrong");
    pass(1);
    assert_int_equal(engine.n_requests, 3);
}

static void test_a_text_that_is_gone_on_with_has_no_title_asked_for(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_template, "raw", NULL));
    answer_first("The fjord.");
    assert_int_equal(engine.n_requests, 1);
}

static void test_an_answer_that_failed_is_none_to_go_by(void **state) {
    (void)state;
    send(0, "What is worth seeing in Oslo?");
    end(1, REQUEST_FAILED, "it went wrong");
    pass(1);
    send(0, "Again?");
    say(2, "half");
    end(2, REQUEST_CANCELLED, "");
    pass(1);
    assert_int_equal(engine.n_requests, 2);
}

static void test_models_think_as_little_as_they_can(void **state) {
    (void)state;
    session_set_titles(
        session, &(struct model_info){.chat_template = "chatml", .thinking = "<think>", .chooses_thinking = true});
    answer_first("The fjord.");
    assert_int_equal(engine.reasoning, REASONING_OFF);
    assert_int_equal(engine.max_tokens, 32);
    session_set_titles(session, &(struct model_info){.chat_template = "chatml", .thinking = "<think>"});
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
    session_ask(session, chat(0), 0, 1, NULL);
    say(3, "The opera.");
    end(3, REQUEST_FINISHED, "");
    pass(1);
    assert_int_equal(engine.reasoning, REASONING_AUTO);
    assert_int_equal(engine.max_tokens, 512);
    happen((struct engine_event){
        .kind = EVENT_TEXT, .request = 4, .token = 1, .channel = CHANNEL_THINKING, .size = 11, .text = "A good one\n"});
    say(4, "A trip to Oslo\n");
    assert_string_equal(title(), "A trip to Oslo");
}

#define TITLE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_titles, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TITLE_TEST(test_after_the_first_answer_the_model_gives_a_title),
        TITLE_TEST(test_more_than_a_line_is_not_waited_for),
        TITLE_TEST(test_what_is_no_title_leaves_the_first_words),
        TITLE_TEST(test_a_title_that_a_person_gave_stays),
        TITLE_TEST(test_a_title_is_given_up_for_a_message),
        TITLE_TEST(test_a_title_that_was_given_up_is_asked_for_after_any_answer),
        TITLE_TEST(test_a_title_is_given_up_for_what_is_read_ahead),
        TITLE_TEST(test_chats_get_their_titles_one_after_the_other),
        TITLE_TEST(test_a_chat_that_is_deleted_needs_none),
        TITLE_TEST(test_where_none_is_asked_for),
        TITLE_TEST(test_a_text_that_is_gone_on_with_has_no_title_asked_for),
        TITLE_TEST(test_an_answer_that_failed_is_none_to_go_by),
        TITLE_TEST(test_models_think_as_little_as_they_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
