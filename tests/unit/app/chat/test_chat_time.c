// The chat controller as time passes: what it draws, what it saves, and how it ends.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "app/session/store.h"
#include "tests/unit/chat_fixture.h"

static void test_conversations_come_back(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "first question");
    say(1, 1, "first answer");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    act(COMMAND_NEW, -1, NULL);
    act(COMMAND_SEND, -1, "second question");
    say(2, 2, "half an ans");
    assert_true(close_chat()); // what came so far is kept
    open_chat();
    assert_int_equal(screen.view.n_chats, 3);
    assert_string_equal(screen.chats[1].title, "second question");
    act(COMMAND_NEXT, -1, NULL);
    assert_message(1, VIEW_MODEL, "half an ans");
    assert_non_null(strstr(screen.messages[1].note, "stopped"));
    act(COMMAND_NEXT, 2, NULL); // a click on the third
    assert_message(1, VIEW_MODEL, "first answer");
    assert_int_equal(screen.view.context_used, 13);
}

// The running request as the engine's metrics have it.
static void count_running(uint64_t request, int n_context, int n_generated) {
    engine.metrics.n_requests = 1;
    engine.metrics.requests[0] = (struct request_metrics){
        .request = request, .state = REQUEST_DECODING, .n_context = n_context, .n_generated = n_generated};
}

// Of an answer that was cut its tokens are counted all the same, be it by leaving or because confab was killed.
static void test_an_interrupted_answer_is_counted(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "question");
    count_running(1, 101, 1);
    say(1, 1, "half an ");
    say(1, 1, "ans");
    count_running(1, 102, 2);
    pass(1); // saved
    chat->current->n_answers = 0, chat->current->save_at = 0; // as if confab were gone
    engine.metrics.n_requests = 0;
    close_chat();
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    assert_string_equal(screen.messages[1].note, "interrupted");
    assert_int_equal(screen.view.context_used, 102);
    assert_false(screen.view.context_guessed);
    act(COMMAND_SEND, -1, "again");
    count_running(2, 131, 1);
    say(1, 2, "and");
    assert_int_equal(screen.view.context_used, 131);
    close_chat();
    engine.metrics.n_requests = 0;
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    assert_int_equal(screen.view.context_used, 131);
    assert_false(screen.view.context_guessed);
}

// An answer that waits for a model counted nothing.
static void test_what_nobody_counted_is_guessed(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "question");
    close_chat(); // before the engine has said anything
    open_chat();
    act(COMMAND_NEXT, -1, NULL);
    assert_int_equal(screen.view.context_used, 2);
    assert_true(screen.view.context_guessed);
}

static void test_tokens_of_another_model_are_a_guess(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "question");
    say(1, 1, "answer");
    end(1, 1, REQUEST_FINISHED, FINISH_END, "");
    assert_false(screen.view.context_guessed);
    conversation_set_model(&chat->current->conversation, 1, "Other 2B Q8_0");
    pass(1);
    act(COMMAND_KNOB_NEXT, -1, NULL);
    assert_int_equal(screen.view.context_used, 13);
    assert_true(screen.view.context_guessed);
}

static int visited_bytes;
static void visit(void *context, struct conversation *c) {
    struct store *s = context;
    struct status st = {0};
    assert_true(store_read(s, c, &st));
    visited_bytes = (int)c->messages[c->count - 1].size;
    conversation_close(c);
}

// The bytes of the last message as another program sees them in the store.
static int saved_bytes(void) {
    struct status st = {0};
    struct settings initial = settings_default();
    struct store *s = store_open(store_path, &st);
    assert_non_null(s);
    assert_true(store_list(s, &initial, visit, s, &st));
    store_close(s);
    return visited_bytes;
}

static void test_a_partial_answer_is_saved_every_second(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    for (int i = 0; i < 30; i++) say(1, 1, "word ");
    int saved = saved_bytes();
    assert_true(saved > 0 && saved <= 150);
    pass(1);
    assert_int_equal(saved_bytes(), 150);
}

static void test_an_idle_chat_draws_nothing(void **state) {
    (void)state;
    pass(5);
    int draws = screen.draws;
    for (int i = 0; i < 20; i++) pass(1);
    assert_int_equal(screen.draws, draws);
}

// How often a chat is drawn in a second in which an event comes every millisecond, and commands if keys are pressed.
static int draws_in_a_second(bool keys) {
    int draws = screen.draws;
    for (int i = 0; i < 1000; i++) {
        told_engine_say((struct engine_event){
            .kind = EVENT_TEXT, .conversation = 1, .request = 1, .token = 1, .size = 1, .text = "x"});
        screen.n_commands = screen.next_command = 0;
        if (keys) screen.commands[screen.n_commands++] = (struct ui_command){.id = COMMAND_KNOB_NEXT};
        pass(0.001);
    }
    return screen.draws - draws;
}

