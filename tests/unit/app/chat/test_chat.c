// The chat controller: what is asked, what comes as an answer, and the chats side by side.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

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
    assert_string_equal(screen.messages[1].note, "3 tokens, first 50 ms");
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
    assert_string_equal(screen.messages[1].note, "5.0 tok/s, 3 tokens, first 100 ms");
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

static void answer_again(uint64_t request, const char *text) {
    act(COMMAND_REGENERATE, -1, NULL);
    say(1, request, text);
    end(1, request, REQUEST_FINISHED, FINISH_END, "");
}

static void test_the_first_and_the_last_version_stay(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "one");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    answer_again(2, "two");
    act(COMMAND_SEND, -1, "more");
    say(1, 3, "three");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    answer_again(4, "four");
    act(COMMAND_VERSION_NEXT, -1, NULL);
    assert_message(3, VIEW_MODEL, "four");
    assert_string_equal(screen.status, "this is the last of 2 versions");
    act(COMMAND_VERSION_PREVIOUS, -1, NULL);
    act(COMMAND_VERSION_PREVIOUS, -1, NULL);
    assert_int_equal(screen.view.n_messages, 4); // not a version of the answer before, without this turn
    assert_message(1, VIEW_MODEL, "two");
    assert_message(3, VIEW_MODEL, "three");
    assert_string_equal(screen.status, "this is the first of 2 versions");
}

static void test_regenerating_makes_versions(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "old");
    act(COMMAND_REGENERATE, -1, NULL); // not while it answers
    assert_int_equal(engine.n_requests, 1);
    assert_true(screen.view.status_bad);
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_REGENERATE, -1, NULL);
    assert_string_equal(engine.prompt, "user: q|");
    say(1, 2, "new");
    assert_message(1, VIEW_MODEL, "new");
    assert_int_equal(screen.messages[1].version, 2);
    assert_int_equal(screen.messages[1].n_versions, 2);
    act(COMMAND_VERSION_PREVIOUS, -1, NULL);
    assert_message(1, VIEW_MODEL, "old");
    say(1, 2, "er"); // goes on out of sight
    act(COMMAND_VERSION_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "newer");
}

static void test_several_answers_are_asked_for_at_once(void **state) {
    (void)state;
    type("q");
    act(COMMAND_FAN_OUT, -1, "9"); // more than there may be: the message stays where it is
    assert_true(screen.view.status_bad);
    assert_string_equal(screen.composer, "q");
    assert_int_equal(engine.n_requests, 0);
    act(COMMAND_FAN_OUT, -1, "3");
    assert_string_equal(screen.composer, "");
    assert_string_equal(engine.prompt, "user: q|");
    assert_int_equal(engine.n_answers, 3);
    assert_false(engine.own);
    assert_int_equal(settings.fan_out, 3);
    assert_int_equal(screen.view.n_columns, 3);
    assert_int_equal(screen.view.column, 0);
    // The knob is turned of the answer in focus, which is the one that is stopped.
    screen.messages[0].id = screen.view.columns[1].id;
    act_on(0, COMMAND_TREE);
    assert_int_equal(screen.view.column, 1);
    act(COMMAND_KNOB_UP, -1, NULL);
    assert_int_equal(engine.changed_answer, 1);
    assert_true(screen.view.sampling->temperature > settings.sampling.temperature);
    act(COMMAND_STOP, -1, NULL);
    assert_int_equal(engine.n_cancelled, 1);
    assert_int_equal(engine.cancelled_answer, 1);
    // With nothing in the composer the message is asked again, here with values of the knob.
    act(COMMAND_FAN_OUT, -1, "0.1, 2");
    assert_string_equal(engine.prompt, "user: q|");
    assert_int_equal(engine.n_answers, 2);
    assert_true(engine.own && engine.samplings[0].temperature == 0.1f && engine.samplings[1].temperature == 2);
    assert_int_equal(screen.view.n_columns, 5);
    assert_int_equal(screen.view.column, 3);
    // A message that goes on from an answer that is not there yet stays in the composer.
    type("more");
    act(COMMAND_FAN_OUT, -1, "2");
    assert_true(screen.view.status_bad);
    assert_string_equal(screen.composer, "more");
    assert_int_equal(engine.n_requests, 2);
}

