// A session without a screen: what came of its chats is in the store, whatever becomes of that meanwhile.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>
#include <sqlite3.h>

#include "app/session/store_state.h"
#include "tests/unit/session_fixture.h"

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

// One that has a name but no messages keeps what was chosen for it.
static void test_a_chat_that_has_not_begun_keeps_its_settings(void **state) {
    (void)state;
    session_rename(chat(0), "Translator");
    set(&chat(0)->conversation.settings, SETTING_system, "Translate.");
    session_settings_changed(chat(0));
    close_session();
    open_session();
    settle();
    const int named = *chat(0)->conversation.title ? 0 : 1;
    session_read(session, chat(named));
    settle();
    session_begin_with_defaults(session);
    send(named, "one");
    assert_string_equal(engine.prompt, "system: Translate.|user: one|");
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

static bool lies_in(const char *path, const char *text) {
    struct status st = {0};
    size_t size;
    char *data = file_read(path, 1 << 24, &size, &st);
    const bool found = data && memmem(data, size, text, strlen(text));
    free(data);
    return found;
}

static bool is_on_the_disk(const char *text) {
    char *log = xasprintf("%s-wal", store_path);
    const bool found = lies_in(store_path, text) || lies_in(log, text);
    free(log);
    return found;
}

static void test_nothing_of_a_private_chat_is_kept(void **state) {
    (void)state;
    send(0, "a public question");
    settle();
    assert_true(engine.disk_owner);
    assert_true(is_on_the_disk("a public question"));
    struct session_chat *own = session_new_private(session);
    session_set_draft(own, &(struct draft){.text = xstrdup("a hidden draft")});
    settle();
    session_rename(own, "a hidden title");
    send(session_index(session, own), "a hidden question");
    assert_int_equal(engine.disk_owner, 0);
    say(2, "a hidden answer");
    end(2, REQUEST_FINISHED, "");
    settle();
    struct session_chat *copy = session_copy(session, own, 1);
    settle();
    session_delete(session, own);
    assert_ptr_equal(session_undelete(session)->conversation.messages[1].text[0], 'a');
    settle();
    assert_true(copy->conversation.private);
    assert_false(session_unsaved(session));
    assert_false(is_on_the_disk("hidden"));
    close_session();
    assert_false(is_on_the_disk("hidden"));
    open_session();
    assert_int_equal(session_count(session), 2); // the public one, and an empty one
}

static void delete_elsewhere(const char *sql) {
    struct status st = {0};
    struct store *other = store_open(store_path, &st);
    if (!other) fail_msg("%s", st.text);
    assert_int_equal(sqlite3_exec(other->db, sql, NULL, NULL, NULL), SQLITE_OK);
    store_close(other);
}

static void test_what_another_confab_pruned_is_written_again(void **state) {
    (void)state;
    converse();
    end(2, REQUEST_FINISHED, "");
    settle();
    delete_elsewhere("DELETE FROM message WHERE text = 'two'");
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
    delete_elsewhere("DELETE FROM conversation");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        SESSION_TEST(test_settings_belong_to_a_chat),
        SESSION_TEST(test_a_chat_that_has_not_begun_keeps_its_settings),
        SESSION_TEST(test_messages_have_times),
        SESSION_TEST(test_everything_is_there_after_reopening),
        SESSION_TEST(test_an_edited_message_is_another_version),
        SESSION_TEST(test_pruning_stops_the_answers_it_takes),
        SESSION_TEST(test_nothing_of_a_private_chat_is_kept),
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