static void test_drawing_keeps_to_thirty_a_second(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    int draws = draws_in_a_second(false);
    assert_true(draws <= 31 && draws >= 25);
}

static void test_keys_are_answered_sixty_times_a_second(void **state) {
    (void)state;
    act(COMMAND_SEND, -1, "q");
    int draws = draws_in_a_second(true);
    assert_true(draws <= 61 && draws >= 50);
}

static void test_histories_move_while_something_runs(void **state) {
    (void)state;
    engine.metrics.running = 1;
    engine.metrics.decode_now = 40;
    act(COMMAND_SEND, -1, "q");
    for (int i = 0; i < 20; i++) pass(0.25);
    int samples = screen.view.decode.count;
    assert_true(samples >= 19);
    assert_true(screen.view.decode.values[samples - 1] == 40);
    engine.metrics.running = 0;
    engine.metrics.decode_now = 0;
    for (int i = 0; i < 20; i++) pass(0.25);
    assert_true(screen.view.decode.values[screen.view.decode.count - 1] == 0);
    int after = screen.view.decode.count;
    for (int i = 0; i < 20; i++) pass(0.25);
    assert_int_equal(screen.view.decode.count, after);
}

static void test_quitting_and_losing_the_terminal_end_it(void **state) {
    (void)state;
    screen.ended = true;
    assert_false(chat_step(chat, 0));
    screen.ended = false;
    press(COMMAND_QUIT, -1, NULL);
    assert_false(chat_step(chat, 0));
}

// A disk that is full, or another program that holds the store: what is not saved is shown, kept, and not lost by
// leaving in haste.
static void test_leaving_what_cannot_be_saved_asks_once(void **state) {
    (void)state;
    sqlite3 *other;
    settings.ask_quit = 0;
    assert_int_equal(sqlite3_open(store_path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    act(COMMAND_SEND, -1, "Precious");
    pass(1);
    assert_true(screen.view.unsaved);
    assert_non_null(strstr(screen.status, "not saved"));
    act(COMMAND_QUIT, -1, NULL);
    assert_non_null(strstr(screen.status, "leaving again"));
    act(COMMAND_KNOB_NEXT, -1, NULL);
    act(COMMAND_QUIT, -1, NULL); // asks again after something else
    assert_non_null(strstr(screen.status, "leaving again"));
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(other);
    pass(3);
    assert_false(screen.view.unsaved);
    press(COMMAND_QUIT, -1, NULL);
    assert_false(chat_step(chat, 0));
}

static void test_a_store_that_cannot_open_is_said(void **state) {
    (void)state;
    settings.ask_quit = 0;
    close_chat();
    free(store_path);
    store_path = xstrdup("/proc/nothing/confab.db");
    open_chat();
    assert_true(screen.view.status_bad);
    assert_true(screen.view.unsaved);
    assert_non_null(strstr(screen.status, "not saved"));
    act(COMMAND_SEND, -1, "still works");
    assert_message(0, VIEW_USER, "still works");
    act(COMMAND_QUIT, -1, NULL);
    assert_non_null(strstr(screen.status, "leaving again"));
    press(COMMAND_QUIT, -1, NULL);
    assert_false(chat_step(chat, 0));
}

static void test_a_store_that_opens_late_gets_everything(void **state) {
    (void)state;
    settings.ask_quit = 0;
    close_chat();
    char *command = xasprintf("rm -f %s* && mkdir %s", store_path, store_path),
         *back = xasprintf("rmdir %s", store_path);
    assert_int_equal(system(command), 0);
    open_chat();
    assert_true(screen.view.unsaved);
    act(COMMAND_SEND, -1, "q");
    say(1, 1, "precious");
    assert_int_equal(system(back), 0);
    press(COMMAND_QUIT, -1, NULL);
    assert_false(chat_step(chat, 0));
    assert_int_equal(saved_bytes(), 8);
    free(command), free(back);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CHAT_TEST(test_conversations_come_back),
        CHAT_TEST(test_an_interrupted_answer_is_counted),
        CHAT_TEST(test_what_nobody_counted_is_guessed),
        CHAT_TEST(test_tokens_of_another_model_are_a_guess),
        CHAT_TEST(test_a_partial_answer_is_saved_every_second),
        CHAT_TEST(test_an_idle_chat_draws_nothing),
        CHAT_TEST(test_drawing_keeps_to_thirty_a_second),
        CHAT_TEST(test_keys_are_answered_sixty_times_a_second),
        CHAT_TEST(test_histories_move_while_something_runs),
        CHAT_TEST(test_quitting_and_losing_the_terminal_end_it),
        CHAT_TEST(test_leaving_what_cannot_be_saved_asks_once),
        CHAT_TEST(test_a_store_that_cannot_open_is_said),
        CHAT_TEST(test_a_store_that_opens_late_gets_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
