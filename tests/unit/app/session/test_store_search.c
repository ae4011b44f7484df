// Searching the store: what is saved is found, what is changed or deleted is not, the best comes first.
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
#include "tests/unit/temporary_folder.h"

static char folder[64], *path;
static struct store *store;
static struct store_match *matches;
static int count;

static int setup(void **state) {
    struct status st = {0};
    (void)state;
    strcpy(folder, "/tmp/confab-test-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    path = xasprintf("%s/confab.db", folder);
    store = store_open(path, &st);
    return store ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    store_free_matches(matches, count);
    matches = NULL, count = 0;
    store_close(store);
    free(path);
    return temporary_folder_remove(folder);
}

static void save(struct conversation *c) {
    struct status st = {0};
    if (!store_save(store, c, &st)) fail_msg("%s", st.text);
}

static struct conversation saved(const char *question, const char *answer) {
    struct conversation c;
    struct settings s = settings_default();
    conversation_open(&c, 1, &s);
    conversation_add(&c, -1, MESSAGE_USER, question, strlen(question));
    conversation_add(&c, 0, MESSAGE_MODEL, answer, strlen(answer));
    save(&c);
    return c;
}

static int search(const char *words) {
    struct status st = {0};
    store_free_matches(matches, count);
    count = store_search(store, words, &matches, &st);
    if (count < 0) fail_msg("%s: %s", words, st.text);
    return count;
}

static void test_words_are_found_in_any_case_and_order(void **state) {
    (void)state;
    struct conversation a = saved("Wie heißt das?", "A Crab called Ferris"), b = saved("Trip to Oslo", "By train");
    assert_int_equal(search("ferris crab"), 1);
    assert_int_equal(matches[0].conversation, a.row);
    assert_int_equal(matches[0].message, a.messages[1].row);
    assert_string_equal(matches[0].snippet, "A Crab called Ferris");
    assert_int_equal(search("OSLO"), 1);
    assert_int_equal(matches[0].message, b.messages[0].row);
    assert_int_equal(search("oslo crab"), 0); // not in one message
    assert_int_equal(search("heiß"), 1);
    conversation_close(&a), conversation_close(&b);
}

static void test_the_last_word_may_be_a_beginning(void **state) {
    (void)state;
    struct conversation a = saved("Lifetimes in Rust", "They are checked");
    assert_int_equal(search("lif"), 1);
    assert_int_equal(search("lif rust"), 0);
    assert_int_equal(search("li"), 0); // too short for that
    assert_int_equal(search("in"), 1);
    conversation_close(&a);
}

static void test_what_stands_amid_a_sentence_without_spaces_is_found(void **state) {
    (void)state;
    struct conversation a = saved("東京都の天気を教えてください", "明日はKV cacheが晴れ、ว่าสวัสดีครับ"),
                        b = saved("京都の天気", "이것은 한국어 문장입니다");
    assert_int_equal(search("天気"), 2);
    assert_int_equal(search("東京"), 1);
    assert_int_equal(matches[0].message, a.messages[0].row);
    assert_int_equal(search("京東"), 0); // in this order only
    assert_int_equal(search("cacheが"), 1);
    assert_int_equal(search("教えてくだ"), 1);
    assert_int_equal(search("都 天"), 2);
    assert_int_equal(search("สวัสดี"), 1);
    assert_int_equal(search("한국"), 0); // Korean has spaces, and begins with more letters
    assert_int_equal(search("한국어"), 1);
    conversation_close(&a), conversation_close(&b);
}

static void test_words_in_quotes_follow_each_other(void **state) {
    (void)state;
    struct conversation a = saved("the cat sat", "a sat cat");
    assert_int_equal(search("\"cat sat\""), 1);
    assert_int_equal(matches[0].message, a.messages[0].row);
    assert_int_equal(search("\"cat the\""), 0);
    assert_int_equal(search("\"cat sa"), 0); // the quote is not closed yet: whole words
    conversation_close(&a);
}

static void test_signs_of_the_query_language_are_harmless(void **state) {
    (void)state;
    struct conversation a = saved("C++ AND (NOT) text:x * ^ - \"q\"", "ok");
    static const char *const words[] = {"*",  "\"",  "\"\"", "AND",   "NOT (", "text:x",
                                        "^c", "c++", "-",    "a* OR", "  ",    "%s%n"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) search(words[i]);
    assert_int_equal(search("not c++"), 1);
    conversation_close(&a);
}

static void test_the_best_message_of_each_chat_comes_first(void **state) {
    (void)state;
    struct conversation a = saved("rust and a great deal of other words that have nothing to do with it at all",
                                  "rust rust"),
                        b = saved("one rust", "none"), c = saved("nothing", "here");
    assert_int_equal(search("rust"), 2);
    assert_int_equal(matches[0].message, a.messages[1].row);
    assert_int_equal(matches[1].message, b.messages[0].row);
    conversation_close(&a), conversation_close(&b), conversation_close(&c);
}

static void test_what_is_changed_pruned_or_deleted_is_no_longer_found(void **state) {
    (void)state;
    struct status st = {0};
    struct conversation a = saved("alpha", "beta");
    conversation_clear(&a, 1);
    conversation_append(&a, 1, "gamma", 5);
    save(&a);
    assert_int_equal(search("beta"), 0);
    assert_int_equal(search("gamma"), 1);
    conversation_prune(&a, 1);
    save(&a);
    assert_int_equal(search("gamma"), 0);
    conversation_restore(&a);
    save(&a);
    assert_int_equal(search("gamma"), 1);
    assert_true(store_delete(store, &a, &st));
    assert_int_equal(search("gamma"), 0);
    assert_int_equal(search("alpha"), 0);
    conversation_close(&a);
}

static void test_a_snippet_is_one_line_around_the_match(void **state) {
    (void)state;
    char *text = xmalloc(20001);
    for (int i = 0; i < 20000; i++) text[i] = "word \n"[i % 6];
    memcpy(text + 10002, "needle", 6);
    text[20000] = 0;
    struct conversation a = saved("q", text);
    assert_int_equal(search("needle"), 1);
    const char *snippet = matches[0].snippet;
    assert_true(strlen(snippet) < 300);
    assert_null(strchr(snippet, '\n'));
    assert_true(strstr(snippet, "needle") - snippet < 60);
    free(text);
    conversation_close(&a);
}

static void test_an_older_store_becomes_searchable(void **state) {
    (void)state;
    struct status st = {0};
    struct conversation a = saved("alpha", "beta");
    assert_int_equal(
        sqlite3_exec(store->db, // as the version before wrote it
                     "DROP TRIGGER message_search_added; DROP TRIGGER message_search_deleted;"
                     "DROP TRIGGER message_search_changed; DROP TABLE message_search;"
                     "ALTER TABLE conversation DROP COLUMN used; ALTER TABLE conversation DROP COLUMN pinned;"
                     "ALTER TABLE conversation DROP COLUMN archived;"
                     "ALTER TABLE conversation DROP COLUMN tags; PRAGMA user_version = 11",
                     NULL, NULL, NULL),
        SQLITE_OK);
    store_close(store);
    store = store_open(path, &st);
    if (!store) fail_msg("%s", st.text);
    assert_int_equal(search("beta"), 1);
    conversation_close(&a);
}

static void test_a_store_of_words_between_spaces_finds_letters(void **state) {
    (void)state;
    struct status st = {0};
    struct conversation a = saved("東京都の天気", "beta");
    assert_int_equal(sqlite3_exec(store->db,
                                  "DROP TABLE message_search; CREATE VIRTUAL TABLE message_search USING fts5 (text, "
                                  "content = 'message', content_rowid = 'id', prefix = '3', tokenize = 'unicode61');"
                                  "INSERT INTO message_search (message_search) VALUES ('rebuild');"
                                  "PRAGMA user_version = 12",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    store_close(store);
    store = store_open(path, &st);
    if (!store) fail_msg("%s", st.text);
    assert_int_equal(search("天気"), 1);
    conversation_close(&a);
}

static void keep(void *context, struct conversation *found) { *(struct conversation *)context = *found; }

static void test_pins_archive_tags_and_use_come_back(void **state) {
    (void)state;
    struct status st = {0};
    struct settings s = settings_default();
    struct conversation a = saved("alpha", "beta"), found;
    a.pinned = true, a.archived = true, a.used = 1790000000123;
    conversation_tag(&a, "one two");
    save(&a);
    assert_true(store_list(store, &s, keep, &found, &st));
    assert_true(found.pinned && found.archived && found.used == 1790000000123);
    assert_string_equal(found.tags, "one two");
    assert_true(store_read(store, &found, &st));
    assert_true(found.used == 1790000000123);
    conversation_close(&a), conversation_close(&found);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_words_are_found_in_any_case_and_order),
        TEST(test_the_last_word_may_be_a_beginning),
        TEST(test_what_stands_amid_a_sentence_without_spaces_is_found),
        TEST(test_words_in_quotes_follow_each_other),
        TEST(test_signs_of_the_query_language_are_harmless),
        TEST(test_the_best_message_of_each_chat_comes_first),
        TEST(test_what_is_changed_pruned_or_deleted_is_no_longer_found),
        TEST(test_a_snippet_is_one_line_around_the_match),
        TEST(test_an_older_store_becomes_searchable),
        TEST(test_a_store_of_words_between_spaces_finds_letters),
        TEST(test_pins_archive_tags_and_use_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
