// Log: lines, ring, file and rotation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "tests/unit/temporary_folder.h"

static const char *folder; // shared by the tests

static struct log_entry last_entry(void) {
    struct log_entry e;
    assert_int_equal(log_read(log_count() - 1, &e, 1), 1);
    return e;
}

static char *file_text(const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, '\0', f) < 0) *(text = xrealloc(text, 1)) = '\0';
    fclose(f);
    return text;
}

static int count_of(const char *text, const char *what) {
    int n = 0;
    for (; (text = strstr(text, what)); text++) n++;
    return n;
}

static void test_an_entry_is_one_clean_line(void **state) {
    (void)state;
    log_info("tests", "a\nb\tc \x1b[31mred \xff %s", "日本");
    assert_string_equal(last_entry().text, "a b c ?[31mred \xef\xbf\xbd 日本");
    assert_string_equal(last_entry().module, "tests");
    char *long_text = xmalloc(4001);
    memset(long_text, 'x', 4000);
    long_text[4000] = '\0';
    log_info("a module of a long name", "%s", long_text);
    assert_int_equal(strlen(last_entry().text), sizeof last_entry().text - 1);
    assert_string_equal(last_entry().module, "a module of");
    free(long_text);
}

static void test_a_line_has_time_level_module_and_text(void **state) {
    (void)state;
    char line[LOG_LINE];
    setenv("TZ", "UTC", 1);
    struct log_entry e = {.at = 1767323045678000000, .level = LOG_LEVEL_WARNING, .module = "engine", .text = "hot"};
    size_t size = log_format(&e, line);
    assert_int_equal(size, strlen(line));
    assert_string_equal(line, "2026-01-02 03:04:05.678 warning engine  hot");
    for (e.level = LOG_LEVEL_ERROR; e.level < LOG_LEVEL_COUNT; e.level++) {
        log_format(&e, line);
        assert_int_equal(log_line_level(line), e.level);
    }
    assert_int_equal(log_line_level("2026-01-02 03:04:05.678 warnings engine  hot"), LOG_LEVEL_OFF);
    assert_int_equal(log_line_level("(2 entries are missing here)"), LOG_LEVEL_OFF);
    assert_int_equal(log_line_level("2026-01-02 03:04:05.678 "), LOG_LEVEL_OFF);
    e.level = LOG_LEVEL_INFO;
    memset(e.text, 'x', sizeof e.text - 1);
    assert_true(log_format(&e, line) < LOG_LINE - 1);
    assert_non_null(strstr(line, "xxx"));
}

static void test_levels_above_the_chosen_one_are_dropped(void **state) {
    (void)state;
    uint64_t before = log_count();
    log_debug("tests", "not wanted");
    assert_int_equal(log_count(), before);
    log_set_level(LOG_LEVEL_ERROR);
    log_warning("tests", "not wanted");
    log_error("tests", "wanted");
    log_set_level(LOG_LEVEL_OFF);
    log_error("tests", "not wanted");
    log_set_level(LOG_LEVEL_INFO);
    assert_int_equal(log_count(), before + 1);
    assert_string_equal(last_entry().text, "wanted");
}

static void test_the_ring_keeps_the_newest(void **state) {
    (void)state;
    static struct log_entry entries[2 * LOG_RING];
    uint64_t first = log_count();
    for (int i = 0; i < LOG_RING + 10; i++) log_info("tests", "%d", i);
    assert_int_equal(log_read(first, entries, 2 * LOG_RING), LOG_RING);
    for (int i = 0; i < LOG_RING; i++) {
        assert_int_equal(entries[i].number, first + 10 + (uint64_t)i);
        assert_int_equal(atoi(entries[i].text), i + 10);
    }
    assert_int_equal(log_read(first + LOG_RING, entries, 3), 3);
    assert_int_equal(entries[2].number, first + LOG_RING + 2);
    assert_int_equal(log_read(log_count(), entries, 1), 0);
}

static void test_the_file_gets_every_entry(void **state) {
    (void)state;
    char *path = xasprintf("%s/some/where/log", folder);
    log_info("tests", "before the file");
    log_open(path);
    for (int i = 0; i < 100; i++) log_info("tests", "entry %d.", i);
    log_close();
    log_info("tests", "after the file");
    struct stat is;
    char *text = file_text(path);
    assert_non_null(text);
    assert_int_equal(count_of(text, "before the file\n"), 1);
    assert_int_equal(count_of(text, "after the file"), 0);
    assert_int_equal(count_of(text, "info    tests   entry "), 100);
    assert_true(strstr(text, "entry 7.") < strstr(text, "entry 8."));
    assert_int_equal(stat(path, &is), 0);
    assert_int_equal(is.st_mode & 0777, 0600);
    log_open(path); // keeps the file and adds the entries logged in between
    log_close();
    free(text);
    text = file_text(path);
    assert_int_equal(count_of(text, "after the file\n"), 1);
    assert_int_equal(count_of(text, "info    tests   entry "), 100);
    free(text);
    free(path);
}

