// The chat controller: what is being typed is read ahead, belongs to its chat, and outlives the program.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "app/session/store.h"
#include "tests/unit/chat_fixture.h"

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

static void found(int n_asked, int n_prompt, int n_cached) {
    happen((struct engine_event){.kind = EVENT_STATE,
                                 .request = TOLD_AHEAD + (uint64_t)n_asked - 1,
                                 .state = REQUEST_FINISHED,
                                 .n_prompt = n_prompt,
                                 .n_reused = n_cached});
    chat_draw(chat);
    assert_int_equal(screen.view.context->asked, n_prompt);
    assert_int_equal(screen.view.context->cached, n_cached);
}

// The engine tokenizes the prompt each time.
static void test_what_is_cached_is_asked_for_where_it_may_have_changed(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "one");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    screen.context = true;
    chat_draw(chat);
    assert_int_equal(engine.n_ahead, 1);
    found(1, 40, 32);
    for (int i = 0; i < 3; i++) pass(2), chat_draw(chat);
    assert_int_equal(engine.n_ahead, 1);
    engine.metrics.evictions = 3;
    pass(2), chat_draw(chat);
    assert_int_equal(engine.n_ahead, 2);
    found(2, 40, 16);
    act_on(0, COMMAND_DROP);
    chat_draw(chat);
    assert_int_equal(engine.n_ahead, 3);
    found(3, 30, 0);
    act(COMMAND_SEND, -1, "r"); // whose metrics say it
    for (int i = 0; i < 3; i++) say(1, 2, "two"), pass(2), chat_draw(chat);
    assert_int_equal(engine.n_ahead, 3);
    end(1, 2, REQUEST_FINISHED, FINISH_END, "");
    chat_draw(chat);
    assert_int_equal(engine.n_ahead, 4);
    screen.context = false;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_a_draft_belongs_to_its_chat),
        CHAT_TEST(test_what_is_typed_is_read_ahead),
        CHAT_TEST(test_drafts_outlive_the_program),
        CHAT_TEST(test_drafts_are_saved_every_few_seconds),
        CHAT_TEST(test_a_named_chat_keeps_its_draft),
        CHAT_TEST(test_a_draft_changes_nothing_else_of_its_chat),
        CHAT_TEST(test_a_signal_saves_the_draft),
        CHAT_TEST(test_what_is_cached_is_asked_for_where_it_may_have_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