static void converse(const char *first, const char *second) {
    act(COMMAND_SEND, -1, first);
    say(1, 1, "one");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_SEND, -1, second);
    say(1, 2, "two");
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
}

static void test_any_message_can_be_edited_and_the_old_path_stays(void **state) {
    (void)state;
    converse("q", "r");
    type("a draft");
    act_on(0, COMMAND_EDIT);
    assert_string_equal(screen.composer, "q");
    assert_string_equal(screen.view.editing, "your message");
    assert_true(screen.messages[0].edited);
    act(COMMAND_SEND, -1, "other");
    assert_string_equal(screen.composer, "a draft");
    assert_null(screen.view.editing);
    assert_string_equal(engine.prompt, "user: other|");
    assert_int_equal(screen.view.n_messages, 2);
    assert_int_equal(screen.messages[0].version, 2);
    assert_int_equal(screen.messages[0].n_versions, 2);
    say(1, 3, "three");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act_on(0, COMMAND_VERSION_PREVIOUS);
    assert_int_equal(screen.view.n_messages, 4);
    assert_message(0, VIEW_USER, "q");
    assert_message(3, VIEW_MODEL, "two");
}

static void test_the_conversation_goes_on_from_an_edited_answer(void **state) {
    (void)state;
    converse("q", "r");
    act_on(1, COMMAND_EDIT);
    assert_string_equal(screen.composer, "one");
    assert_string_equal(screen.view.editing, "the answer");
    act(COMMAND_SEND, -1, "better");
    assert_int_equal(engine.n_requests, 2); // nobody is asked
    assert_message(1, VIEW_MODEL, "better");
    assert_string_equal(screen.messages[1].note, "edited");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_SEND, -1, "next");
    assert_string_equal(engine.prompt, "user: q|assistant: better|user: next|");
}

static void test_an_edit_belongs_to_its_chat_and_gives_the_draft_back(void **state) {
    (void)state;
    converse("q", "r");
    type("a draft");
    act(COMMAND_EDIT, -1, NULL); // the person's last message
    assert_string_equal(screen.composer, "r");
    type("r and more");
    act(COMMAND_NEW, -1, NULL);
    assert_string_equal(screen.composer, "");
    assert_null(screen.view.editing);
    act(COMMAND_NEXT, -1, NULL);
    assert_string_equal(screen.composer, "r and more");
    act(COMMAND_EDIT_STOP, -1, NULL);
    assert_string_equal(screen.composer, "a draft");
    assert_int_equal(screen.messages[2].n_versions, 1);
    assert_int_equal(engine.n_requests, 2);
}

static void test_an_unfinished_edit_is_there_again_after_a_restart(void **state) {
    (void)state;
    converse("q", "r");
    type("a draft");
    act_on(1, COMMAND_EDIT);
    type("one, and mo");
    pass(3);
    assert_true(close_chat());
    open_chat();
    type("typed before the chat is read"); // into the new one
    act(COMMAND_NEXT, -1, NULL);
    pass(0.05);
    assert_string_equal(screen.composer, "one, and mo");
    assert_string_equal(screen.view.editing, "the answer");
    assert_true(screen.messages[1].edited);
    act(COMMAND_SEND, -1, "one, and more");
    assert_message(1, VIEW_MODEL, "one, and more");
    assert_string_equal(screen.composer, "a draft");
    assert_true(close_chat());
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    pass(0.05);
    assert_null(screen.view.editing);
    assert_string_equal(screen.composer, "a draft");
}

static void test_the_same_text_is_answered_again(void **state) {
    (void)state;
    converse("q", "r");
    act_on(0, COMMAND_EDIT);
    act(COMMAND_SEND, -1, "q");
    assert_string_equal(engine.prompt, "user: q|");
    assert_int_equal(screen.messages[0].n_versions, 1);
    assert_int_equal(screen.messages[1].n_versions, 2);
}