static void test_the_file_is_cut_over(void **state) {
    (void)state;
    char *path = xasprintf("%s/cut", folder), filler[500];
    memset(filler, 'x', sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    for (int i = 0; i < 20; i++) { // 20 × 400 entries of half a KiB: more than three files
        log_open(path);
        for (int n = 0; n < 400; n++) log_info("tests", "%s", filler);
        log_close();
    }
    const struct {
        const char *suffix;
        bool exists, full;
    } files[] = {{"", true, false}, {".1", true, true}, {".2", true, true}, {".3", false, false}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *name = xasprintf("%s%s", path, files[i].suffix);
        struct stat is;
        assert_int_equal(!stat(name, &is), files[i].exists);
        if (files[i].exists) assert_true(is.st_size < LOG_FILE_BYTES + LOG_LINE);
        if (files[i].full) assert_true(is.st_size >= LOG_FILE_BYTES);
        free(name);
    }
    free(path);
}

static void wait_for_text(const char *path, const char *what) {
    for (int i = 0; i < 1000; i++) {
        char *text = file_text(path);
        bool found = text && strstr(text, what);
        free(text);
        if (found) return;
        usleep(10000);
    }
    fail_msg("%s never had: %s", path, what);
}

static void test_a_file_that_was_moved_away_begins_anew(void **state) {
    (void)state;
    char *path = xasprintf("%s/first", folder), *moved = xasprintf("%s/moved", folder);
    log_open(path);
    log_info("tests", "one.");
    wait_for_text(path, "one.");
    assert_int_equal(rename(path, moved), 0); // as another program does to rotate it
    log_info("tests", "two.");
    wait_for_text(path, "two.");
    log_close();
    char *text = file_text(moved);
    assert_null(strstr(text, "two."));
    free(text);
    free(moved);
    free(path);
}

static void test_a_file_that_cannot_be_written_is_named_once(void **state) {
    (void)state;
    char *path = xasprintf("%s/blocked", folder), *inside = xasprintf("%s/log", path);
    FILE *f = fopen(path, "w"); // a file where a folder should be
    fclose(f);
    uint64_t before = log_count();
    log_open(inside);
    for (int i = 0; i < 20; i++) log_info("tests", "%d", i);
    log_close();
    struct log_entry entries[64];
    size_t n = log_read(before, entries, 64);
    assert_int_equal(n, 21);
    int named = 0;
    for (size_t i = 0; i < n; i++) named += entries[i].level == LOG_LEVEL_WARNING && strstr(entries[i].text, inside);
    assert_int_equal(named, 1);
    unlink(path);
    free(inside);
    free(path);
}

static void test_a_pipe_is_not_written_to(void **state) {
    (void)state;
    char *path = xasprintf("%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    log_open(path);
    log_info("tests", "hello");
    log_close(); // must not hang
    assert_non_null(strstr(last_entry().text, "cannot write: "));
    unlink(path);
    free(path);
}

enum { THREADS = 4, EACH = 100 };

static void *write_many(void *name) {
    for (int i = 0; i < EACH; i++) log_info(name, "%d", i);
    return NULL;
}

static void test_threads_lose_nothing(void **state) {
    (void)state;
    static char names[THREADS][4] = {"a", "b", "c", "d"};
    char *path = xasprintf("%s/threads", folder);
    pthread_t threads[THREADS];
    uint64_t first = log_count();
    log_open(path);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    log_close();
    static struct log_entry entries[THREADS * EACH];
    int next[THREADS] = {0};
    assert_int_equal(log_read(first, entries, THREADS * EACH), THREADS * EACH);
    for (int i = 0; i < THREADS * EACH; i++) {
        assert_int_equal(entries[i].number, first + (uint64_t)i);
        assert_int_equal(atoi(entries[i].text), next[entries[i].module[0] - 'a']++);
    }
    char *text = file_text(path);
    assert_int_equal(count_of(text, "\n"), THREADS * EACH);
    free(text);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_is_one_clean_line),
        cmocka_unit_test(test_a_line_has_time_level_module_and_text),
        cmocka_unit_test(test_levels_above_the_chosen_one_are_dropped),
        cmocka_unit_test(test_the_ring_keeps_the_newest),
        cmocka_unit_test(test_the_file_gets_every_entry),
        cmocka_unit_test(test_the_file_is_cut_over),
        cmocka_unit_test(test_a_file_that_was_moved_away_begins_anew),
        cmocka_unit_test(test_a_file_that_cannot_be_written_is_named_once),
        cmocka_unit_test(test_a_pipe_is_not_written_to),
        cmocka_unit_test(test_threads_lose_nothing),
    };
    folder = temporary_folder_make();
    return folder ? cmocka_run_group_tests(tests, NULL, temporary_folder_teardown) : 1;
}
