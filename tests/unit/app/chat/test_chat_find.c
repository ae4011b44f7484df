// Finding chats, and what is done to them as a whole.
#include "tests/unit/chat_fixture.h"

static void talk(const char *question, const char *answer) {
    if (screen.view.n_messages) act(COMMAND_NEW, -1, NULL);
    act(COMMAND_SEND, -1, question);
    const uint64_t request = engine.n_requests;
    const uint64_t conversation = chat->current->conversation.id;
    say(conversation, request, answer);
    end(conversation, request, REQUEST_FINISHED, FINISH_END, "");
    pass(2); // it is saved
    pass(2);
}

static void look_for(const char *words) {
    screen.finding = words;
    for (int i = 0; i < 3; i++) chat_draw(chat), pass(0.1);
}

static const char *found_title(int row) {
    assert_true(row < screen.view.n_found);
    return screen.chats[screen.found[row].chat].title;
}

static void test_chats_are_listed_by_their_last_use(void **state) {
    (void)state;
    talk("One", "a"), talk("Two", "b");
    look_for("");
    assert_int_equal(screen.view.n_found, 2);
    assert_string_equal(found_title(0), "Two");
    screen.finding = NULL;
    act(COMMAND_NEXT, 1, NULL);
    act(COMMAND_SEND, -1, "Once more");
    look_for("");
    assert_string_equal(found_title(0), "One");
}

static void test_texts_are_found_behind_titles(void **state) {
    (void)state;
    talk("A question", "about rust in iron"), talk("Rust", "a language"), talk("Other", "thing");
    screen.finding = "rust";
    chat_draw(chat);
    assert_true(screen.view.finding);
    look_for("rust");
    assert_false(screen.view.finding);
    assert_int_equal(screen.view.n_found, 2);
    assert_string_equal(found_title(0), "Rust");
    assert_string_equal(found_title(1), "A question");
    assert_string_equal(screen.found[1].snippet, "about rust in iron");
    look_for("iron");
    assert_int_equal(screen.view.n_found, 1);
}

static void test_going_to_a_match_leads_to_its_message(void **state) {
    (void)state;
    talk("A question", "about rust in iron"), talk("Other", "thing");
    look_for("iron");
    act(COMMAND_FIND_CHAT, 0, NULL);
    assert_string_equal(chat->current->conversation.title, "A question");
    assert_int_equal(screen.shown, chat_message_id(&chat->current->conversation, 1));
}

static void test_a_match_in_a_chat_that_is_not_read_yet_is_shown(void **state) {
    (void)state;
    talk("A question", "about rust in iron"), talk("Other", "thing");
    close_chat();
    open_chat();
    pass(0.1);
    look_for("iron");
    assert_int_equal(screen.view.n_found, 1);
    act(COMMAND_FIND_CHAT, 0, NULL);
    pass(0.1);
    assert_int_equal(screen.shown, chat_message_id(&chat->current->conversation, 1));
}

static void test_a_deleted_chat_comes_back(void **state) {
    (void)state;
    talk("One", "a"), talk("Two", "b");
    act(COMMAND_DELETE, -1, "");
    pass(0.1);
    look_for("");
    assert_int_equal(screen.view.n_found, 1);
    act(COMMAND_UNDELETE, -1, NULL);
    pass(2);
    assert_string_equal(chat->current->conversation.title, "Two");
    assert_string_equal(chat->current->conversation.messages[1].text, "b");
    close_chat();
    open_chat();
    pass(0.1);
    assert_int_equal(session_count(chat->session), 3); // with the one that has not begun
    act(COMMAND_UNDELETE, -1, NULL);
    assert_non_null(strstr(screen.status, "no chat was deleted"));
}

static void test_a_deleted_chat_comes_back_with_what_was_typed(void **state) {
    (void)state;
    talk("One", "a");
    type("half a"); // not given to the session yet
    act(COMMAND_DELETE, -1, "");
    pass(0.1);
    assert_string_equal(screen.composer, "");
    act(COMMAND_UNDELETE, -1, NULL);
    pass(0.1);
    assert_string_equal(screen.composer, "half a");
}