static void test_any_answer_can_be_given_again(void **state) {
    (void)state;
    converse("q", "r");
    act_on(1, COMMAND_REGENERATE);
    assert_string_equal(engine.prompt, "user: q|");
    assert_int_equal(screen.view.n_messages, 2);
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act_on(1, COMMAND_VERSION_PREVIOUS);
    act_on(2, COMMAND_REGENERATE); // of a person's message: the answer to it
    assert_string_equal(engine.prompt, "user: q|assistant: one|user: r|");
    assert_int_equal(screen.messages[3].n_versions, 2);
}

static void draw_token(int32_t id, const char *text) {
    struct engine_event event = {.kind = EVENT_TEXT,
                                 .conversation = 1,
                                 .request = 1,
                                 .token = id,
                                 .probability = 0.5f,
                                 .entropy = 1.5f,
                                 .n_alternatives = 2,
                                 .alternatives = {{.id = id, .probability = 0.5f, .text = "it"},
                                                  {.id = id + 100, .probability = 0.25f, .text = "else"}},
                                 .size = strlen(text)};
    strcpy(event.text, text);
    happen(event);
}

static void fork_at(int token, int alternative, const char *text) {
    press(COMMAND_FORK, alternative, text);
    screen.commands[0].message = screen.messages[1].id;
    screen.commands[0].token = token;
    pass(0.05);
}

// The token at the cursor is shown with its text and figures; a fork begins with those before it.
static void test_an_answer_is_forked_at_the_token_cursor(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    draw_token(1, "one ");
    draw_token(2, "two");
    screen.token_message = screen.messages[1].id, screen.token = 1;
    draw_token(3, " three");
    const struct view_token *token = screen.view.token;
    assert_non_null(token);
    assert_int_equal(screen.messages[1].n_drawn, 3);
    assert_int_equal(token->count, 3);
    assert_int_equal(token->size, 3);
    assert_memory_equal(token->text, "two", 3);
    assert_int_equal(token->n, 2);
    assert_string_equal(token->alternatives[1].text, "else");
    fork_at(1, 0, NULL); // as it was drawn: the answer again from here
    assert_int_equal(engine.n_begun, 2);
    assert_int_equal(engine.begun[1], 2);
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    act_on(1, COMMAND_VERSION_PREVIOUS);
    fork_at(1, -1, NULL); // nobody chose: what is likeliest beside it
    assert_int_equal(engine.begun[1], 102);
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act_on(1, COMMAND_VERSION_PREVIOUS), act_on(1, COMMAND_VERSION_PREVIOUS);
    fork_at(2, -1, "typed");
    assert_int_equal(engine.n_begun, 2);
    assert_string_equal(engine.begun_text, "typed");
    const uint64_t asked = engine.n_requests;
    fork_at(99, 0, NULL); // there is none
    assert_int_equal(engine.n_requests, asked);
}

