// The chat controller: what is asked, what comes as an answer, and the chats side by side.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/session/store.h"
#include "engine/base/log.h"
#include "tests/unit/chat_fixture.h"

static void test_an_answer_streams(void **state) {
    (void)state;
    assert_string_equal(screen.view.model_name, "Tiny 1B Q4_0");
    assert_string_equal(screen.view.model_short, "Tiny");
    assert_string_equal(screen.chats[0].title, "New chat");
    act(COMMAND_SEND, -1, "Hello\nthere");
    assert_string_equal(engine.prompt, "user: Hello\nthere|");
    assert_message(0, VIEW_USER, "Hello\nthere");
    assert_string_equal(screen.chats[0].title, "Hello");
    assert_true(screen.chats[0].busy);
    assert_true(screen.messages[1].streaming);
    say(1, 1, "Good ");
    say(1, 1, "day");
    assert_message(1, VIEW_MODEL, "Good day");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_false(screen.messages[1].streaming);
    assert_false(screen.chats[0].busy);
    assert_string_equal(screen.messages[1].note, "3 tokens, first 50 ms, prompt 10");
    assert_int_equal(screen.view.context_used, 13);
    act(COMMAND_SEND, -1, "More");
    assert_string_equal(engine.prompt, "user: Hello\nthere|assistant: Good day|user: More|");
}

// A message that is too long is no part of what comes next, nor of what the gauge shows.
static void test_a_refused_message_is_not_counted(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "Hello");
    say(1, 1, "Good day");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SEND, -1, "far too long");
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .conversation = 1,
                                 .request = 2,
                                 .state = REQUEST_FAILED,
                                 .reason = FINISH_ERROR,
                                 .n_prompt = 9000,
                                 .text = "the prompt has 9000 tokens"});
    assert_int_equal(screen.view.context_used, 13);
    assert_false(screen.view.context_guessed);
}

// An answer that is read in one burst, long after it was made, was no faster for that.
static void test_a_rate_is_of_when_tokens_came(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "Hello");
    uint64_t sent = now;
    for (int i = 0; i < 3; i++)
        told_engine_say((struct engine_event){.kind = EVENT_TEXT,
                                              .conversation = 1,
                                              .request = 1,
                                              .token = 1,
                                              .size = 1,
                                              .text = "x",
                                              .at = sent + 100000000 + (uint64_t)i * 200000000});
    pass(3);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_string_equal(screen.messages[1].note, "5.0 tok/s, 3 tokens, first 100 ms, prompt 10");
}

static void enter(enum request_state state) {
    happen((struct engine_event){.kind = EVENT_STATE, .conversation = 1, .request = 1, .state = state});
}

// Two tokens 300 ms apart, then an answer that is served first, then one more token.
static void test_a_rate_is_without_waiting_in_the_queue(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "Hello");
    enter(REQUEST_DECODING);
    say(1, 1, "a ");
    pass(0.25);
    say(1, 1, "b ");
    enter(REQUEST_PENDING);
    pass(20);
    enter(REQUEST_PREFILLING);
    enter(REQUEST_DECODING);
    say(1, 1, "c ");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_non_null(strstr(screen.messages[1].note, "2.5 tok/s, 3 tokens")); // 1 / (0.3 + 2 × 0.05 s of the fixture)
}

static void test_the_note_says_how_the_prompt_was_read(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "Hello");
    enter(REQUEST_PREFILLING);
    pass(0.45);
    say(1, 1, "Hi");
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .conversation = 1,
                                 .request = 1,
                                 .state = REQUEST_FINISHED,
                                 .reason = FINISH_END,
                                 .n_prompt = 1204,
                                 .n_reused = 1100,
                                 .n_generated = 1});
    assert_string_equal(screen.messages[1].note, "1 token, first 550 ms, prompt 1204 (1100 cached), read at 208 tok/s");
}

static void test_the_system_prompt_comes_first(void **state) {
    (void)state;
    assert_true(setting_parse(&settings, SETTING_system, "Be brief.", NULL));
    act(COMMAND_SEND, -1, "Hi");
    assert_string_equal(engine.prompt, "system: Be brief.|user: Hi|");
}