static void test_a_chat_deleted_unread_comes_back(void **state) {
    (void)state;
    talk("One", "a");
    type("a draft");
    pass(3);
    talk("Two", "b");
    close_chat();
    open_chat();
    pass(0.1);
    look_for("one");
    act(COMMAND_DELETE, 0, NULL);
    pass(0.1);
    assert_int_equal(session_count(chat->session), 2);
    act(COMMAND_UNDELETE, -1, NULL);
    pass(0.1);
    assert_string_equal(chat->current->conversation.messages[1].text, "a");
    assert_string_equal(screen.composer, "a draft");
}

static void test_pinned_chats_come_first_and_archived_ones_last(void **state) {
    (void)state;
    talk("One", "a"), talk("Two", "b"), talk("Three", "c");
    look_for("one");
    act(COMMAND_PIN_CHAT, 0, NULL);
    screen.finding = NULL;
    act(COMMAND_ARCHIVE, -1, NULL); // the current one: three
    pass(2);
    assert_string_equal(screen.chats[0].title, "One");
    assert_int_equal(screen.view.n_listed, screen.view.n_chats - 1);
    assert_string_equal(screen.chats[screen.view.n_chats - 1].title, "Three");
    close_chat();
    open_chat();
    pass(0.1);
    assert_string_equal(screen.chats[0].title, "One");
    assert_int_equal(screen.view.n_listed, 3);
    look_for("");
    assert_int_equal(screen.view.n_found, 2);
    look_for("three"); // words find it still
    assert_int_equal(screen.view.n_found, 1);
    act(COMMAND_ARCHIVE, 0, NULL);
    look_for("");
    assert_int_equal(screen.view.n_found, 3);
}

static void test_tags_are_found(void **state) {
    (void)state;
    talk("One", "a"), talk("Two", "b");
    act(COMMAND_TAG, -1, "work, later");
    look_for("#later");
    assert_int_equal(screen.view.n_found, 1);
    assert_string_equal(found_title(0), "Two");
}

static void test_a_chat_is_exported_and_imported(void **state) {
    (void)state;
    talk("One", "an answer");
    char *path = xasprintf("%s/one.json", folder);
    act(COMMAND_EXPORT, -1, "~/one.json");
    pass(0.1);
    assert_non_null(strstr(screen.status, path));
    act(COMMAND_EXPORT, -1, path);
    pass(0.1);
    assert_non_null(strstr(screen.status, "not exported"));
    act(COMMAND_IMPORT, -1, path);
    pass(0.1);
    assert_string_equal(screen.status, "imported 1 chat with 2 messages");
    assert_int_equal(session_count(chat->session), 2);
    act(COMMAND_IMPORT, -1, config_path);
    pass(0.1);
    assert_true(screen.view.status_bad);
    free(path);
}

static void test_quitting_asks_while_answers_run(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "One");
    act(COMMAND_QUIT, -1, NULL);
    assert_true(screen.asks && !chat->ending);
    screen.asks = false; // no
    act(COMMAND_QUIT, -1, NULL);
    assert_true(screen.asks && !chat->ending);
    press(COMMAND_QUIT, -1, NULL); // once more
    chat_step(chat, 0);
    assert_true(chat->ending);
}

static void test_quitting_does_not_ask_where_that_is_turned_off(void **state) {
    (void)state;
    settings.ask_quit = 0;
    act(COMMAND_SEND, -1, "One");
    press(COMMAND_QUIT, -1, NULL);
    chat_step(chat, 0);
    assert_true(!screen.asks && chat->ending);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_chats_are_listed_by_their_last_use),
        CHAT_TEST(test_texts_are_found_behind_titles),
        CHAT_TEST(test_going_to_a_match_leads_to_its_message),
        CHAT_TEST(test_a_match_in_a_chat_that_is_not_read_yet_is_shown),
        CHAT_TEST(test_a_deleted_chat_comes_back),
        CHAT_TEST(test_a_deleted_chat_comes_back_with_what_was_typed),
        CHAT_TEST(test_a_chat_deleted_unread_comes_back),
        CHAT_TEST(test_pinned_chats_come_first_and_archived_ones_last),
        CHAT_TEST(test_tags_are_found),
        CHAT_TEST(test_a_chat_is_exported_and_imported),
        CHAT_TEST(test_quitting_asks_while_answers_run),
        CHAT_TEST(test_quitting_does_not_ask_where_that_is_turned_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
