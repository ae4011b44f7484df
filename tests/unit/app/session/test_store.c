// The store: what is saved comes back, two confabs share one, a full disk loses nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/session/store_state.h"
#include "engine/base/panic.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/temporary_folder.h"

struct place {
    char folder[64], path[128];
};

static int place_make(void **state) {
    struct place *p = xcalloc(1, sizeof *p);
    strcpy(p->folder, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(p->folder)) return -1;
    snprintf(p->path, sizeof p->path, "%s/data/confab.db", p->folder);
    *state = p;
    return 0;
}

static int place_remove(void **state) {
    struct place *p = *state;
    int result = temporary_folder_remove(p->folder);
    free(p);
    return result;
}

static struct store *open_store(const struct place *p) {
    struct status st = {0};
    struct store *s = store_open(p->path, &st);
    if (!s) fail_msg("%s", st.text);
    return s;
}

static struct conversation begin(const char *question) {
    struct conversation c;
    struct settings s = settings_default();
    conversation_open(&c, 1, &s);
    conversation_add(&c, -1, MESSAGE_USER, question, strlen(question));
    return c;
}

static void save(struct store *s, struct conversation *c) {
    struct status st = {0};
    if (!store_save(s, c, &st)) fail_msg("%s", st.text);
    assert_false(c->dirty);
    for (int i = 0; i < c->count; i++) assert_false(c->messages[i].dirty);
}

