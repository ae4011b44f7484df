// A session without a screen: an engine that does what it is told answers several requests of several chats.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/session_fixture.h"

// The fork begins with the tokens before, and they keep their figures; it is another version of the answer.
static void test_an_answer_is_forked_at_a_token(void **state) {
    (void)state;
    send(0, "question");
    say_token(1, 1, "one ", false);
    say_token(1, 2, "two ", false);
    say_token(1, 3, "three", false);
    session_fork(session, chat(0), 1, 1, 102, NULL); // while it streams
    assert_int_equal(engine.n_requests, 2);
    assert_string_equal(engine.prompt, "user: question|");
    assert_int_equal(engine.n_begun, 2);
    assert_memory_equal(engine.begun, ((int32_t[]){1, 102}), 2 * sizeof(int32_t));
    assert_string_equal(engine.begun_text, "");
    assert_int_equal(conversation_last(&chat(0)->conversation), 2);
    say_token(2, 1, "one ", true);
    say_token(2, 102, "else ", true);
    say_token(2, 4, "four", false);
    const struct message_tokens *drawn = &message(0, 2)->drawn;
    assert_string_equal(message(0, 2)->text, "one else four");
    assert_int_equal(drawn->count, 3);
    assert_true(drawn->tokens[0].probability > 0.49f && drawn->tokens[1].probability < 0.26f);
    assert_int_equal(drawn->tokens[1].n_alternatives, 1);
    end(2, REQUEST_FINISHED, "");
    session_fork(session, chat(0), 2, 2, -1, "typed");
    assert_int_equal(engine.n_begun, 2);
    assert_string_equal(engine.begun_text, "typed");
    session_set_client(session, engine.client, "Other 2B"); // to which the tokens mean nothing
    session_fork(session, chat(0), 2, 1, 102, "typed");
    assert_int_equal(engine.n_begun, 0);
    assert_string_equal(engine.begun_text, "one elsetyped");
    assert_string_equal(message(0, 1)->text, "one two three");
    say_token(1, 5, "!", false); // the first one goes on
    assert_string_equal(message(0, 1)->text, "one two three!");
}

// The whole answer once more, and as many tokens behind it as a new one may have.
static void test_an_answer_goes_on_behind_its_last_token(void **state) {
    (void)state;
    send(0, "question");
    chat(0)->conversation.settings.max_tokens = 10;
    say_token(1, 1, "one ", false);
    say_token(1, 2, "two", false);
    end(1, REQUEST_FINISHED, "");
    session_fork(session, chat(0), 1, 2, -1, NULL);
    assert_int_equal(engine.n_begun, 2);
    assert_memory_equal(engine.begun, ((int32_t[]){1, 2}), 2 * sizeof(int32_t));
    assert_string_equal(engine.begun_text, "");
    assert_int_equal(engine.max_tokens, 12);
    say_token(2, 1, "one ", true);
    say_token(2, 2, "two", true);
    say_token(2, 3, " three", false);
    end(2, REQUEST_FINISHED, "");
    assert_string_equal(message(0, 2)->text, "one two three");
    assert_true(message(0, 2)->drawn.tokens[1].probability > 0.49f);
    assert_string_equal(message(0, 1)->text, "one two");
    session_fork(session, chat(0), 2, 3, -1, " typed");
    assert_int_equal(engine.n_begun, 3);
    assert_string_equal(engine.begun_text, " typed");
    assert_int_equal(engine.max_tokens, 13);
    session_fork(session, chat(0), 2, 2, -1, NULL); // at a token there is one answer, with one limit
    assert_int_equal(engine.max_tokens, 10);
}

// What is given says nothing of the speed.
static void test_given_tokens_are_not_counted_in_the_rate(void **state) {
    (void)state;
    send(0, "question");
    say_token(1, 1, "one", true);
    pass(100);
    say_token(1, 2, "two", false);
    for (int i = 0; i < 10; i++) pass(0.1), say_token(1, 3, "x", false);
    struct engine_event event = {
        .kind = EVENT_STATE, .request = 1, .state = REQUEST_FINISHED, .reason = FINISH_END, .n_generated = 12};
    happen(event);
    assert_string_equal(message(0, 1)->note, "10.0 tok/s, 12 tokens, first 100.0 s");
}

