// A session without a screen: messages to a chat that is answering wait in line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_fixture.h"

static const struct text_list *line(int index) { return &chat(index)->conversation.waiting; }

static void test_messages_wait_for_the_answer_before_them(void **state) {
    (void)state;
    send(0, "one");
    send(0, "two");
    send(0, "three");
    assert_int_equal(engine.n_requests, 1);
    assert_int_equal(line(0)->count, 2);
    say(1, "1");
    end(1, REQUEST_FINISHED, "");
    assert_string_equal(engine.prompt, "user: one|assistant: 1|user: two|");
    assert_int_equal(line(0)->count, 1);
    say(2, "2");
    end(2, REQUEST_FINISHED, "");
    assert_string_equal(engine.prompt, "user: one|assistant: 1|user: two|assistant: 2|user: three|");
    assert_int_equal(line(0)->count, 0);
}

// Whoever stops an answer wants to say something else.
static void test_a_stopped_or_failed_answer_holds_the_line_up(void **state) {
    (void)state;
    send(0, "one");
    send(0, "two");
    session_stop(session, chat(0));
    end(1, REQUEST_CANCELLED, "");
    assert_int_equal(engine.n_requests, 1);
    send(0, "three"); // behind it
    assert_string_equal(engine.prompt, "user: one\n\ntwo|");
    end(2, REQUEST_FAILED, "no");
    assert_int_equal(engine.n_requests, 2);
    char *text = session_take_waiting(chat(0), 0);
    assert_string_equal(text, "three");
    free(text);
    assert_false(session_send_waiting(session, chat(0)));
}

// On the path that it was written on, and nowhere else.
static void test_the_end_of_another_branch_sends_nothing(void **state) {
    (void)state;
    send(0, "one");
    send(0, "two");
    session_ask(session, chat(0), 0, 1, NULL);
    end(1, REQUEST_FINISHED, "");
    assert_int_equal(engine.n_requests, 2);
    say(2, "1");
    end(2, REQUEST_FINISHED, "");
    assert_int_equal(engine.n_requests, 3);
    assert_string_equal(engine.prompt, "user: one|assistant: 1|user: two|");
}

static void test_steering_stops_the_answer_and_goes_on_at_once(void **state) {
    (void)state;
    send(0, "one");
    send(0, "two");
    say(1, "1");
    session_steer(session, chat(0), "rather this");
    assert_int_equal(engine.cancelled[0], 1);
    assert_int_equal(engine.n_requests, 1);
    end(1, REQUEST_CANCELLED, "");
    assert_string_equal(engine.prompt, "user: one|assistant: 1|user: rather this|");
    session_stop(session, chat(0));
    end(2, REQUEST_CANCELLED, "");
    assert_int_equal(line(0)->count, 1); // only what was steered goes on
    assert_int_equal(engine.n_requests, 2);
}

static void test_the_answer_that_is_steered_may_wait_for_an_engine(void **state) {
    (void)state;
    session_hold(session, true);
    send(0, "one");
    session_steer(session, chat(0), "two");
    session_hold(session, false);
    assert_string_equal(engine.prompt, "user: one\n\ntwo|");
}

static void test_what_waits_outlives_the_program(void **state) {
    (void)state;
    send(0, "one");
    send(0, " two\nlines \\n");
    send(0, "three");
    settle();
    close_session();
    open_session();
    assert_int_equal(line(1)->count, 2);
    assert_string_equal(line(1)->texts[0], " two\nlines \\n");
    assert_string_equal(line(1)->texts[1], "three");
    assert_false(session_send_waiting(session, chat(1))); // its messages are to come first
    session_read(session, chat(1));
    settle();
    assert_true(session_send_waiting(session, chat(1)));
    assert_string_equal(engine.prompt, "user: one\n\n two\nlines \\n|");
    free(session_take_waiting(chat(1), 0));
    settle();
    close_session();
    open_session();
    assert_int_equal(line(1)->count, 0);
}

// Also where the disk takes longer than a person.
static void test_messages_wait_for_those_that_are_still_to_be_read(void **state) {
    (void)state;
    send(0, "one");
    say(1, "first");
    end(1, REQUEST_FINISHED, "");
    close_session();
    open_session();
    const uint64_t requests = engine.n_requests;
    send(1, "two");
    send(1, "three");
    assert_int_equal(engine.n_requests, requests);
    settle();
    assert_string_equal(engine.prompt, "user: one|assistant: first|user: two|");
    assert_int_equal(line(1)->count, 1);
    assert_string_equal(line(1)->texts[0], "three");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_messages_wait_for_the_answer_before_them),
        SESSION_TEST(test_a_stopped_or_failed_answer_holds_the_line_up),
        SESSION_TEST(test_the_end_of_another_branch_sends_nothing),
        SESSION_TEST(test_steering_stops_the_answer_and_goes_on_at_once),
        SESSION_TEST(test_the_answer_that_is_steered_may_wait_for_an_engine),
        SESSION_TEST(test_what_waits_outlives_the_program),
        SESSION_TEST(test_messages_wait_for_those_that_are_still_to_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