static void exec(const char *path, const char *sql) {
    struct status st = {0};
    struct store s = {.path = (char *)path};
    assert_int_equal(sqlite3_open(path, &s.db), SQLITE_OK);
    if (!store_prepare_search(&s, &st)) fail_msg("%s", st.text);
    assert_int_equal(sqlite3_exec(s.db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(s.db);
}

struct found {
    struct conversation conversations[32];
    int count;
};

static void keep(void *context, struct conversation *c) {
    struct found *f = context;
    f->conversations[f->count++] = *c;
}

static struct found read_all(struct store *s) {
    struct found f = {0};
    struct status st = {0};
    struct settings initial = settings_default();
    initial.system = (char[]){"By default"};
    assert_true(store_list(s, &initial, keep, &f, &st));
    for (int i = 0; i < f.count; i++) assert_true(store_read(s, &f.conversations[i], &st));
    return f;
}

static void forget_all(struct found *f) {
    for (int i = 0; i < f->count; i++) conversation_close(&f->conversations[i]);
}

static void test_everything_comes_back(void **state) {
    struct store *s = open_store(*state);
    struct conversation c = begin("What is Rust?");
    int one = conversation_add(&c, 0, MESSAGE_MODEL, "one", 3), two = conversation_add(&c, 0, MESSAGE_MODEL, "two", 3);
    c.messages[one].state = MESSAGE_FAILED;
    c.messages[two].tokens = 77;
    conversation_note(&c, one, "no memory");
    conversation_add(&c, two, MESSAGE_USER, "More \xe2\x9c\x93", 8);
    conversation_switch(&c, two, -1);
    conversation_rename(&c, "Rust");
    sampling_set(&c.settings.sampling, KNOB_temperature, 0.123);
    sampling_set(&c.settings.sampling, KNOB_seed, 4294967295.0);
    setting_parse(&c.settings, SETTING_system, "Be \\brief.\nAlways = so.", NULL);
    setting_parse(&c.settings, SETTING_stops, "\nUser:", NULL);
    setting_parse(&c.settings, SETTING_stops, " # ", NULL);
    setting_parse(&c.settings, SETTING_reasoning, "high", NULL);
    c.settings.max_tokens = 77, c.settings.time_limit = 1.5;
    conversation_set_sampling(&c, two, &c.settings.sampling);
    c.messages[two].begun = 1790000000123, c.messages[two].ended = 1790000000456;
    save(s, &c);
    store_close(s);

    s = open_store(*state);
    struct found f = read_all(s);
    assert_int_equal(f.count, 1);
    struct conversation *again = &f.conversations[0];
    assert_string_equal(again->title, "Rust");
    assert_true(again->named);
    assert_int_equal(again->count, 4);
    assert_int_equal(conversation_last(again), one); // the chosen version
    assert_string_equal(again->messages[one].note, "no memory");
    assert_int_equal(again->messages[one].state, MESSAGE_FAILED);
    assert_int_equal(again->messages[two].tokens, 77);
    assert_int_equal(again->messages[3].parent, two);
    assert_string_equal(again->messages[3].text, "More \xe2\x9c\x93");
    assert_memory_equal(&again->settings.sampling, &c.settings.sampling, sizeof c.settings.sampling);
    assert_memory_equal(again->messages[two].sampling, &c.settings.sampling, sizeof c.settings.sampling);
    assert_null(again->messages[one].sampling);
    assert_string_equal(again->settings.system, "Be \\brief.\nAlways = so.");
    assert_int_equal(again->settings.stops.count, 2);
    assert_string_equal(again->settings.stops.texts[0], "\nUser:");
    assert_string_equal(again->settings.stops.texts[1], " # ");
    assert_int_equal(again->settings.reasoning, REASONING_HIGH);
    assert_int_equal(again->settings.max_tokens, 77);
    assert_true(again->settings.time_limit == 1.5);
    assert_true(again->created && again->created == c.created);
    assert_true(again->messages[0].created == c.created);
    assert_int_equal(again->messages[0].begun, 0);
    assert_true(again->messages[two].begun == 1790000000123 && again->messages[two].ended == 1790000000456);
    assert_false(again->dirty);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

// They come back with the text that is theirs; with another text, or as rubbish, they are ignored.
static void test_tokens_come_back(void **state) {
    const struct place *p = *state;
    struct store *s = open_store(p);
    struct conversation c = begin("Hello?");
    int answer = conversation_add(&c, 0, MESSAGE_MODEL, "Hello!", 6);
    struct engine_event e = {.token = 7, .probability = 0.5f, .entropy = 1, .n_alternatives = 1};
    e.alternatives[0] = (struct token_alternative){.id = 9, .probability = 0.25f, .text = "Good"};
    message_tokens_add(&c.messages[answer].drawn, &e, 5);
    e.token = 8;
    message_tokens_add(&c.messages[answer].drawn, &e, 6);
    save(s, &c);
    struct found f = read_all(s);
    const struct message_tokens *drawn = &f.conversations[0].messages[answer].drawn;
    struct token_alternative alternatives[SAMPLING_TOP];
    assert_int_equal(drawn->count, 2);
    assert_int_equal(drawn->tokens[1].id, 8);
    assert_int_equal(drawn->tokens[0].end, 5);
    assert_int_equal(message_tokens_alternatives(drawn, 0, alternatives), 1);
    assert_string_equal(alternatives[0].text, "Good");
    forget_all(&f);
    const char *const changes[] = {"UPDATE message SET text = 'Hi' WHERE drawn IS NOT NULL",
                                   "UPDATE message SET text = 'Hello!', drawn = x'01ff' WHERE drawn IS NOT NULL",
                                   "UPDATE message SET drawn = 5 WHERE drawn IS NOT NULL"};
    for (int i = 0; i < 3; i++) {
        exec(p->path, changes[i]);
        f = read_all(s);
        assert_int_equal(f.conversations[0].messages[answer].drawn.count, 0);
        forget_all(&f);
    }
    store_close(s);
    conversation_close(&c);
}

// What came before the failure does not come twice.
static void test_a_reading_that_failed_midway_is_made_again(void **state) {
    const struct place *p = *state;
    struct store *s = open_store(p);
    struct status st = {0};
    struct conversation c = begin("q");
    conversation_add(&c, 0, MESSAGE_MODEL, "a", 1);
    save(s, &c);
    struct found f = {0};
    struct settings initial = settings_default();
    assert_true(store_list(s, &initial, keep, &f, &st));
    exec(p->path, "ALTER TABLE conversation RENAME COLUMN last TO gone");
    assert_false(store_read(s, &f.conversations[0], &st));
    assert_true(f.conversations[0].unread_rows);
    exec(p->path, "ALTER TABLE conversation RENAME COLUMN gone TO last");
    assert_true(store_read(s, &f.conversations[0], &st));
    assert_int_equal(f.conversations[0].count, 2);
    assert_int_equal(conversation_last(&f.conversations[0]), 1);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

static void test_a_growing_answer_is_one_message(void **state) {
    struct store *s = open_store(*state);
    struct conversation c = begin("q");
    int answer = conversation_add(&c, 0, MESSAGE_MODEL, "", 0);
    for (int i = 0; i < 50; i++) {
        conversation_append(&c, answer, "word ", 5);
        save(s, &c);
    }
    struct found f = read_all(s);
    assert_int_equal(f.conversations[0].count, 2);
    assert_int_equal(f.conversations[0].messages[1].size, 250);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

static void test_deleting_takes_the_messages_along(void **state) {
    struct store *s = open_store(*state);
    struct status st = {0};
    struct conversation a = begin("a"), b = begin("b");
    save(s, &a);
    save(s, &b);
    assert_true(store_delete(s, &a, &st));
    struct found f = read_all(s);
    assert_int_equal(f.count, 1);
    assert_string_equal(f.conversations[0].title, "b");
    forget_all(&f);
    conversation_close(&a);
    conversation_close(&b);
    store_close(s);
}

// Longer than SQLite follows from a message to the next.
static void test_a_long_branch_is_pruned_and_deleted(void **state) {
    struct store *s = open_store(*state);
    struct status st = {0};
    struct conversation a = begin("a"), b = begin("b");
    for (int i = 0; i < 1200; i++) {
        conversation_add(&a, a.count - 1, MESSAGE_USER, "x", 1);
        conversation_add(&b, b.count - 1, MESSAGE_USER, "x", 1);
    }
    save(s, &a);
    save(s, &b);
    if (!store_delete(s, &a, &st)) fail_msg("%s", st.text);
    conversation_prune(&b, 0);
    save(s, &b);
    struct found f = read_all(s);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.conversations[0].count, 0);
    forget_all(&f);
    conversation_close(&a);
    conversation_close(&b);
    store_close(s);
}

static void test_two_confabs_lose_nothing(void **state) {
    struct store *one = open_store(*state), *two = open_store(*state);
    struct conversation a = begin("from one");
    save(one, &a);
    struct found seen = read_all(two);
    struct conversation *b = &seen.conversations[0];
    for (int i = 0; i < 20; i++) { // both go on with the same conversation
        conversation_add(&a, conversation_last(&a), MESSAGE_MODEL, "a", 1);
        conversation_add(b, conversation_last(b), MESSAGE_MODEL, "b", 1);
        save(one, &a);
        save(two, b);
    }
    struct found f = read_all(one);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.conversations[0].count, 41);
    forget_all(&f);
    forget_all(&seen);
    conversation_close(&a);
    store_close(one);
    store_close(two);
}

static void test_a_conversation_deleted_elsewhere_is_written_again(void **state) {
    struct store *one = open_store(*state), *two = open_store(*state);
    struct status st = {0};
    struct conversation a = begin("question");
    save(one, &a);
    assert_true(store_delete(two, &a, &st));
    conversation_add(&a, 0, MESSAGE_MODEL, "answer", 6);
    save(one, &a);
    struct found f = read_all(two);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.conversations[0].count, 2);
    assert_string_equal(f.conversations[0].messages[0].text, "question");
    forget_all(&f);
    conversation_close(&a);
    store_close(one);
    store_close(two);
}

static void test_pruned_messages_are_deleted_and_come_back_in_their_places(void **state) {
    struct store *s = open_store(*state);
    struct conversation c = begin("question");
    int one = conversation_add(&c, 0, MESSAGE_MODEL, "one", 3), reply = conversation_add(&c, one, MESSAGE_USER, "r", 1);
    int two = conversation_add(&c, 0, MESSAGE_MODEL, "two", 3);
    conversation_name(&c, one, "plan B");
    save(s, &c);
    conversation_prune(&c, one);
    save(s, &c);
    struct found f = read_all(s);
    assert_int_equal(f.conversations[0].count, 2);
    assert_string_equal(f.conversations[0].messages[1].text, "two");
    forget_all(&f);
    int three = conversation_add(&c, two, MESSAGE_USER, "three", 5);
    save(s, &c);
    assert_int_equal(conversation_restore(&c), one);
    save(s, &c);
    f = read_all(s);
    struct conversation *again = &f.conversations[0];
    assert_int_equal(again->count, 5);
    assert_string_equal(again->messages[one].text, "one"); // the first version, as before
    assert_string_equal(again->messages[one].name, "plan B");
    assert_null(again->messages[two].name);
    assert_int_equal(again->messages[reply].parent, one);
    assert_int_equal(again->messages[three].parent, two);
    assert_int_equal(conversation_last(again), three); // as before
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

// Nobody loses what is on his screen.
static void test_what_another_confab_pruned_is_written_again_with_what_goes_on(void **state) {
    struct store *one = open_store(*state), *two = open_store(*state);
    struct conversation a = begin("question");
    conversation_add(&a, 0, MESSAGE_MODEL, "answer", 6);
    save(one, &a);
    struct found seen = read_all(two);
    conversation_prune(&seen.conversations[0], 1);
    save(two, &seen.conversations[0]);
    conversation_add(&a, 1, MESSAGE_USER, "next", 4);
    save(one, &a);
    struct found f = read_all(two);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.conversations[0].count, 3);
    assert_string_equal(f.conversations[0].messages[1].text, "answer");
    assert_int_equal(f.conversations[0].messages[2].parent, 1);
    forget_all(&f);
    forget_all(&seen);
    conversation_close(&a);
    store_close(one);
    store_close(two);
}

// A locked store, as another program may hold it.
static void test_a_locked_store_is_tried_again(void **state) {
    struct place *p = *state;
    struct store *s = open_store(p);
    struct conversation c = begin("question");
    struct status st = {0};
    sqlite3 *other;
    assert_int_equal(sqlite3_open(p->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_false(store_save(s, &c, &st));
    assert_non_null(strstr(st.text, p->path));
    assert_true(c.messages[0].dirty);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
    save(s, &c);
    conversation_close(&c);
    store_close(s);
}

static void test_a_full_disk_loses_nothing(void **state) {
    struct store *s = open_store(*state);
    struct conversation c = begin("question");
    struct status st = {0};
    save(s, &c);
    int answer = conversation_add(&c, 0, MESSAGE_MODEL, "", 0);
    for (int i = 0; i < 20000; i++) conversation_append(&c, answer, "a long answer ", 14);
    full_disk_begin(100000);
    bool saved = store_save(s, &c, &st);
    full_disk_end();
    assert_false(saved);
    assert_true(*st.text);
    assert_true(c.messages[answer].dirty);
    assert_int_equal(c.messages[answer].row, 0); // no row that the undone transaction gave
    save(s, &c);
    store_close(s);

    s = open_store(*state);
    struct found f = read_all(s);
    assert_int_equal(f.conversations[0].count, 2);
    assert_int_equal(f.conversations[0].messages[1].size, 280000);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

static void assert_draft(struct store *s, int64_t row, const char *text, const char *folds, size_t point) {
    struct draft d;
    struct status st = {0};
    assert_true(store_read_draft(s, row, &d, &st));
    struct draft expected = {(char *)text, (char *)folds, point};
    if (!draft_equal(&d, &expected)) fail_msg("%s %s %zu", d.text ? d.text : "none", d.folds ? d.folds : "", d.point);
    draft_free(&d);
}

static void save_draft(struct store *s, int64_t row, struct draft d) {
    struct status st = {0};
    if (!store_save_draft(s, row, &d, &st)) fail_msg("%s", st.text);
}

// As the first version wrote it: nothing is lost, and there is room for what a model thinks.
static void test_an_older_store_is_brought_up(void **state) {
    struct place *p = *state;
    struct status st = {0};
    char *folder = xasprintf("mkdir -p '%s/data'", p->folder);
    assert_int_equal(system(folder), 0);
    free(folder);
    exec(p->path,
         "CREATE TABLE conversation (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, named INTEGER "
         "NOT NULL, sampling TEXT NOT NULL, last INTEGER);"
         "CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, conversation INTEGER NOT NULL REFERENCES "
         "conversation ON DELETE CASCADE, parent INTEGER REFERENCES message ON DELETE CASCADE, role TEXT NOT NULL, "
         "state TEXT NOT NULL, text TEXT NOT NULL, note TEXT, tokens INTEGER NOT NULL);"
         "INSERT INTO conversation VALUES (7, 'Old', 1, 'temp=0.5', 12);"
         "INSERT INTO message VALUES (11, 7, NULL, 'user', 'complete', 'q', NULL, 0),"
         "(12, 7, 11, 'assistant', 'complete', 'a', 'fast', 9);"
         "PRAGMA user_version = 1");
    for (int round = 0; round < 2; round++) {
        struct store *s = open_store(p);
        struct found f = read_all(s);
        assert_int_equal(f.count, 1);
        struct conversation *c = &f.conversations[0];
        assert_string_equal(c->title, "Old");
        assert_int_equal(c->count, 2 + round);
        assert_string_equal(c->messages[1].text, "a");
        assert_string_equal(c->messages[1].note, "fast");
        assert_int_equal(conversation_last(c), 1 + round);
        if (round == 0) {
            assert_null(c->messages[1].thinking);
            assert_null(c->messages[1].notice);
            assert_true(c->settings.sampling.temperature == 0.5f);
            assert_string_equal(c->settings.system, "By default"); // until it is saved with one of its own
            assert_int_equal(c->created, 0);
            assert_int_equal(c->messages[1].created, 0);
            setting_parse(&c->settings, SETTING_system, "", NULL);
            conversation_add(c, 1, MESSAGE_USER, "now", 3);
            assert_draft(s, 7, NULL, NULL, 0);
            save_draft(s, 7, (struct draft){"draft", NULL, 2});
            conversation_think(c, 1, "hm", 2, 1.5);
            c->messages[1].thinking_tokens = 3;
            conversation_notice(c, 1, "mind this");
            save(s, c);
        } else {
            assert_null(c->settings.system);
            assert_int_equal(c->created, 0); // nor is it known later
            assert_int_equal(c->messages[1].created, 0);
            assert_true(c->messages[2].created > 0);
            assert_string_equal(c->messages[1].thinking, "hm");
            assert_int_equal(c->messages[1].thinking_tokens, 3);
            assert_true(c->messages[1].thinking_seconds == 1.5);
            assert_string_equal(c->messages[1].notice, "mind this");
            assert_draft(s, 7, "draft", NULL, 2);
        }
        forget_all(&f);
        store_close(s);
    }
    exec(p->path, "PRAGMA user_version = 1"); // the same steps twice cannot work, and that is said
    assert_null(store_open(p->path, &st));
    assert_non_null(strstr(st.text, "duplicate column"));
}

static void test_a_newer_store_is_left_alone(void **state) {
    struct place *p = *state;
    struct status st = {0};
    store_close(open_store(p));
    exec(p->path, "PRAGMA user_version = 99");
    assert_null(store_open(p->path, &st));
    assert_non_null(strstr(st.text, "99"));
}

static void test_a_file_that_is_no_store_is_left_alone(void **state) {
    struct place *p = *state;
    struct status st = {0};
    store_close(open_store(p));
    FILE *out = fopen(p->path, "w");
    for (int i = 0; i < 5000; i++) fputs("not a store ", out);
    fclose(out);
    assert_null(store_open(p->path, &st));
    assert_non_null(strstr(st.text, p->path));
}

// Rows that no confab wrote: other roles, parents that come later, texts that are NULL-like.
static void test_odd_rows_are_read(void **state) {
    struct place *p = *state;
    struct store *s = open_store(p);
    struct conversation c = begin("q");
    save(s, &c);
    exec(p->path, "INSERT INTO message (conversation, parent, role, state, text, tokens) VALUES"
                  "(1, 3, 'wizard', 'levitating', x'00ff00', -5), (1, NULL, '', '', '', 'many');"
                  "UPDATE conversation SET last = 999, sampling = 'temp=abc =3 nothing top-k=7'");
    struct found f = read_all(s);
    assert_int_equal(f.conversations[0].count, 3);
    assert_int_equal(f.conversations[0].settings.sampling.top_k, 7);
    int path[3];
    assert_true(conversation_path(&f.conversations[0], path) >= 1);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

static void test_drafts_come_back_as_they_were(void **state) {
    struct store *s = open_store(*state);
    struct conversation c = begin("question");
    save(s, &c);
    char *large = xmalloc(300001);
    for (int i = 0; i < 300000; i++) large[i] = (char)(1 + i % 127); // controls too
    large[300000] = 0;
    assert_draft(s, c.row, NULL, NULL, 0);
    save_draft(s, c.row, (struct draft){"a\nb\t\033[1m\r\n\377", "2+3 5+1", 7});
    save_draft(s, 0, (struct draft){large, NULL, 150000}); // of the chat that has not begun
    store_close(s);
    s = open_store(*state);
    assert_draft(s, c.row, "a\nb\t\033[1m\r\n\377", "2+3 5+1", 7);
    assert_draft(s, 0, large, NULL, 150000);
    save_draft(s, c.row, (struct draft){"another", NULL, 0});
    assert_draft(s, c.row, "another", NULL, 0);
    save_draft(s, c.row, (struct draft){0});
    assert_draft(s, c.row, NULL, NULL, 0);
    free(large);
    conversation_close(&c);
    store_close(s);
}

static void test_deleting_a_chat_deletes_its_draft(void **state) {
    struct store *one = open_store(*state), *two = open_store(*state);
    struct status st = {0};
    struct conversation c = begin("question");
    save(one, &c);
    save_draft(one, c.row, (struct draft){"mine", NULL, 4});
    assert_draft(two, c.row, "mine", NULL, 4);
    assert_true(store_delete(one, &c, &st));
    assert_draft(one, c.row, NULL, NULL, 0);
    save_draft(two, c.row, (struct draft){"late", NULL, 4}); // it is gone: nobody could find the draft
    assert_draft(two, c.row, NULL, NULL, 0);
    conversation_close(&c);
    store_close(one);
    store_close(two);
}

#define PAGE 4096

// Exchanges the page of the file that holds this text with `page`.
static void exchange_page(const char *path, const char *text, char page[PAGE]) {
    char there[PAGE];
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    for (long at = 0; fread(there, PAGE, 1, f) == 1; at += PAGE) {
        if (!memmem(there, PAGE, text, strlen(text))) continue;
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        assert_int_equal(fwrite(page, PAGE, 1, f), 1);
        memcpy(page, there, PAGE);
        assert_int_equal(fclose(f), 0);
        return;
    }
    fail_msg("%s holds no %s", path, text);
}

// A page in the middle that cannot be read.
static void test_a_read_that_fails_midway_adds_nothing(void **state) {
    struct place *p = *state;
    struct store *s = open_store(p);
    struct conversation c = begin("question");
    struct status st = {0};
    char text[3000];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 40; i++) {
        if (i == 20) memcpy(text, "THE BROKEN PAGE", 15);
        else memset(text, 'x', 15);
        conversation_add(&c, conversation_last(&c), i % 2 ? MESSAGE_USER : MESSAGE_MODEL, text, sizeof text);
    }
    save(s, &c);
    store_close(s);

    char page[PAGE] = "THE BROKEN PAGE", broken[PAGE] = "THE BROKEN PAGE";
    memset(page + 15, 0xff, PAGE - 15);
    memset(broken + 15, 0xff, PAGE - 15);
    exchange_page(p->path, "THE BROKEN PAGE", page);
    s = open_store(p);
    struct found f = {0};
    struct settings initial = settings_default();
    assert_true(store_list(s, &initial, keep, &f, &st));
    struct conversation *again = &f.conversations[0];
    for (int i = 0; i < 2; i++) {
        assert_false(store_read(s, again, &st));
        assert_non_null(strstr(st.text, p->path));
        assert_int_equal(again->count, 0);
        assert_true(again->unread_rows);
    }
    store_close(s);
    exchange_page(p->path, "THE BROKEN PAGE", page);
    assert_memory_equal(page, broken, PAGE);
    s = open_store(p);
    assert_true(store_read(s, again, &st));
    assert_int_equal(again->count, 41);
    assert_int_equal(conversation_last(again), 40);
    forget_all(&f);
    conversation_close(&c);
    store_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_everything_comes_back, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_tokens_come_back, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_reading_that_failed_midway_is_made_again, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_growing_answer_is_one_message, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_deleting_takes_the_messages_along, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_long_branch_is_pruned_and_deleted, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_two_confabs_lose_nothing, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_conversation_deleted_elsewhere_is_written_again, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(test_pruned_messages_are_deleted_and_come_back_in_their_places, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(test_what_another_confab_pruned_is_written_again_with_what_goes_on, place_make,
                                        place_remove),
        cmocka_unit_test_setup_teardown(test_a_locked_store_is_tried_again, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_full_disk_loses_nothing, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_an_older_store_is_brought_up, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_newer_store_is_left_alone, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_no_store_is_left_alone, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_odd_rows_are_read, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_drafts_come_back_as_they_were, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_deleting_a_chat_deletes_its_draft, place_make, place_remove),
        cmocka_unit_test_setup_teardown(test_a_read_that_fails_midway_adds_nothing, place_make, place_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