static void test_answers_may_have_their_own_sampling(void **state) {
    (void)state;
    struct sampling own[2] = {sampling_default(), sampling_default()};
    own[0].temperature = 0.25f, own[1].temperature = 2;
    send(0, "question");
    end(1, REQUEST_FINISHED, "");
    session_ask(session, chat(0), 0, 2, own);
    assert_int_equal(engine.n_answers, 2);
    assert_true(engine.samplings[0].temperature == 0.25f && engine.samplings[1].temperature == 2);
    session_set_sampling(session, chat(0), &settings.sampling);
    assert_int_equal(engine.n_changed, 0);
    session_stop_answer(session, chat(0), 3); // one of them
    assert_int_equal(engine.n_cancelled, 1);
    assert_int_equal(engine.cancelled_answer, 1);
}

// Tomorrow too: what they are is in the store.
static void test_a_stored_answer_is_forked(void **state) {
    (void)state;
    send(0, "question");
    say_token(1, 1, "one ", false);
    say_token(1, 2, "two ", false);
    end(1, REQUEST_FINISHED, "");
    settle();
    close_session();
    open_session();
    session_read(session, chat(1));
    settle();
    assert_int_equal(message(1, 1)->drawn.count, 2);
    session_fork(session, chat(1), 1, 1, 102, NULL);
    assert_int_equal(engine.n_begun, 2);
    assert_int_equal(engine.begun[1], 102);
}

static void test_chats_answer_side_by_side(void **state) {
    (void)state;
    session_new(session);
    session_new(session);
    for (int i = 0; i < 3; i++) send(i, "question");
    assert_int_equal(engine.n_requests, 3);
    say(1, "one ");
    say(3, "three ");
    say(2, "two ");
    say(1, "more");
    assert_string_equal(message(0, 1)->text, "one more");
    assert_string_equal(message(1, 1)->text, "two ");
    assert_string_equal(message(2, 1)->text, "three ");
    end(2, REQUEST_FINISHED, "");
    assert_true(session_busy(chat(0)));
    assert_false(session_busy(chat(1)));
    assert_true(session_busy(chat(2)));
    assert_int_equal(told[SESSION_ENDED], 1);
    assert_int_equal(message(1, 1)->tokens, 13);
}

// Three answers to one question, each to the end of its own.
static void test_versions_of_an_answer_stream_together(void **state) {
    (void)state;
    send(0, "question");
    say(1, "first");
    session_ask(session, chat(0), 0, 1, NULL);
    session_ask(session, chat(0), 0, 1, NULL);
    assert_string_equal(engine.prompt, "user: question|");
    assert_int_equal(engine.conversation, chat(0)->conversation.id);
    say(3, "third");
    say(2, "second");
    say(1, ", the ");
    assert_int_equal(conversation_last(&chat(0)->conversation), 3);
    end(1, REQUEST_FINISHED, "");
    assert_null(session_answer_at(chat(0), 1));
    assert_non_null(session_answer_at(chat(0), 2));
    assert_int_equal(message(0, 1)->state, MESSAGE_COMPLETE);
    assert_int_equal(message(0, 2)->state, MESSAGE_STREAMING);
    say(3, "!");
    end(3, REQUEST_FAILED, "no numbers");
    say(2, "?");
    end(2, REQUEST_FINISHED, "");
    assert_false(session_busy(chat(0)));
    assert_string_equal(message(0, 1)->text, "first, the ");
    assert_string_equal(message(0, 2)->text, "second?");
    assert_string_equal(message(0, 3)->text, "third!");
    assert_int_equal(message(0, 3)->state, MESSAGE_FAILED);
    assert_string_equal(message(0, 3)->note, "no numbers");
    // And an answer to one of them while another is made.
    conversation_choose(&chat(0)->conversation, 1);
    send(0, "go on");
    session_ask(session, chat(0), 0, 1, NULL);
    say(5, "fifth");
    say(4, "fourth");
    assert_string_equal(message(0, 5)->text, "fourth");
    assert_int_equal(message(0, 5)->parent, 4);
    assert_string_equal(message(0, 6)->text, "fifth");
    assert_int_equal(message(0, 6)->parent, 0);
}