static void test_chats_answer_at_the_same_time(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "one");
    act(COMMAND_NEW, -1, NULL);
    assert_int_equal(engine.focused, 2);
    act(COMMAND_SEND, -1, "two");
    assert_int_equal(screen.view.n_chats, 2);
    say(1, 1, "first");
    say(2, 2, "second");
    assert_message(1, VIEW_MODEL, "second");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_true(screen.chats[1].unread);
    assert_string_equal(screen.notice, "0 one"); // its kind is a setting
    act(COMMAND_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "first");
    assert_false(screen.chats[1].unread);
    assert_int_equal(engine.focused, 1);
    act(COMMAND_STOP_ALL, -1, NULL);
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 2);
}

static void test_a_broken_theme_is_told_beside_a_broken_store(void **state) {
    (void)state;
    close_chat();
    free(store_path);
    store_path = xstrdup(folder); // a folder cannot be opened as one
    screen.theme_problem = "theme x, line 1: no such role";
    open_chat();
    assert_non_null(strstr(screen.status, "theme x, line 1: no such role; conversations are not saved"));
}

static void assert_logged(enum log_level level, const char *text) {
    struct log_entry e;
    assert_int_equal(log_read(log_count() - 1, &e, 1), 1);
    assert_string_equal(e.text, text);
    assert_int_equal(e.level, level);
    assert_string_equal(e.module, "chat");
}

static void test_status_messages_are_log_entries(void **state) {
    (void)state;
    act(COMMAND_RENAME, -1, "Name");
    assert_logged(LOG_LEVEL_INFO, "renamed to Name");
    act(COMMAND_REGENERATE, -1, NULL);
    assert_logged(LOG_LEVEL_WARNING, screen.status);
}

static void test_a_failure_is_shown_and_nothing_ends(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "so far");
    end(1, 1, REQUEST_FAILED, FINISH_ERROR, "the logits are not numbers");
    assert_message(1, VIEW_MODEL, "so far");
    assert_message(2, VIEW_NOTICE, "the logits are not numbers");
    act(COMMAND_REGENERATE, -1, NULL);
    end(1, 2, REQUEST_FAILED, FINISH_ERROR, "again");
    assert_message(1, VIEW_NOTICE, "again");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_SEND, -1, "more"); // what could not be answered is left out
    assert_string_equal(engine.prompt, "user: more|");
    assert_message(2, VIEW_NOTICE, "what comes next was asked without this message");
}

static void test_thinking_is_a_part_of_its_own(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    think(1, 1, "hm ");
    think(1, 1, "so");
    assert_message(1, VIEW_MODEL, "");
    assert_int_equal(screen.messages[1].thinking_tokens, 2);
    assert_true(screen.messages[1].thinking_seconds > 0.049 && screen.messages[1].thinking_seconds < 0.051);
    say(1, 1, "Yes");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_message(1, VIEW_MODEL, "Yes");
    assert_int_equal(screen.messages[1].thinking_size, 5);
    assert_memory_equal(screen.messages[1].thinking, "hm so", 5);
    assert_int_equal(screen.view.context_used, 13 - 2); // it is not read again
    act(COMMAND_COPY, -1, NULL);
    assert_string_equal(screen.status, "copied Yes");
    act(COMMAND_SEND, -1, "more");
    assert_string_equal(engine.prompt, "user: q|assistant: hm so/Yes|user: more|");
    // Stopped while it thinks, then asked again: nobody speaks twice in a row.
    think(1, 2, "well");
    act(COMMAND_STOP, -1, NULL);
    end(1, 2, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    act(COMMAND_SEND, -1, "and more");
    assert_string_equal(engine.prompt, "user: q|assistant: hm so/Yes|user: more\n\nand more|");
    // All of it comes back from the store.
    assert_true(close_chat());
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    assert_memory_equal(screen.messages[1].thinking, "hm so", 5);
    assert_int_equal(screen.messages[1].thinking_tokens, 2);
    assert_true(screen.messages[1].thinking_seconds > 0.049);
    assert_memory_equal(screen.messages[3].thinking, "well", 4);
}

static void test_a_notice_is_shown_once(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    utter(1, 1, EVENT_NOTICE, CHANNEL_ANSWER, "another template is used");
    say(1, 1, "a");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_message(1, VIEW_NOTICE, "another template is used");
    assert_message(2, VIEW_MODEL, "a");
    act(COMMAND_SEND, -1, "r");
    utter(1, 2, EVENT_NOTICE, CHANNEL_ANSWER, "another template is used");
    assert_int_equal(screen.view.n_messages, 5);
    utter(1, 2, EVENT_NOTICE, CHANNEL_ANSWER, "for another reason");
    assert_message(4, VIEW_NOTICE, "for another reason");
    assert_int_equal(screen.view.n_messages, 6);
}

static void test_what_cannot_be_answered_is_left_out(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "too long");
    end(1, 1, REQUEST_FAILED, FINISH_ERROR, "the prompt has 9000 tokens");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_REGENERATE, -1, NULL); // it is asked again all the same
    assert_string_equal(engine.prompt, "user: too long|");
    end(1, 2, REQUEST_FAILED, FINISH_ERROR, "the prompt has 9000 tokens");
    act(COMMAND_SEND, -1, "short");
    assert_string_equal(engine.prompt, "user: short|");
    assert_message(2, VIEW_NOTICE, "what comes next was asked without this message");
    say(1, 3, "fine");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SEND, -1, "next");
    assert_string_equal(engine.prompt, "user: short|assistant: fine|user: next|");
}

