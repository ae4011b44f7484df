// A session without a screen: what is asked where the context is full, and what is read ahead of a message.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/unit/session_fixture.h"

// ---- a full context ----

static void counted(uint64_t request, enum request_state state, enum finish_reason reason, int n_prompt,
                    int n_generated) {
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .request = request,
                                 .state = state,
                                 .reason = reason,
                                 .n_prompt = n_prompt,
                                 .n_generated = n_generated,
                                 .text = "it does not fit"});
}

// Four turns of 100 tokens each in a context of 500; then a fifth question.
static void fill_context(void) {
    engine.metrics.context = 500;
    for (uint64_t i = 1; i <= 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "question %d", (int)i);
        send(0, text);
        snprintf(text, sizeof text, "answer %d", (int)i);
        say(i, text);
        counted(i, REQUEST_FINISHED, FINISH_END, (int)i * 100 - 50, 50);
    }
    send(0, "question 5");
    assert_int_equal(engine.n_requests, 5);
    assert_int_equal(engine.room, 500 / 8);
}

static void test_a_full_context_leaves_out_the_oldest_messages(void **state) {
    (void)state;
    fill_context();
    counted(5, REQUEST_FAILED, FINISH_CONTEXT, 450, 0);
    assert_int_equal(engine.n_requests, 6);
    assert_string_equal(engine.prompt, "user: question 3|assistant: answer 3|user: question 4|assistant: answer 4|"
                                       "user: question 5|");
    assert_true(session_busy(chat(0)));
    assert_int_equal(told[SESSION_ENDED], 4);
    for (int m = 0; m < 9; m++) assert_int_equal(message(0, m)->use, m < 4 ? USE_DROPPED : USE_WHOLE);
    assert_non_null(strstr(message(0, 9)->notice, "4 older messages (about 200 tokens) are left out"));
    say(6, "answer 5");
    counted(6, REQUEST_FINISHED, FINISH_END, 250, 50);
    assert_int_equal(message(0, 8)->own_tokens, 50);
    // Restored and pinned: it stays, and those behind it go.
    session_use(chat(0), 0, USE_PINNED);
    send(0, "question 6");
    assert_non_null(strstr(engine.prompt, "user: question 1\n\nquestion 3|"));
    counted(7, REQUEST_FAILED, FINISH_CONTEXT, 450, 0);
    assert_string_equal(engine.prompt, "user: question 1\n\nquestion 5|assistant: answer 5|user: question 6|");
    settle();
    close_session();
    told_engine_reset();
    open_session();
    session_read(session, chat(1));
    settle();
    assert_int_equal(message(1, 0)->use, USE_PINNED);
    assert_int_equal(message(1, 1)->use, USE_DROPPED);
    assert_int_equal(message(1, 8)->use, USE_WHOLE);
    assert_int_equal(message(1, 8)->own_tokens, 50);
}

static void test_an_answer_goes_on_beyond_the_context(void **state) {
    (void)state;
    fill_context();
    for (int i = 0; i < 60; i++) say(5, "word ");
    counted(5, REQUEST_FINISHED, FINISH_CONTEXT, 440, 60);
    assert_int_equal(engine.n_requests, 6);
    assert_string_equal(engine.prompt, "user: question 4|assistant: answer 4|user: question 5|");
    assert_int_equal(engine.n_begun, 60);
    assert_int_equal(strlen(message(0, 9)->text), 300); // until it comes again
    assert_non_null(strstr(message(0, 9)->notice, "6 older messages"));
    struct engine_event given = {
        .kind = EVENT_TEXT, .request = 6, .token = 1, .probability = NAN, .entropy = NAN, .size = 5, .text = "word "};
    for (int i = 0; i < 60; i++) happen(given);
    say(6, "and more");
    assert_int_equal(strlen(message(0, 9)->text), 308);
    assert_int_equal(message(0, 9)->drawn.count, 61);
    assert_true(session_busy(chat(0)));
    // With nothing left to leave out it ends.
    session_use(chat(0), 6, USE_PINNED);
    session_use(chat(0), 7, USE_PINNED);
    counted(6, REQUEST_FINISHED, FINISH_CONTEXT, 439, 61);
    assert_false(session_busy(chat(0)));
    assert_non_null(strstr(message(0, 9)->note, "the context is full"));
    assert_int_equal(strlen(message(0, 9)->text), 308);
}

