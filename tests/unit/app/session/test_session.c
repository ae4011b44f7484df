// A session without a screen: an engine that does what it is told answers several requests of several chats, and what
// came of them is in the store.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/session/session.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "tests/unit/temporary_folder.h"
#include "tests/unit/told_engine.h"

// ---- the session under test ----

static struct loop *loop;
static struct session *session;
static struct settings settings;
static char folder[64], *store_path;
static int told[16];
static char last_text[512];
static uint64_t now;

static void on_event(void *context, const struct session_event *event) {
    (void)context;
    told[event->kind]++;
    if (event->text) snprintf(last_text, sizeof last_text, "%s", event->text);
}

static void turn(void) { loop_turn(loop, 0); }

static void pass(double seconds) {
    now += (uint64_t)(seconds * 1e9);
    clock_freeze(now);
    turn();
}

// Until everything is written and read that there is to be.
static void settle(void) {
    pass(1);
    assert_true(worker_wait(session_worker(session), 60000));
}

static void open_session(void) {
    struct status st = {0};
    loop = loop_open();
    session = session_open(
        &(struct session_params){.loop = loop, .settings = &settings, .store_path = store_path, .tell = on_event}, &st);
    assert_non_null(session);
    session_set_client(session, engine_client_open(&engine.engine, &st), "Tiny 1B");
    settle();
    assert_true(told[SESSION_LISTED]);
}

static void close_session(void) {
    struct status st = {0};
    if (!session_close(session, &st)) fail_msg("%s", st.text);
    engine_client_close(engine.client);
    loop_close(loop);
}