static void test_one_branch_streams_while_another_is_edited_and_asked(void **state) {
    (void)state;
    converse("q", "r");
    act(COMMAND_SEND, -1, "s");
    say(1, 3, "thr");
    act_on(0, COMMAND_EDIT);
    act(COMMAND_SEND, -1, "other");
    assert_int_equal(engine.n_requests, 4);
    say(1, 4, "four");
    say(1, 3, "ee");
    assert_message(1, VIEW_MODEL, "four");
    act(COMMAND_STOP, -1, NULL); // of the two that one which is in sight
    assert_int_equal(engine.n_cancelled, 1);
    assert_int_equal(engine.cancelled[0], 4);
    end(1, 4, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    act(COMMAND_SEND, -1, "t"); // although the other branch is still answering
    assert_string_equal(engine.prompt, "user: other|assistant: four|user: t|");
    end(1, 5, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_STOP, -1, NULL);
    assert_int_equal(engine.cancelled[1], 3);
    act_on(0, COMMAND_VERSION_PREVIOUS);
    assert_message(5, VIEW_MODEL, "three");
}

static void test_a_selected_message_is_copied(void **state) {
    (void)state;
    converse("q", "r");
    act_on(0, COMMAND_COPY);
    assert_string_equal(screen.status, "copied q");
    act(COMMAND_COPY, -1, NULL);
    assert_string_equal(screen.status, "copied two");
}

static void test_the_tree_shows_all_branches_and_leads_there(void **state) {
    (void)state;
    converse("q", "r");
    act_on(0, COMMAND_EDIT);
    act(COMMAND_SEND, -1, "other");
    say(1, 3, "three");
    assert_int_equal(screen.view.n_nodes, 0); // only while it is open
    screen.tree = true;
    act(COMMAND_TREE, -1, NULL);
    assert_int_equal(screen.view.n_nodes, 6);
    assert_true(screen.nodes[4].on_path && screen.nodes[5].on_path && !screen.nodes[0].on_path);
    assert_true(screen.nodes[5].streaming);
    assert_int_equal(screen.nodes[0].version, 1);
    assert_int_equal(screen.nodes[0].n_versions, 2);
    assert_int_equal(screen.nodes[0].tokens, 10); // as the answer's prompt had
    assert_int_equal(screen.nodes[1].tokens, 13);
    press(COMMAND_TREE, -1, NULL);
    screen.commands[0].message = screen.nodes[1].id;
    pass(0.05);
    assert_int_equal(screen.view.n_messages, 4);
    assert_message(3, VIEW_MODEL, "two");
}

static void test_messages_are_pruned_and_restored(void **state) {
    (void)state;
    converse("q", "r");
    act_on(2, COMMAND_EDIT);
    act_on(1, COMMAND_PRUNE);
    assert_int_equal(screen.view.n_messages, 1);
    assert_null(screen.view.editing); // what is gone is not edited
    assert_non_null(strstr(screen.status, "pruned 3 messages"));
    act(COMMAND_SEND, -1, "s");
    assert_string_equal(engine.prompt, "user: q\n\ns|");
    end(1, 3, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_RESTORE, -1, NULL);
    assert_int_equal(screen.view.n_messages, 4);
    assert_message(3, VIEW_MODEL, "two");
    act(COMMAND_RESTORE, -1, NULL);
    assert_true(screen.view.status_bad);
}

static void test_a_branch_has_a_name(void **state) {
    (void)state;
    converse("q", "r");
    press(COMMAND_NAME, -1, "plan B");
    screen.commands[0].message = screen.messages[2].id;
    pass(0.05);
    assert_string_equal(screen.messages[2].name, "plan B");
    assert_null(screen.messages[0].name);
}

static void test_a_chat_is_copied_up_to_a_message(void **state) {
    (void)state;
    converse("q", "r");
    act_on(1, COMMAND_COPY_CHAT);
    assert_int_equal(screen.view.n_chats, 2);
    assert_string_equal(screen.chats[screen.view.current].title, "q (copy)");
    assert_int_equal(screen.view.n_messages, 2);
    act(COMMAND_SEND, -1, "s");
    assert_string_equal(engine.prompt, "user: q|assistant: one|user: s|");
    act(COMMAND_NEXT, -1, NULL);
    assert_int_equal(screen.view.n_messages, 4);
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

static void test_a_message_to_a_busy_chat_is_kept(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    act(COMMAND_SEND, -1, "too early");
    assert_string_equal(screen.composer, "too early");
    assert_int_equal(engine.n_requests, 1);
    act(COMMAND_INTERRUPT, -1, NULL);
    assert_int_equal(engine.cancelled[engine.n_cancelled - 1], 1);
    end(1, 1, REQUEST_CANCELLED, FINISH_CANCELLED, "");
    assert_non_null(strstr(screen.messages[1].note, "stopped"));
}

static void test_what_is_typed_is_read_ahead(void **state) {
    (void)state;
    type("some words, an");
    pass(0.1);
    assert_string_equal(engine.ahead, "user: some words,|"); // those that are whole
    type("some words, and mo");
    pass(0.1);
    assert_string_equal(engine.ahead, "user: some words, and|");
    pass(0.3); // nothing more comes
    assert_string_equal(engine.ahead, "user: some words, and mo|");
    assert_int_equal(engine.n_ahead, 3);
    act(COMMAND_SEND, -1, "some words, and more");
    assert_string_equal(engine.ahead, "");
    type("another one, ");
    pass(0.5);
    assert_int_equal(engine.n_ahead, 3); // not before the answer
    say(1, 1, "An answer.");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    pass(0.1);
    assert_string_equal(engine.ahead, "user: some words, and more|assistant: An answer.|user: another one,|");
}

static void test_a_draft_belongs_to_its_chat(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    type("of the first");
    act(COMMAND_NEW, -1, NULL);
    assert_string_equal(screen.composer, "");
    type("of the new one");
    act(COMMAND_NEXT, -1, NULL);
    assert_string_equal(screen.composer, "of the first");
    act(COMMAND_NEW, -1, NULL);
    assert_string_equal(screen.composer, "of the new one");
    act(COMMAND_DELETE, -1, NULL);
    assert_string_equal(screen.composer, "of the first");
    act(COMMAND_NEW, -1, NULL); // not the deleted one
    assert_string_equal(screen.composer, "");
}

static void reopen_chat(void) {
    assert_true(close_chat());
    screen.composer[0] = 0;
    open_chat();
}

static void test_drafts_outlive_the_program(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    type("of the first");
    act(COMMAND_NEW, -1, NULL);
    type("of the new one");
    reopen_chat();
    assert_string_equal(screen.composer, "of the new one");
    act(COMMAND_NEXT, -1, NULL);
    assert_string_equal(screen.composer, "of the first");
    act(COMMAND_PREVIOUS, -1, NULL);
    act(COMMAND_SEND, -1, "of the new one"); // it is none any more, neither there nor of the chat that has begun
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    reopen_chat();
    assert_int_equal(screen.view.n_chats, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(screen.composer, i < 2 ? "" : "of the first");
        act(COMMAND_NEXT, -1, NULL);
    }
    screen.composer[0] = 0; // cleared
    reopen_chat();
    act(COMMAND_NEXT, 2, NULL);
    assert_string_equal(screen.composer, "");
}

// What the store has, as another confab finds it.
static char *stored_draft(int64_t row) {
    struct status st = {0};
    struct draft d;
    struct store *s = store_open(store_path, &st);
    assert_non_null(s);
    assert_true(store_read_draft(s, row, &d, &st));
    store_close(s);
    char *text = xstrdup(d.text ? d.text : "");
    draft_free(&d);
    return text;
}

static void assert_stored_draft(int64_t row, const char *expected) {
    char *text = stored_draft(row);
    assert_string_equal(text, expected);
    free(text);
}

// Little is lost when it is killed, and not every key is written.
static void test_drafts_are_saved_every_few_seconds(void **state) {
    (void)state;
    type("so far");
    pass(1);
    assert_stored_draft(0, "");
    pass(1);
    assert_stored_draft(0, "so far");
    type("so far and on");
    type("so far and on and on");
    assert_stored_draft(0, "so far");
    pass(2);
    assert_stored_draft(0, "so far and on and on");
    act(COMMAND_SEND, -1, "so far and on and on");
    assert_stored_draft(0, ""); // at once
    type("next");
    pass(2);
    assert_stored_draft(0, "");
    assert_stored_draft(1, "next");
}

// With a name and a draft it is worth keeping, though nothing was said in it.
static void test_a_named_chat_keeps_its_draft(void **state) {
    (void)state;
    type("draft");
    pass(2);
    act(COMMAND_RENAME, -1, "Mine");
    assert_stored_draft(0, "");
    assert_stored_draft(1, "draft");
    reopen_chat();
    assert_string_equal(screen.composer, "");
    act(COMMAND_NEXT, -1, NULL);
    assert_string_equal(screen.chats[1].title, "Mine");
    assert_string_equal(screen.composer, "draft");
}

// What another confab did to the chat meanwhile is not undone by typing in it here.
static void test_a_draft_changes_nothing_else_of_its_chat(void **state) {
    (void)state;
    struct status st = {0};
    act(COMMAND_SEND, -1, "q");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    struct store *other = store_open(store_path, &st);
    struct conversation c;
    conversation_open(&c, 1, &settings);
    c.row = 1, c.unread_rows = true;
    assert_true(store_read(other, &c, &st));
    conversation_rename(&c, "Renamed elsewhere");
    assert_true(store_save(other, &c, &st));
    conversation_close(&c);
    store_close(other);
    type("draft");
    reopen_chat();
    assert_string_equal(screen.chats[1].title, "Renamed elsewhere");
    assert_stored_draft(1, "draft");
}

static void test_a_signal_saves_the_draft(void **state) {
    (void)state;
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char *text = xasprintf("before signal %d", signals[i]);
        type(text);
        assert_int_equal(raise(signals[i]), 0);
        assert_false(chat_step(chat, 0));
        reopen_chat();
        assert_string_equal(screen.composer, text);
        assert_int_equal(chat_signal(), 0);
        free(text);
    }
    raise(SIGTERM);
    assert_false(chat_step(chat, 0));
    close_chat();
    assert_int_equal(chat_signal(), SIGTERM);
    struct sigaction after;
    sigaction(SIGTERM, NULL, &after);
    assert_true(after.sa_handler == SIG_DFL);
    open_chat();
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
        CHAT_TEST(test_an_answer_is_forked_at_the_token_cursor),
        CHAT_TEST(test_a_refused_message_is_not_counted),
        CHAT_TEST(test_a_rate_is_of_when_tokens_came),
        CHAT_TEST(test_a_rate_is_without_waiting_in_the_queue),
        CHAT_TEST(test_the_system_prompt_comes_first),
        CHAT_TEST(test_chats_answer_at_the_same_time),
        CHAT_TEST(test_regenerating_makes_versions),
        CHAT_TEST(test_several_answers_are_asked_for_at_once),
        CHAT_TEST(test_the_first_and_the_last_version_stay),
        CHAT_TEST(test_a_broken_theme_is_told_beside_a_broken_store),
        CHAT_TEST(test_status_messages_are_log_entries),
        CHAT_TEST(test_any_message_can_be_edited_and_the_old_path_stays),
        CHAT_TEST(test_the_conversation_goes_on_from_an_edited_answer),
        CHAT_TEST(test_an_edit_belongs_to_its_chat_and_gives_the_draft_back),
        CHAT_TEST(test_an_unfinished_edit_is_there_again_after_a_restart),
        CHAT_TEST(test_the_same_text_is_answered_again),
        CHAT_TEST(test_any_answer_can_be_given_again),
        CHAT_TEST(test_one_branch_streams_while_another_is_edited_and_asked),
        CHAT_TEST(test_a_selected_message_is_copied),
        CHAT_TEST(test_the_tree_shows_all_branches_and_leads_there),
        CHAT_TEST(test_messages_are_pruned_and_restored),
        CHAT_TEST(test_a_branch_has_a_name),
        CHAT_TEST(test_a_chat_is_copied_up_to_a_message),
        CHAT_TEST(test_a_failure_is_shown_and_nothing_ends),
        CHAT_TEST(test_thinking_is_a_part_of_its_own),
        CHAT_TEST(test_a_notice_is_shown_once),
        CHAT_TEST(test_what_cannot_be_answered_is_left_out),
        CHAT_TEST(test_a_message_to_a_busy_chat_is_kept),
        CHAT_TEST(test_a_draft_belongs_to_its_chat),
        CHAT_TEST(test_what_is_typed_is_read_ahead),
        CHAT_TEST(test_drafts_outlive_the_program),
        CHAT_TEST(test_drafts_are_saved_every_few_seconds),
        CHAT_TEST(test_a_named_chat_keeps_its_draft),
        CHAT_TEST(test_a_draft_changes_nothing_else_of_its_chat),
        CHAT_TEST(test_a_signal_saves_the_draft),
        CHAT_TEST(test_rename_delete_and_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