static void say_as(uint64_t request, int answer, int words) {
    for (int i = 0; i < words; i++)
        happen((struct engine_event){
            .kind = EVENT_TEXT, .request = request, .answer = answer, .token = 1, .size = 5, .text = "word "});
}

static void end_as(uint64_t request, int answer, enum finish_reason reason, int n_generated) {
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .request = request,
                                 .answer = answer,
                                 .state = reason == FINISH_CANCELLED ? REQUEST_CANCELLED : REQUEST_FINISHED,
                                 .reason = reason,
                                 .n_prompt = 440,
                                 .n_generated = n_generated});
}

// Each with a request of its own from there on; what was left out for the first of them suffices for the others.
static void test_each_of_several_answers_goes_on_beyond_the_context(void **state) {
    (void)state;
    static const char rest[] = "user: question 4|assistant: answer 4|user: question 5|";
    fill_context();
    counted(5, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    session_ask(session, chat(0), 8, 4, NULL);
    for (int answer = 0; answer < 4; answer++) say_as(6, answer, 50);
    say_as(6, 0, 10);
    end_as(6, 0, FINISH_CONTEXT, 60);
    assert_int_equal(engine.n_requests, 7);
    assert_int_equal(engine.n_answers, 1);
    assert_int_equal(engine.n_begun, 60);
    assert_string_equal(engine.prompt, rest);
    assert_non_null(strstr(message(0, 10)->notice, "6 older messages"));
    say_as(6, 2, 10);
    end_as(6, 2, FINISH_CONTEXT, 60);
    assert_int_equal(engine.n_requests, 8);
    assert_string_equal(engine.prompt, rest);
    assert_string_equal(message(0, 12)->notice, message(0, 10)->notice);
    for (int m = 0; m < 9; m++) assert_int_equal(message(0, m)->use, m < 6 ? USE_DROPPED : USE_WHOLE);
    // The others have been asked with all of them: that says nothing of those that are left.
    end_as(6, 1, FINISH_CANCELLED, 50);
    end_as(6, 3, FINISH_END, 50);
    assert_int_equal(message(0, 13)->state, MESSAGE_COMPLETE);
    assert_int_equal(message(0, 13)->own_tokens, 50);
    assert_int_equal(message(0, 8)->own_tokens, 0);
    say_as(7, 0, 61);
    say_as(8, 0, 62);
    assert_int_equal(strlen(message(0, 10)->text), 305);
    assert_int_equal(strlen(message(0, 12)->text), 310);
    end_as(8, 0, FINISH_END, 62);
    end_as(7, 0, FINISH_END, 61);
    assert_false(session_busy(chat(0)));
}

static void test_what_is_left_out_is_a_setting(void **state) {
    (void)state;
    settings.overflow = OVERFLOW_ASK;
    fill_context();
    counted(5, REQUEST_FAILED, FINISH_CONTEXT, 450, 0);
    assert_int_equal(engine.n_requests, 5);
    assert_string_equal(message(0, 9)->note, "it does not fit");
    assert_int_equal(message(0, 0)->use, USE_WHOLE);
    assert_true(session_make_room(session, chat(0))); // as somebody says who was asked
    counted(6, REQUEST_FAILED, FINISH_CONTEXT, 450, 0);
    assert_int_equal(engine.n_requests, 7);
    assert_int_equal(message(0, 0)->use, USE_DROPPED);
    settings.overflow = OVERFLOW_STOP;
    counted(7, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    send(0, "question 6");
    assert_int_equal(engine.room, 0);
    counted(8, REQUEST_FAILED, FINISH_CONTEXT, 501, 0);
    assert_int_equal(engine.n_requests, 8);
    assert_false(session_busy(chat(0)));
}

static void test_a_message_that_never_fits_leaves_nothing_out(void **state) {
    (void)state;
    char large[4001];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    fill_context();
    counted(5, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    send(0, large);
    counted(6, REQUEST_FAILED, FINISH_CONTEXT, 1400, 0);
    assert_int_equal(engine.n_requests, 6);
    assert_false(session_busy(chat(0)));
    for (int m = 0; m < 9; m++) assert_int_equal(message(0, m)->use, USE_WHOLE);
    // One that leaves less room than wanted, and nothing before it, makes do with that.
    session_new(session);
    send(0, "much");
    counted(7, REQUEST_FAILED, FINISH_CONTEXT, 480, 0);
    assert_int_equal(engine.n_requests, 8);
    assert_int_equal(engine.room, 0);
}

static void refuse(uint64_t request, int answer, int n_prompt) {
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .request = request,
                                 .answer = answer,
                                 .state = REQUEST_FAILED,
                                 .reason = FINISH_CONTEXT,
                                 .n_prompt = n_prompt});
}

static void test_several_answers_are_refused_and_asked_for_again_together(void **state) {
    (void)state;
    fill_context();
    counted(5, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    session_ask(session, chat(0), 8, 2, NULL);
    for (int answer = 0; answer < 2; answer++) refuse(6, answer, 450);
    assert_int_equal(engine.n_requests, 7);
    assert_int_equal(engine.n_answers, 2);
    for (int answer = 0; answer < 2; answer++) refuse(7, answer, 2000);
    assert_false(session_busy(chat(0)));
    assert_int_equal(engine.n_requests, 7);
}

// Before it hears that it was refused, or while it waits for the others to hear that.
static void test_a_refused_answer_that_is_stopped_is_not_asked_for_again(void **state) {
    (void)state;
    fill_context();
    counted(5, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    session_ask(session, chat(0), 8, 3, NULL);
    refuse(6, 0, 450);
    session_stop_answer(session, chat(0), 10);
    assert_int_equal(message(0, 10)->state, MESSAGE_STOPPED);
    session_stop_answer(session, chat(0), 12);
    assert_int_equal(message(0, 12)->state, MESSAGE_STREAMING);
    refuse(6, 1, 450);
    assert_int_equal(engine.n_requests, 6);
    refuse(6, 2, 450);
    assert_int_equal(message(0, 12)->state, MESSAGE_STOPPED);
    assert_string_equal(message(0, 12)->note, "stopped");
    assert_int_equal(engine.n_requests, 7);
    assert_int_equal(engine.n_answers, 1);
    assert_int_equal(message(0, 11)->state, MESSAGE_STREAMING);
    session_stop_answer(session, chat(0), 11); // all of a request
    refuse(7, 0, 450);
    assert_int_equal(engine.n_requests, 7);
    assert_false(session_busy(chat(0)));
}

static void test_an_answer_without_its_question_keeps_the_turns(void **state) {
    (void)state;
    fill_context();
    session_use(chat(0), 0, USE_DROPPED);
    session_use(chat(0), 4, USE_DROPPED);
    counted(5, REQUEST_FINISHED, FINISH_END, 450, 1);
    session_ask(session, chat(0), 8, 1, NULL);
    assert_string_equal(engine.prompt, "user: [...]|assistant: answer 1|user: question 2|assistant: answer 2|"
                                       "user: [...]|assistant: answer 3|user: question 4|assistant: answer 4|"
                                       "user: question 5|");
}

static void test_of_a_folded_message_the_beginning_is_asked_with(void **state) {
    (void)state;
    char large[401];
    for (int i = 0; i < 400; i++) large[i] = "bä"[i % 3];
    large[400] = 0;
    large[399] = 'c';
    send(0, large);
    session_use(chat(0), 0, USE_FOLDED);
    session_ask(session, chat(0), 0, 1, NULL);
    assert_int_equal(strlen(engine.prompt), strlen("user: |") + 199 + strlen(" [...]"));
    assert_non_null(strstr(engine.prompt, " [...]|"));
}

// ---- what is being written ----

static void test_whole_words_of_a_message_are_read_ahead(void **state) {
    (void)state;
    fill_context();
    session_read_ahead(session, chat(0), 9, "and th", false); // the answer is still to come
    assert_int_equal(engine.n_ahead, 0);
    counted(5, REQUEST_FINISHED, FINISH_END, 450, 1);
    session_use(chat(0), 0, USE_DROPPED);
    session_use(chat(0), 1, USE_DROPPED);
    session_use(chat(0), 2, USE_DROPPED);
    session_use(chat(0), 3, USE_DROPPED);
    session_read_ahead(session, chat(0), 7, "and", false);
    assert_int_equal(engine.n_ahead, 0);
    session_read_ahead(session, chat(0), 7, "and th", false);
    assert_string_equal(engine.ahead, "user: question 3|assistant: answer 3|user: question 4|assistant: answer 4|"
                                      "user: and|");
    session_read_ahead(session, chat(0), 7, "and then", false); // no other words are whole
    assert_int_equal(engine.n_ahead, 1);
    session_read_ahead(session, chat(0), 7, "and then ", false);
    assert_int_equal(engine.n_ahead, 2);
    assert_non_null(strstr(engine.ahead, "user: and then|"));
    session_read_ahead(session, chat(0), 7, "and then I\n", true); // all of it
    assert_int_equal(engine.n_ahead, 3);
    assert_non_null(strstr(engine.ahead, "user: and then I|"));
    session_read_ahead(session, chat(0), 7, "and then I ", false); // that is there already
    assert_int_equal(engine.n_ahead, 3);
    session_read_ahead(session, chat(0), 7, "", false);
    assert_string_equal(engine.ahead, "");
    session_read_ahead(session, chat(0), -1, "first of all ", false);
    assert_string_equal(engine.ahead, "user: first of all|");
    send(0, "sent");
    assert_string_equal(engine.ahead, "");
    assert_int_equal(engine.n_requests, 6);
}

static void test_what_is_cached_of_a_chat_is_found_out(void **state) {
    (void)state;
    fill_context();
    session_find(session, chat(0));
    session_find(session, chat(0)); // one at a time
    assert_int_equal(engine.n_ahead, 1);
    assert_non_null(strstr(engine.ahead, "user: question 5"));
    happen((struct engine_event){
        .kind = EVENT_STATE, .request = TOLD_AHEAD, .state = REQUEST_FINISHED, .n_prompt = 440, .n_reused = 430});
    assert_int_equal(chat(0)->n_asked, 440);
    assert_int_equal(chat(0)->n_cached, 430);
    session_find(session, chat(0));
    assert_int_equal(engine.n_ahead, 2);
    session_set_client(session, engine.client, "Other name");
    assert_int_equal(chat(0)->n_asked, 440);
    session_abandon(session, "stopped for another model");
    session_set_client(session, NULL, "Other name"); // what comes has cached nothing
    assert_int_equal(chat(0)->n_asked, 0);
}

static void test_what_is_read_ahead_beside_answers_has_settled(void **state) {
    (void)state;
    engine.metrics.running = 1;
    session_read_ahead(session, chat(0), -1, "some words ", false);
    assert_int_equal(engine.n_ahead, 0);
    session_read_ahead(session, chat(0), -1, "some words ", true);
    assert_int_equal(engine.n_ahead, 1);
    session_read_ahead(session, chat(0), -1, "some words a", false);
    assert_string_equal(engine.ahead, "");
    assert_int_equal(engine.n_ahead, 1);
}

static void test_nothing_is_read_ahead_if_unwanted(void **state) {
    (void)state;
    settings.read_ahead = 0;
    session_read_ahead(session, chat(0), -1, "some words ", false);
    settings.read_ahead = 1;
    session_hold(session, true);
    session_read_ahead(session, chat(0), -1, "some words ", false);
    session_hold(session, false);
    assert_int_equal(engine.n_ahead, 0);
    session_read_ahead(session, chat(0), -1, "some words ", false);
    assert_int_equal(engine.n_ahead, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_a_full_context_leaves_out_the_oldest_messages),
        SESSION_TEST(test_an_answer_goes_on_beyond_the_context),
        SESSION_TEST(test_each_of_several_answers_goes_on_beyond_the_context),
        SESSION_TEST(test_what_is_left_out_is_a_setting),
        SESSION_TEST(test_a_message_that_never_fits_leaves_nothing_out),
        SESSION_TEST(test_several_answers_are_refused_and_asked_for_again_together),
        SESSION_TEST(test_a_refused_answer_that_is_stopped_is_not_asked_for_again),
        SESSION_TEST(test_an_answer_without_its_question_keeps_the_turns),
        SESSION_TEST(test_of_a_folded_message_the_beginning_is_asked_with),
        SESSION_TEST(test_whole_words_of_a_message_are_read_ahead),
        SESSION_TEST(test_what_is_cached_of_a_chat_is_found_out),
        SESSION_TEST(test_what_is_read_ahead_beside_answers_has_settled),
        SESSION_TEST(test_nothing_is_read_ahead_if_unwanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