static int setup(void **state) {
    (void)state;
    told_engine_reset();
    memset(told, 0, sizeof told);
    settings = settings_default();
    strcpy(folder, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    store_path = xasprintf("%s/confab.db", folder);
    now = 1000000000;
    clock_freeze(now);
    open_session();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    close_session();
    settings_free(&settings);
    free(store_path);
    return temporary_folder_remove(folder);
}

static struct session_chat *chat(int index) { return session_chat(session, index); }
static const struct message *message(int index, int m) { return &chat(index)->conversation.messages[m]; }
static void send(int index, const char *text) { session_send(session, chat(index), text, strlen(text)); }

static void happen(struct engine_event event) {
    event.at = now;
    told_engine_say(event);
    turn();
}

static void say(uint64_t request, const char *text) {
    struct engine_event event = {.kind = EVENT_TEXT, .request = request, .token = 1, .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

static void end(uint64_t request, enum request_state state, const char *text) {
    struct engine_event event = {.kind = EVENT_STATE,
                                 .request = request,
                                 .state = state,
                                 .reason = state == REQUEST_CANCELLED ? FINISH_CANCELLED : FINISH_END,
                                 .n_prompt = 10,
                                 .n_generated = 3};
    snprintf(event.text, sizeof event.text, "%s", text);
    happen(event);
}

// A token with one alternative, as it is drawn; or as it is given.
static void say_token(uint64_t request, int32_t id, const char *text, bool given) {
    struct engine_event event = {.kind = EVENT_TEXT,
                                 .request = request,
                                 .token = id,
                                 .probability = given ? NAN : 0.5f,
                                 .entropy = given ? NAN : 1,
                                 .n_alternatives = !given,
                                 .alternatives = {{.id = id + 100, .probability = 0.25f, .text = "else"}},
                                 .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

// ---- requests ----

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

static void test_several_answers_are_refused_and_asked_for_again_together(void **state) {
    (void)state;
    fill_context();
    counted(5, REQUEST_CANCELLED, FINISH_CANCELLED, 0, 0);
    session_ask(session, chat(0), 8, 2, NULL);
    for (int answer = 0; answer < 2; answer++)
        happen((struct engine_event){.kind = EVENT_STATE,
                                     .request = 6,
                                     .answer = answer,
                                     .state = REQUEST_FAILED,
                                     .reason = FINISH_CONTEXT,
                                     .n_prompt = 450});
    assert_int_equal(engine.n_requests, 7);
    assert_int_equal(engine.n_answers, 2);
    for (int answer = 0; answer < 2; answer++)
        happen((struct engine_event){.kind = EVENT_STATE,
                                     .request = 7,
                                     .answer = answer,
                                     .state = REQUEST_FAILED,
                                     .reason = FINISH_CONTEXT,
                                     .n_prompt = 2000});
    assert_false(session_busy(chat(0)));
    assert_int_equal(engine.n_requests, 7);
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
}

static void test_nothing_is_read_ahead_beside_answers_or_if_unwanted(void **state) {
    (void)state;
    engine.metrics.running = 1;
    session_read_ahead(session, chat(0), -1, "some words ", false);
    engine.metrics.running = 0;
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

// ---- the store ----

static void set(struct settings *s, int id, const char *text) { assert_true(setting_parse(s, id, text, NULL)); }

// Each chat has its own; what is the configuration's is what a chat begins with.
static void test_settings_belong_to_a_chat(void **state) {
    (void)state;
    set(&settings, SETTING_system, "Be brief.");
    set(&settings, SETTING_stops, "END");
    settings.max_tokens = 100;
    send(0, "one");
    assert_string_equal(engine.prompt, "system: Be brief.|user: one|");
    assert_string_equal(engine.stops, "END|");
    assert_int_equal(engine.max_tokens, 100);
    say(1, "1");
    end(1, REQUEST_FINISHED, "");
    set(&settings, SETTING_system, "Be long.");
    set(&settings, SETTING_reasoning, "high");
    session_new(session);
    send(0, "two");
    assert_string_equal(engine.prompt, "system: Be long.|user: two|");
    assert_int_equal(engine.reasoning, REASONING_HIGH);
    set(&chat(1)->conversation.settings, SETTING_stops, "");
    set(&chat(1)->conversation.settings, SETTING_max_tokens, "7");
    session_changed(chat(1));
    close_session();
    set(&settings, SETTING_system, "");
    open_session();
    send(2, "more");
    settle();
    assert_string_equal(engine.prompt, "system: Be brief.|user: one|assistant: 1|user: more|");
    assert_int_equal(engine.reasoning, REASONING_AUTO);
    assert_string_equal(engine.stops, "");
    assert_int_equal(engine.max_tokens, 7);
    send(0, "three");
    assert_string_equal(engine.prompt, "user: three|");
}

// Times are those of the wall, which a frozen clock shows too.
static void test_messages_have_times(void **state) {
    (void)state;
    pass(9);
    int64_t asked = (int64_t)(now / 1000000);
    send(0, "question");
    pass(2);
    say(1, "a");
    pass(3);
    say(1, "b");
    end(1, REQUEST_FINISHED, "");
    session_read(session, chat(0));
    close_session();
    now += 1000000000000;
    open_session();
    session_read(session, chat(1));
    settle();
    assert_true(chat(1)->conversation.created == asked);
    assert_true(message(1, 0)->created == asked);
    assert_int_equal(message(1, 0)->begun, 0);
    assert_true(message(1, 1)->created == asked);
    assert_true(message(1, 1)->begun == asked + 2000);
    assert_true(message(1, 1)->ended == asked + 5000);
}

static void test_everything_is_there_after_reopening(void **state) {
    (void)state;
    send(0, "question");
    session_ask(session, chat(0), 0, 1, NULL);
    say(1, "one");
    say(2, "two");
    end(1, REQUEST_FINISHED, "");
    session_new(session);
    send(0, "another");
    struct draft draft = {.text = xstrdup("not sent"), .point = 3};
    session_set_draft(chat(1), &draft);
    session_rename(chat(0), "Named");
    close_session(); // with two answers in the making
    engine.n_requests = 0;
    open_session();
    assert_int_equal(session_count(session), 3);
    assert_string_equal(chat(1)->conversation.title, "Named");
    assert_true(chat(2)->conversation.unread_rows);
    session_read(session, chat(2));
    settle();
    assert_true(told[SESSION_READ]);
    assert_int_equal(chat(2)->conversation.count, 3);
    assert_string_equal(message(2, 1)->text, "one");
    assert_int_equal(message(2, 1)->state, MESSAGE_COMPLETE);
    assert_string_equal(message(2, 2)->text, "two");
    assert_int_equal(message(2, 2)->state, MESSAGE_STOPPED);
    assert_string_equal(chat(2)->draft.text, "not sent");
    assert_int_equal(chat(2)->draft.point, 3);
}

static void converse(void) {
    send(0, "question");
    say(1, "one");
    end(1, REQUEST_FINISHED, "");
    session_ask(session, chat(0), 0, 1, NULL);
    say(2, "two");
}

static void test_an_edited_message_is_another_version(void **state) {
    (void)state;
    converse();
    session_edit(session, chat(0), 0, "other", 5); // while an answer to the old one is made
    assert_string_equal(engine.prompt, "user: other|");
    assert_int_equal(message(0, 3)->parent, -1);
    say(3, "three");
    say(2, "!");
    assert_string_equal(message(0, 2)->text, "two!");
    assert_string_equal(message(0, 4)->text, "three");
    session_edit(session, chat(0), 1, "one, better", 11);
    assert_int_equal(engine.n_requests, 3);
    assert_int_equal(message(0, 5)->role, MESSAGE_MODEL);
    assert_int_equal(message(0, 5)->state, MESSAGE_COMPLETE);
    assert_int_equal(conversation_last(&chat(0)->conversation), 5);
    session_edit(session, chat(0), 5, "one, better", 11); // nothing was changed
    assert_int_equal(chat(0)->conversation.count, 6);
    session_edit(session, chat(0), 0, "question", 8);
    assert_int_equal(engine.n_requests, 4);
    assert_int_equal(message(0, 6)->parent, 0);
}

static void test_pruning_stops_the_answers_it_takes(void **state) {
    (void)state;
    converse();
    session_name(chat(0), 1, "the first");
    assert_int_equal(session_prune(session, chat(0), 2), 1);
    assert_int_equal(engine.n_cancelled, 1);
    end(2, REQUEST_CANCELLED, "");
    settle();
    close_session();
    open_session();
    session_read(session, chat(1));
    settle();
    assert_int_equal(chat(1)->conversation.count, 2);
    assert_string_equal(message(1, 1)->name, "the first");
    assert_int_equal(session_restore(chat(1)), -1); // that is for good
    session_prune(session, chat(1), 0);
    settle();
    assert_int_equal(session_restore(chat(1)), 0);
    close_session();
    open_session();
    session_read(session, chat(1));
    settle();
    assert_int_equal(chat(1)->conversation.count, 2);
}

static void test_what_another_confab_pruned_is_written_again(void **state) {
    (void)state;
    converse();
    end(2, REQUEST_FINISHED, "");
    settle();
    sqlite3 *other;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(other, "PRAGMA foreign_keys = ON; DELETE FROM message WHERE text = 'two'", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(other);
    send(0, "next");
    settle();
    settle();
    assert_false(session_unsaved(session));
    close_session();
    open_session();
    assert_int_equal(session_count(session), 2);
    session_read(session, chat(1));
    settle();
    assert_int_equal(chat(1)->conversation.count, 5);
    assert_string_equal(message(1, 2)->text, "two");
    assert_int_equal(message(1, 3)->parent, 2);
}

static void test_a_branch_becomes_a_chat_of_its_own(void **state) {
    (void)state;
    converse();
    setting_parse(&chat(0)->conversation.settings, SETTING_system, "Be brief.", NULL);
    struct session_chat *copy = session_copy(session, chat(0), 2); // although it still streams
    assert_ptr_equal(copy, chat(0));
    assert_string_equal(copy->conversation.title, "question (copy)");
    assert_int_equal(copy->conversation.count, 2);
    assert_string_equal(message(0, 1)->text, "two");
    assert_int_equal(message(0, 1)->state, MESSAGE_STOPPED);
    assert_string_equal(copy->conversation.settings.system, "Be brief.");
    say(2, "!");
    assert_string_equal(message(0, 1)->text, "two");
    assert_string_equal(message(1, 2)->text, "two!");
    end(2, REQUEST_FINISHED, "");
    settle();
    send(0, "go on");
    assert_string_equal(engine.prompt, "system: Be brief.|user: question|assistant: two|user: go on|");
    close_session();
    open_session();
    session_read(session, chat(1));
    session_read(session, chat(2));
    settle();
    assert_string_equal(message(1, 1)->text, "two");
    assert_string_equal(message(2, 2)->text, "two!");
}

static void test_a_message_waits_for_those_before_it(void **state) {
    (void)state;
    send(0, "question");
    say(1, "answer");
    end(1, REQUEST_FINISHED, "");
    close_session();
    open_session();
    send(1, "next"); // nothing is read yet
    assert_int_equal(engine.n_requests, 1);
    settle();
    assert_int_equal(engine.n_requests, 2);
    assert_string_equal(engine.prompt, "user: question|assistant: answer|user: next|");
}

static void test_deleting_waits_for_nobody(void **state) {
    (void)state;
    send(0, "question");
    session_new(session);
    turn(); // it is being saved
    session_delete(session, chat(1));
    settle();
    settle();
    assert_int_equal(told[SESSION_DELETED], 1);
    assert_int_equal(engine.forgotten, 1);
    assert_int_equal(engine.cancelled[0], 1);
    assert_int_equal(session_count(session), 1);
    close_session();
    open_session();
    assert_int_equal(session_count(session), 1);
}

static void test_a_chat_deleted_elsewhere_is_written_again(void **state) {
    (void)state;
    send(0, "question");
    say(1, "answer");
    settle();
    sqlite3 *other;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA foreign_keys = ON; DELETE FROM conversation", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(other);
    say(1, " and more");
    settle();
    close_session();
    open_session();
    assert_int_equal(session_count(session), 2);
    session_read(session, chat(1));
    settle();
    assert_int_equal(chat(1)->conversation.count, 2);
    assert_string_equal(message(1, 0)->text, "question");
    assert_string_equal(message(1, 1)->text, "answer and more");
}

static void test_a_locked_store_is_tried_again(void **state) {
    (void)state;
    sqlite3 *other;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    send(0, "precious");
    settle();
    assert_true(session_unsaved(session));
    assert_int_equal(told[SESSION_UNSAVED], 1);
    assert_non_null(strstr(last_text, "not saved, kept in memory"));
    say(1, "more");
    pass(3);
    settle();
    assert_int_equal(told[SESSION_UNSAVED], 1); // tried again in silence
    struct status st = {0};
    assert_false(session_save(session, &st));
    assert_non_null(strstr(st.text, store_path));
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(other);
    pass(3);
    settle();
    assert_false(session_unsaved(session));
    assert_int_equal(told[SESSION_SAVED], 1);
    close_session();
    open_session();
    session_read(session, chat(1));
    settle();
    assert_string_equal(message(1, 1)->text, "more");
}

static void wait_for_disk(void *job) { sem_wait(job); }

// A disk that answers nothing: all else goes on, one is told, and nothing is lost.
static void test_a_stalled_disk_holds_up_nothing(void **state) {
    (void)state;
    static sem_t disk;
    sem_init(&disk, 0, 0);
    send(0, "first");
    settle();
    worker_do(session_worker(session), wait_for_disk, NULL, &disk);
    session_new(session);
    send(0, "second");
    session_ask(session, chat(0), 0, 1, NULL);
    for (int i = 0; i < 100; i++) {
        say(2, "word ");
        say(3, "WORD ");
        pass(0.1);
    }
    end(2, REQUEST_FINISHED, "");
    session_delete(session, chat(1));
    session_rename(chat(0), "Later");
    turn();
    assert_int_equal(message(0, 1)->size, 500);
    assert_true(session_unsaved(session));
    assert_int_equal(told[SESSION_UNSAVED], 1);
    assert_non_null(strstr(last_text, "the disk does not answer"));
    sem_post(&disk);
    settle();
    assert_false(session_unsaved(session));
    close_session();
    open_session();
    assert_int_equal(session_count(session), 2);
    assert_string_equal(chat(1)->conversation.title, "Later");
    session_read(session, chat(1));
    settle();
    assert_int_equal(chat(1)->conversation.count, 3);
    assert_int_equal(message(1, 1)->size, 500);
    assert_int_equal(message(1, 2)->size, 500);
    sem_destroy(&disk);
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_chats_answer_side_by_side),
        SESSION_TEST(test_an_answer_is_forked_at_a_token),
        SESSION_TEST(test_given_tokens_are_not_counted_in_the_rate),
        SESSION_TEST(test_answers_may_have_their_own_sampling),
        SESSION_TEST(test_a_stored_answer_is_forked),
        SESSION_TEST(test_versions_of_an_answer_stream_together),
        SESSION_TEST(test_one_request_may_have_several_answers),
        SESSION_TEST(test_a_full_context_leaves_out_the_oldest_messages),
        SESSION_TEST(test_an_answer_goes_on_beyond_the_context),
        SESSION_TEST(test_what_is_left_out_is_a_setting),
        SESSION_TEST(test_a_message_that_never_fits_leaves_nothing_out),
        SESSION_TEST(test_several_answers_are_refused_and_asked_for_again_together),
        SESSION_TEST(test_an_answer_without_its_question_keeps_the_turns),
        SESSION_TEST(test_of_a_folded_message_the_beginning_is_asked_with),
        SESSION_TEST(test_whole_words_of_a_message_are_read_ahead),
        SESSION_TEST(test_what_is_cached_of_a_chat_is_found_out),
        SESSION_TEST(test_nothing_is_read_ahead_beside_answers_or_if_unwanted),
        SESSION_TEST(test_each_of_several_answers_has_its_own_knobs),
        SESSION_TEST(test_one_of_several_answers_is_stopped_alone),
        SESSION_TEST(test_keeping_a_version_takes_the_others_away_at_once),
        SESSION_TEST(test_stopping_stops_every_answer_of_a_chat),
        SESSION_TEST(test_requests_wait_for_an_engine),
        SESSION_TEST(test_sampling_reaches_every_answer_of_a_chat),
        SESSION_TEST(test_settings_belong_to_a_chat),
        SESSION_TEST(test_messages_have_times),
        SESSION_TEST(test_everything_is_there_after_reopening),
        SESSION_TEST(test_an_edited_message_is_another_version),
        SESSION_TEST(test_pruning_stops_the_answers_it_takes),
        SESSION_TEST(test_what_another_confab_pruned_is_written_again),
        SESSION_TEST(test_a_branch_becomes_a_chat_of_its_own),
        SESSION_TEST(test_a_message_waits_for_those_before_it),
        SESSION_TEST(test_deleting_waits_for_nobody),
        SESSION_TEST(test_a_chat_deleted_elsewhere_is_written_again),
        SESSION_TEST(test_a_locked_store_is_tried_again),
        SESSION_TEST(test_a_stalled_disk_holds_up_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