static void test_a_message_to_a_busy_chat_waits_and_can_be_edited(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_SEND, -1, "early");
    act(COMMAND_SEND, -1, "later");
    assert_string_equal(screen.composer, "");
    assert_int_equal(engine.n_requests, 1);
    assert_int_equal(screen.view.n_messages, 4);
    assert_message(2, VIEW_USER, "early");
    assert_int_equal(screen.messages[2].waiting, 1);
    assert_int_equal(screen.messages[3].waiting, 2);
    act(COMMAND_INTERRUPT, -1, NULL);
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 1);
    end(1, 1, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    assert_non_null(strstr(screen.messages[1].note, "stopped"));
    assert_string_equal(screen.status, "what you wrote waits: Enter sends it, Up takes it back");
    act(COMMAND_TAKE_BACK, 0, NULL); // that which was clicked on
    assert_string_equal(screen.composer, "early");
    act(COMMAND_TAKE_BACK, -1, NULL);
    assert_string_equal(screen.composer, "early"); // nothing is written over
    assert_int_equal(screen.view.n_messages, 3);
    act(COMMAND_SEND, -1, NULL); // an empty one: the line goes on
    assert_string_equal(engine.prompt, "user: q\n\nlater|");
    screen_set_composer(NULL, "now");
    act(COMMAND_STEER, -1, NULL);
    end(1, 2, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    assert_string_equal(engine.prompt, "user: q\n\nlater\n\nnow|");
}

static void test_rename_delete_and_copy(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "answer");
    act(COMMAND_COPY, -1, NULL);
    assert_string_equal(screen.status, "copied answer");
    act(COMMAND_RENAME, -1, "Mine");
    assert_string_equal(screen.chats[0].title, "Mine");
    act(COMMAND_DELETE, -1, NULL);
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 1);
    assert_int_equal(engine.forgotten, 1);
    assert_int_equal(screen.view.n_chats, 1);
    assert_string_equal(screen.chats[0].title, "New chat");
    say(1, 1, "late"); // of a chat that is gone
    assert_int_equal(screen.view.n_messages, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_an_answer_streams),
        CHAT_TEST(test_a_refused_message_is_not_counted),
        CHAT_TEST(test_a_rate_is_of_when_tokens_came),
        CHAT_TEST(test_a_rate_is_without_waiting_in_the_queue),
        CHAT_TEST(test_the_note_says_how_the_prompt_was_read),
        CHAT_TEST(test_the_system_prompt_comes_first),
        CHAT_TEST(test_chats_answer_at_the_same_time),
        CHAT_TEST(test_a_broken_theme_is_told_beside_a_broken_store),
        CHAT_TEST(test_status_messages_are_log_entries),
        CHAT_TEST(test_a_failure_is_shown_and_nothing_ends),
        CHAT_TEST(test_thinking_is_a_part_of_its_own),
        CHAT_TEST(test_a_notice_is_shown_once),
        CHAT_TEST(test_what_cannot_be_answered_is_left_out),
        CHAT_TEST(test_a_message_to_a_busy_chat_waits_and_can_be_edited),
        CHAT_TEST(test_rename_delete_and_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