static void say_as(uint64_t request, int answer, const char *text) {
    struct engine_event event = {
        .kind = EVENT_TEXT, .request = request, .answer = answer, .token = 1, .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

static void test_one_request_may_have_several_answers(void **state) {
    (void)state;
    session_hold(session, true);
    send(0, "question");
    session_ask(session, chat(0), 0, 3, NULL);
    session_ask(session, chat(0), 0, 2, NULL);
    session_hold(session, false); // those that waited are requested as they were asked for
    assert_int_equal(engine.n_requests, 3);
    assert_int_equal(engine.n_answers, 2); // of the last
    say_as(2, 2, "c");
    say_as(2, 0, "a");
    say_as(3, 0, "A");
    say_as(2, 1, "b");
    happen((struct engine_event){
        .kind = EVENT_STATE, .request = 2, .answer = 1, .state = REQUEST_FINISHED, .reason = FINISH_END});
    say_as(2, 2, "c");
    for (int m = 2; m <= 6; m++) assert_int_equal(message(0, m)->state, m == 3 ? MESSAGE_COMPLETE : MESSAGE_STREAMING);
    assert_string_equal(message(0, 2)->text, "a");
    assert_string_equal(message(0, 3)->text, "b");
    assert_string_equal(message(0, 4)->text, "cc");
    assert_string_equal(message(0, 5)->text, "A");
    assert_string_equal(message(0, 6)->text, "");
    assert_int_equal(conversation_last(&chat(0)->conversation), 5); // the first of those asked for last
}

static void test_each_of_several_answers_has_its_own_knobs(void **state) {
    (void)state;
    struct sampling own[3] = {settings.sampling, settings.sampling, settings.sampling}, hot = settings.sampling;
    send(0, "question");
    assert_false(engine.own);
    for (int i = 0; i < 3; i++) own[i].temperature = 0.5f + (float)i;
    session_ask(session, chat(0), 0, 3, own);
    assert_true(engine.own);
    assert_int_equal(engine.n_answers, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(engine.samplings[i].temperature == 0.5f + (float)i);
        assert_true(message(0, 2 + i)->sampling->temperature == 0.5f + (float)i);
    }
    hot.temperature = 4;
    session_set_answer_sampling(session, chat(0), 3, &hot);
    assert_int_equal(engine.n_changed, 1);
    assert_int_equal(engine.changed[0], 2);
    assert_int_equal(engine.changed_answer, 1);
    assert_true(engine.new_sampling.temperature == 4 && message(0, 3)->sampling->temperature == 4);
    assert_true(message(0, 4)->sampling->temperature == 2.5f);
    session_set_sampling(session, chat(0), &settings.sampling); // of the first alone
    assert_int_equal(engine.n_changed, 2);
    assert_int_equal(engine.changed_answer, EVERY_ANSWER);
    assert_true(message(0, 3)->sampling->temperature == 4);
    session_hold(session, true);
    session_ask(session, chat(0), 0, 2, NULL);
    session_set_answer_sampling(session, chat(0), 6, &hot); // before an engine has it
    session_hold(session, false);
    assert_true(engine.own && engine.samplings[1].temperature == 4);
    assert_true(engine.samplings[0].temperature == settings.sampling.temperature);
    session_set_sampling(session, chat(0), &own[2]); // told the one of the two that follows it
    assert_int_equal(engine.changed_answer, 0);
    assert_true(message(0, 5)->sampling->temperature == 2.5f && message(0, 6)->sampling->temperature == 4);
}

static void test_one_of_several_answers_is_stopped_alone(void **state) {
    (void)state;
    send(0, "question");
    session_ask(session, chat(0), 0, 3, NULL);
    session_stop_answer(session, chat(0), 3);
    assert_int_equal(engine.n_cancelled, 1);
    assert_int_equal(engine.cancelled[0], 2);
    assert_int_equal(engine.cancelled_answer, 1);
    happen((struct engine_event){.kind = EVENT_STATE, .request = 2, .answer = 1, .state = REQUEST_CANCELLED});
    assert_int_equal(message(0, 3)->state, MESSAGE_STOPPED);
    say_as(2, 2, "goes on");
    assert_string_equal(message(0, 4)->text, "goes on");
    session_hold(session, true);
    session_ask(session, chat(0), 0, 3, NULL);
    session_stop_answer(session, chat(0), 6); // before an engine has it
    session_hold(session, false);
    assert_int_equal(engine.n_answers, 2);
    say_as(3, 1, "the other");
    assert_string_equal(message(0, 7)->text, "the other");
}

static void test_keeping_a_version_takes_the_others_away_at_once(void **state) {
    (void)state;
    send(0, "question");
    session_ask(session, chat(0), 0, 3, NULL);
    assert_int_equal(session_keep(session, chat(0), 3), 3);
    assert_int_equal(conversation_last(&chat(0)->conversation), 3);
    assert_int_equal(engine.n_cancelled, 3);
    assert_int_equal(engine.cancelled_answer, 0);
    for (int m = 1; m <= 4; m++) assert_int_equal(message(0, m)->pruned != 0, m != 3);
    assert_int_equal(session_keep(session, chat(0), 3), 0);
    assert_int_equal(session_restore(chat(0)), 1); // all of them
    for (int m = 1; m <= 4; m++) assert_int_equal(message(0, m)->pruned, 0);
    assert_int_equal(conversation_last(&chat(0)->conversation), 3);
    assert_int_equal(session_restore(chat(0)), -1);
}

static void test_stopping_stops_every_answer_of_a_chat(void **state) {
    (void)state;
    session_new(session);
    send(0, "question");
    send(1, "question");
    session_ask(session, chat(1), 0, 1, NULL);
    say(3, "half");
    session_stop(session, chat(1));
    assert_int_equal(engine.n_cancelled, 2);
    assert_true(session_busy(chat(1))); // until the engine says so
    end(3, REQUEST_CANCELLED, "");
    end(2, REQUEST_CANCELLED, "");
    assert_false(session_busy(chat(1)));
    assert_int_equal(message(1, 2)->state, MESSAGE_STOPPED);
    assert_non_null(strstr(message(1, 2)->note, "stopped"));
    assert_true(session_busy(chat(0)));
    say(3, "late"); // of a request that is over
    assert_string_equal(message(1, 2)->text, "half");
}

static void test_requests_wait_for_an_engine(void **state) {
    (void)state;
    session_set_client(session, NULL, "Tiny 1B");
    send(0, "question");
    session_ask(session, chat(0), 0, 1, NULL);
    assert_int_equal(engine.n_requests, 0);
    session_hold(session, true);
    session_set_client(session, engine.client, "Other 2B");
    assert_int_equal(engine.n_requests, 0);
    session_hold(session, false);
    assert_int_equal(engine.n_requests, 2);
    assert_string_equal(message(0, 2)->model, "Other 2B");
    session_hold(session, true);
    session_ask(session, chat(0), 0, 1, NULL);
    say(1, "runs");
    assert_int_equal(session_abandon(session, "another model"), 2);
    assert_int_equal(message(0, 1)->state, MESSAGE_STOPPED);
    assert_int_equal(chat(0)->n_answers, 1); // it waits
    session_stop(session, chat(0));
    assert_false(session_busy(chat(0)));
    assert_string_equal(message(0, 3)->note, "stopped");
}

static void test_sampling_reaches_every_answer_of_a_chat(void **state) {
    (void)state;
    session_new(session);
    send(0, "question");
    send(1, "question");
    session_ask(session, chat(0), 0, 1, NULL);
    struct sampling s = settings.sampling;
    s.temperature = 1.5f;
    session_set_sampling(session, chat(0), &s);
    assert_int_equal(engine.n_changed, 2);
    assert_int_equal(engine.changed[0], 1);
    assert_int_equal(engine.changed[1], 3);
    assert_true(chat(1)->conversation.settings.sampling.temperature != 1.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_chats_answer_side_by_side),
        SESSION_TEST(test_an_answer_is_forked_at_a_token),
        SESSION_TEST(test_an_answer_goes_on_behind_its_last_token),
        SESSION_TEST(test_given_tokens_are_not_counted_in_the_rate),
        SESSION_TEST(test_answers_may_have_their_own_sampling),
        SESSION_TEST(test_a_stored_answer_is_forked),
        SESSION_TEST(test_versions_of_an_answer_stream_together),
        SESSION_TEST(test_one_request_may_have_several_answers),
        SESSION_TEST(test_each_of_several_answers_has_its_own_knobs),
        SESSION_TEST(test_one_of_several_answers_is_stopped_alone),
        SESSION_TEST(test_keeping_a_version_takes_the_others_away_at_once),
        SESSION_TEST(test_stopping_stops_every_answer_of_a_chat),
        SESSION_TEST(test_requests_wait_for_an_engine),
        SESSION_TEST(test_sampling_reaches_every_answer_of_a_chat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
