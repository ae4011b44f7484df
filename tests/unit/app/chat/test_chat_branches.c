// The chat controller: answers again and several at once, edits, forks, the tree of messages and its branches.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/chat_fixture.h"

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
    type("q\n"); // as a pasted page ends
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

// The screen may still have its token cursor on an answer that is gone.
static void test_a_pruned_answer_is_not_forked(void **state) {
    (void)state;
    converse("q", "r");
    const uint64_t answer = screen.messages[1].id, requests = engine.n_requests;
    act_on(1, COMMAND_PRUNE);
    press(COMMAND_FORK, -1, "more");
    screen.commands[0].message = answer;
    pass(0.05);
    assert_int_equal(engine.n_requests, requests);
    assert_int_equal(screen.view.n_messages, 1);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_an_answer_is_forked_at_the_token_cursor),
        CHAT_TEST(test_regenerating_makes_versions),
        CHAT_TEST(test_several_answers_are_asked_for_at_once),
        CHAT_TEST(test_the_first_and_the_last_version_stay),
        CHAT_TEST(test_any_message_can_be_edited_and_the_old_path_stays),
        CHAT_TEST(test_the_conversation_goes_on_from_an_edited_answer),
        CHAT_TEST(test_an_edit_belongs_to_its_chat_and_gives_the_draft_back),
        CHAT_TEST(test_an_unfinished_edit_is_there_again_after_a_restart),
        CHAT_TEST(test_the_same_text_is_answered_again),
        CHAT_TEST(test_any_answer_can_be_given_again),
        CHAT_TEST(test_one_branch_streams_while_another_is_edited_and_asked),
        CHAT_TEST(test_a_selected_message_is_copied),
        CHAT_TEST(test_the_tree_shows_all_branches_and_leads_there),
        CHAT_TEST(test_a_pruned_answer_is_not_forked),
        CHAT_TEST(test_messages_are_pruned_and_restored),
        CHAT_TEST(test_a_branch_has_a_name),
        CHAT_TEST(test_a_chat_is_copied_up_to_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
