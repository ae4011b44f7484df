#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <readline/readline.h>

#include "engine/base/panic.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/screen_text.h"
#include "ui/composer.h"
#include "ui/history.h"

// readline initialises itself once a process, so all tests share a composer; each begins with it empty.
static struct composer *composer;
static struct worker *worker;
static char history_path[] = "/tmp/confab-history-XXXXXX";

static void type(const char *keys) { composer_bytes(composer, keys, strlen(keys)); }

static void paste(const char *text) { composer_paste(composer, text, strlen(text)); }

// What the composer draws, and where the cursor is.
static void check_drawn(int width, int height, const char *expected, int x, int y) {
    struct canvas c;
    int cursor_x = -1, cursor_y = -1;
    canvas_open(&c, width, height);
    composer_draw(composer, &c, (struct rect){0, 0, width, height}, &cursor_x, &cursor_y);
    char *text = canvas_as_text(&c);
    assert_string_equal(text, expected);
    assert_int_equal(cursor_x, x);
    assert_int_equal(cursor_y, y);
    free(text);
    canvas_close(&c);
}

static void check_taken(const char *expected) {
    const char *taken = composer_take(composer);
    assert_non_null(taken);
    assert_string_equal(taken, expected);
    assert_true(composer_empty(composer));
}

static int empty(void **state) {
    (void)state;
    composer_clear(composer);
    rl_variable_bind("editing-mode", "emacs");
    return 0;
}

static void test_typing_and_taking(void **state) {
    (void)state;
    type("hello");
    check_drawn(20, 1, "hello\n", 5, 0);
    check_taken("hello");
    check_drawn(20, 1, "Write here\n", 0, 0);
    assert_null(composer_take(composer));
    type("   ");
    assert_null(composer_take(composer));
}

static void test_readline_edits(void **state) {
    (void)state;
    type("one two three\033b\033b\027"); // back two words, kill the one before
    check_drawn(20, 1, "two three\n", 0, 0);
    type("\005 \031"); // end of line, yank
    check_taken("two three one ");
    type("abc\001X\006\004"); // beginning, insert, forward, delete
    check_taken("Xac");
    type("gone\025\037"); // kill the line, undo
    check_taken("gone");
}

static void test_cursor_on_wide_and_combining(void **state) {
    (void)state;
    type("日本e\xcc\x81x");
    check_drawn(20, 1, "日本e\xcc\x81x\n", 6, 0);
    type("\002");
    check_drawn(20, 1, "日本e\xcc\x81x\n", 5, 0);
    type("\002\002");
    check_drawn(20, 1, "日本e\xcc\x81x\n", 2, 0);
    type("\010");
    check_taken("本e\xcc\x81x");
}

static void test_several_lines_and_wrapping(void **state) {
    (void)state;
    type("one");
    composer_newline(composer);
    check_drawn(20, 3, "one\n\n\n", 0, 1);
    type("a long line of words");
    assert_int_equal(composer_lines(composer, 12), 3); // one column is the cursor's
    check_drawn(12, 4, "one\na long line\nof words\n\n", 8, 2);
    assert_true(composer_up(composer));
    assert_true(composer_up(composer));
    type("!");
    assert_false(composer_up(composer));
    check_taken("one!\na long line of words");
}

static void test_scrolls_to_the_cursor(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        if (i) composer_newline(composer);
        type((char[]){(char)('0' + i), 0});
    }
    check_drawn(10, 3, "3        ▲\n4\n5\n", 1, 2);
    while (composer_up(composer)) {
    }
    check_drawn(10, 3, "0\n1\n2        ▼\n", 1, 0);
}

// What another program has made of it: pastes that it left alone stay folded.
static void test_a_rewritten_message_keeps_its_folds(void **state) {
    (void)state;
    static const char file[] = "notes.txt:\n```txt\n1\n2\n3\n4\n5\n6\n7\n8\n9\n```\n";
    static const char lines[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
    type("see ");
    paste(lines);
    paste(file);
    check_drawn(60, 1, "see [pasted 9 lines][notes.txt: 9 lines]\n", 40, 0);
    assert_int_equal(composer_size(composer), 4 + strlen(lines) + strlen(file));
    composer_rewrite(composer, "look at notes.txt:\n```txt\n1\n2\n3\n4\n5\n6\n7\n8\n9\n```\n\xff.");
    check_drawn(60, 1, "look at [notes.txt: 9 lines]\xef\xbf\xbd.\n", 30, 0);
    check_taken("look at notes.txt:\n```txt\n1\n2\n3\n4\n5\n6\n7\n8\n9\n```\n\xef\xbf\xbd.");
    composer_rewrite(composer, "");
    assert_true(composer_empty(composer));
}

static void test_a_word_is_replaced_in_one_edit(void **state) {
    (void)state;
    size_t point;
    type("/mo x\002\002");
    assert_string_equal(composer_line(composer, &point), "/mo x");
    assert_int_equal(point, 3);
    composer_replace(composer, 1, 3, "model");
    type("!\037"); // and undone, what was typed then
    assert_string_equal(composer_line(composer, &point), "/model x");
    type("\037");
    assert_string_equal(composer_line(composer, &point), "/mo x");
}

static void test_paste_is_one_edit_and_sends_nothing(void **state) {
    (void)state;
    type("see ");
    paste("a\r\nb\rc\n");
    assert_false(composer_empty(composer));
    type("\037"); // one undo takes it away
    check_taken("see ");
    paste("x\ty\xff");
    check_taken("x\ty\xef\xbf\xbd");
}

static void test_long_paste_is_folded_and_comes_back(void **state) {
    (void)state;
    char text[2000] = "", all[2100];
    for (int i = 0; i < 120; i++) sprintf(text + strlen(text), "line %d\n", i);
    type("see ");
    paste(text);
    type(" ok");
    check_drawn(40, 1, "see [pasted 120 lines] ok\n", 25, 0);
    type("\002\002\002\002"); // the mark is one character
    check_drawn(40, 1, "see [pasted 120 lines] ok\n", 4, 0);
    type("\004");
    check_drawn(40, 1, "see  ok\n", 4, 0);
    type("\037"); // undone, it is back as a whole
    check_drawn(40, 1, "see [pasted 120 lines] ok\n", 22, 0);
    sprintf(all, "see %s ok", text);
    check_taken(all);
    paste("\xf4\x8f\x80\x80"); // the mark's own code point from outside stands for nothing
    check_taken("\xef\xbf\xbd");
}

static void test_history(void **state) {
    (void)state;
    type("first");
    composer_newline(composer);
    type("of \\two");
    check_taken("first\nof \\two");
    type("second");
    check_taken("second");
    assert_false(composer_up(composer));
    type("\033[A\033[A");
    check_taken("first\nof \\two");
    type("\033[A edited"); // an edit that is given up leaves the history as it was
    composer_clear(composer);
    type("\033[A");
    check_taken("first\nof \\two");
    assert_true(worker_wait(worker, 60000));
    FILE *file = fopen(history_path, "r");
    char text[4096] = "";
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(text, "first\\nof \\\\two\nsecond\nfirst\\nof \\\\two\n"));
}

static void test_history_is_read_again(void **state) {
    (void)state;
    paste("kept over\tthe end");
    check_taken("kept over\tthe end");
    composer_close(composer);
    assert_true(worker_wait(worker, 60000));
    composer = composer_open(history_path, worker);
    type("\033[A");
    check_taken("kept over\tthe end");
}

static int history_lines(void) {
    FILE *file = fopen(history_path, "r");
    int lines = 0;
    assert_non_null(file);
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

static void test_the_file_of_the_history_can_be_spared(void **state) {
    (void)state;
    assert_true(worker_wait(worker, 60000));
    const int lines = history_lines();
    composer_keep_history(composer, false);
    type("for nobody");
    check_taken("for nobody");
    assert_true(worker_wait(worker, 60000));
    assert_int_equal(history_lines(), lines);
    type("\033[A");
    check_taken("for nobody");
    composer_keep_history(composer, true);
    type("for me");
    check_taken("for me");
    assert_true(worker_wait(worker, 60000));
    assert_int_equal(history_lines(), lines + 1);
}

static void test_a_long_history_is_shortened_and_a_full_disk_loses_none_of_it(void **state) {
    (void)state;
    assert_true(worker_wait(worker, 60000));
    FILE *file = fopen(history_path, "w");
    assert_non_null(file);
    for (int i = 1; i <= 2001; i++) fprintf(file, "message %d\n", i);
    fclose(file);
    full_disk_begin(1000);
    history_load(history_path);
    full_disk_end();
    assert_int_equal(history_lines(), 2001);
    history_load(history_path);
    assert_int_equal(history_lines(), 1000);
    type("\033[A");
    check_taken("message 2001");
}

static void test_a_quotation_comes_on_lines_of_its_own(void **state) {
    (void)state;
    composer_quote(composer, "one\n\ntwo\n", 9);
    check_taken("> one\n>\n> two\n\n");
    type("So:");
    composer_quote(composer, "one", 3);
    check_taken("So:\n> one\n\n");
}

static void test_search_ends_with_enter_and_sends_nothing(void **state) {
    (void)state;
    type("needle in hay");
    check_taken("needle in hay");
    type("other");
    check_taken("other");
    type("\022need");
    assert_true(composer_searching(composer));
    check_drawn(60, 1, "(reverse-i-search)`need': needle in hay\n", 26, 0);
    assert_null(composer_take(composer));
    assert_false(composer_searching(composer));
    check_taken("needle in hay");
}

static void test_what_was_written_outlives_a_search(void **state) {
    (void)state;
    type("needle in hay");
    check_taken("needle in hay");
    static const char *const searches[] = {"\022need", "\033pneed", "\033p"};
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        type("draft");
        type(searches[i]);
        assert_true(composer_searching(composer));
        composer_leave_search(composer);
        assert_false(composer_searching(composer));
        check_taken("draft");
    }
    type("draft\033pneed");
    composer_paste(composer, "!", 1);
    check_taken("draft!");
    type("draft\033pneed");
    assert_null(composer_take(composer)); // Enter finds it
    check_taken("needle in hay");
}

static void test_escape_by_itself_begins_no_command(void **state) {
    (void)state;
    type("draft");
    composer_escape(composer);
    type("r"); // M-r takes all changes back
    check_taken("draftr");
    type("draft\033r");
    assert_true(composer_empty(composer));
    type("needle");
    check_taken("needle");
    type("\022nee");
    composer_escape(composer);
    assert_false(composer_searching(composer));
    type("r");
    check_taken("rneedle");
    rl_variable_bind("editing-mode", "vi");
    type("abc");
    composer_escape(composer);
    type("x");
    check_taken("ab");
}

static void test_vi_mode(void **state) {
    (void)state;
    rl_variable_bind("editing-mode", "vi");
    type("one two");
    type("\033");
    type("bdwip");
    check_taken("onep ");
    type("abc\033");
    type("0r");
    type("Z"); // the character that r asks for comes with the next key
    check_taken("Zbc");
    type("word\0330"); // ESC and the next key in one read
    type("iX");
    check_taken("Xword");
}

static void test_shows_the_mode_when_inputrc_asks(void **state) {
    (void)state;
    rl_variable_bind("editing-mode", "vi");
    rl_variable_bind("show-mode-in-prompt", "on");
    type("ab");
    check_drawn(20, 1, "(ins)ab\n", 7, 0);
    type("\033");
    check_drawn(20, 1, "(cmd)ab\n", 6, 0);
    rl_variable_bind("show-mode-in-prompt", "off");
    check_drawn(20, 1, "ab\n", 1, 0);
}

static void test_keys_that_nothing_is_bound_to_insert_nothing(void **state) {
    (void)state;
    composer_sequence(composer, "\033[24~", 5);
    composer_sequence(composer, "\033[1;6A", 6);
    assert_true(composer_empty(composer));
    type("ab");
    composer_sequence(composer, "\033[D", 3);
    composer_sequence(composer, "\033[3~", 4);
    check_taken("a");
}

static void test_other_ways_to_end_a_line_keep_it(void **state) {
    (void)state;
    type("kept\n"); // accept-line by C-j
    check_taken("kept");
    type("\004"); // end of file on an empty line
    type("x");
    check_taken("x");
    type("\033\033\033[\021"); // quoted insert of nothing yet, after a broken sequence
    type("y");
    assert_false(composer_empty(composer));
}

static void test_set_and_clear(void **state) {
    (void)state;
    type("old");
    composer_set(composer, "new text");
    check_drawn(20, 1, "new text\n", 8, 0);
    composer_clear(composer);
    assert_true(composer_empty(composer));
    type("\031"); // what was cleared can be yanked
    check_taken("new text");
}

static void test_a_message_that_is_handed_back_is_as_it_was_written(void **state) {
    (void)state;
    char pasted[200] = "", all[300] = "";
    for (int i = 0; i < 12; i++) sprintf(pasted + strlen(pasted), "pasted %d\n", i);
    for (int i = 0; i < 10; i++) {
        type((char[]){(char)('0' + i), 0});
        composer_newline(composer);
        sprintf(all + strlen(all), "%d\n", i);
    }
    paste(pasted);
    strcat(all, pasted);
    check_taken(all);
    char *trimmed = xstrndup(all, strlen(all) - 1);
    composer_set(composer, trimmed);
    check_drawn(40, 3, "8                                      ▲\n9\n[pasted 12 lines]\n", 17, 2);
    type("\010\010!"); // over the paste and the newline before it
    check_taken("0\n1\n2\n3\n4\n5\n6\n7\n8\n9!");
    composer_set(composer, trimmed); // no longer the last one
    check_drawn(40, 1, "[pasted 22 lines]\n", 17, 0);
    free(trimmed);
}

// What is left of a draft that was put aside while another was written.
static void put_aside_and_back(void) {
    struct draft d, other = {"other", NULL, 2};
    composer_draft(composer, &d);
    composer_set_draft(composer, &other);
    check_drawn(40, 1, "other\n", 2, 0);
    composer_set_draft(composer, &d);
    draft_free(&d);
}

static void test_a_draft_comes_back_as_it_was(void **state) {
    (void)state;
    char lines[400] = "", all[1000];
    for (int i = 0; i < 30; i++) sprintf(lines + strlen(lines), "line %d\r\n", i);
    type("before ");
    paste(lines);
    type(" between ");
    paste(lines);
    type("\026\r\026\033 after \xc3\xa4\002\002"); // quoted: a carriage return and an escape
    composer_newline(composer);
    check_drawn(80, 2, "before [pasted 30 lines] between [pasted 30 lines]␍␛ after\n \xc3\xa4\n", 0, 1);
    put_aside_and_back();
    check_drawn(80, 2, "before [pasted 30 lines] between [pasted 30 lines]␍␛ after\n \xc3\xa4\n", 0, 1);
    char *clean = all + sprintf(all, "before ");
    for (int i = 0; i < 30; i++) clean += sprintf(clean, "line %d\n", i);
    clean += sprintf(clean, " between ");
    for (int i = 0; i < 30; i++) clean += sprintf(clean, "line %d\n", i);
    sprintf(clean, "\r\033 after\n \xc3\xa4");
    check_taken(all);
}

static void test_undo_and_yank_stay_out_of_the_other_draft(void **state) {
    (void)state;
    struct draft other = {"other", NULL, 5};
    type("killed\025kept");
    put_aside_and_back();
    type("\037\037"); // nothing to undo
    check_drawn(40, 1, "kept\n", 4, 0);
    type(" more\037");
    check_drawn(40, 1, "kept\n", 4, 0);
    composer_set_draft(composer, &other);
    type(" \031"); // what was killed, not what was put aside
    check_taken("other killed");
    type("\033[A"); // nor is the history touched
    check_taken("other killed");
}

// As a store may have them.
static void test_a_draft_may_say_anything(void **state) {
    (void)state;
    static const struct draft drafts[] = {
        {"some text", "0+99 3+2 x 4", 99},
        {"some text", "18446744073709551615+5 4+18446744073709551615 -1+-1", (size_t)-1},
        {"some text", "5+4 0+4 5+4 5+0", 0},
        {"\xc3\xa4\xc3\xa4 text", "1+4", 1},
    };
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++) {
        composer_set_draft(composer, &drafts[i]);
        check_taken(drafts[i].text);
    }
    struct draft mark = {"\xf4\x8f\x80\x80", NULL, 4}; // what stands for a paste
    composer_set_draft(composer, &mark);
    check_taken("\xef\xbf\xbd");
}

// It was too long for the model, or for another reason refused.
static void test_a_long_message_is_called_back(void **state) {
    (void)state;
    char *large = xmalloc(100001);
    for (int i = 0; i < 100000; i++) large[i] = i % 50 ? 'x' : '\n';
    large[100000] = 0;
    for (int i = 0; i < 2; i++) {
        type("about ");
        paste(large);
        const char *taken = composer_take(composer);
        assert_int_equal(strlen(taken), 100006);
    }
    type("\033[A");
    check_drawn(40, 1, "about [pasted 2001 lines]\n", 25, 0);
    const char *taken = composer_take(composer);
    assert_string_equal(taken + 6, large);
    free(large);
}

// What readline forgets when a search of its own is given up half way.
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libreadline\n"; }

// In a process of its own, as readline initialises itself once.
static int write_in_this_locale(void) {
    setlocale(LC_ALL, "");
    composer = composer_open(NULL, NULL);
    for (int i = 0; i < 2; i++) {
        type("für 日本");
        check_taken("für 日本");
    }
    paste("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\nthirteen\nfourteen\n");
    type("\177"); // all of it, as it is folded
    return composer_take(composer) ? 1 : 0;
}

static void test_other_locales(void **state) {
    (void)state;
    static const char *const locales[] = {"LC_ALL=C", "LC_ALL=xx_XX.UTF-8", "-u LC_ALL", "-u LC_ALL LANG=C"};
    char self[256] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        char *command = xasprintf("env -u LC_CTYPE -u LANG %s '%s' here", locales[i], self);
        if (system(command)) fail_msg("%s", command);
        free(command);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    setenv("INPUTRC", "/dev/null", 1);
    setenv("TERM", "xterm-256color", 1);
    if (argc > 1) return write_in_this_locale();
    setenv("LC_ALL", "C.UTF-8", 1);
    int fd = mkstemp(history_path);
    if (fd >= 0) close(fd);
    worker = worker_open(NULL);
    composer = composer_open(history_path, worker);
#define TEST(f) cmocka_unit_test_setup(f, empty)
    const struct CMUnitTest tests[] = {
        TEST(test_typing_and_taking),
        TEST(test_readline_edits),
        TEST(test_cursor_on_wide_and_combining),
        TEST(test_several_lines_and_wrapping),
        TEST(test_scrolls_to_the_cursor),
        TEST(test_a_rewritten_message_keeps_its_folds),
        TEST(test_a_word_is_replaced_in_one_edit),
        TEST(test_paste_is_one_edit_and_sends_nothing),
        TEST(test_long_paste_is_folded_and_comes_back),
        TEST(test_history),
        TEST(test_history_is_read_again),
        TEST(test_the_file_of_the_history_can_be_spared),
        TEST(test_a_long_history_is_shortened_and_a_full_disk_loses_none_of_it),
        TEST(test_a_quotation_comes_on_lines_of_its_own),
        TEST(test_search_ends_with_enter_and_sends_nothing),
        TEST(test_what_was_written_outlives_a_search),
        TEST(test_escape_by_itself_begins_no_command),
        TEST(test_vi_mode),
        TEST(test_shows_the_mode_when_inputrc_asks),
        TEST(test_keys_that_nothing_is_bound_to_insert_nothing),
        TEST(test_other_ways_to_end_a_line_keep_it),
        TEST(test_set_and_clear),
        TEST(test_a_message_that_is_handed_back_is_as_it_was_written),
        TEST(test_a_draft_comes_back_as_it_was),
        TEST(test_undo_and_yank_stay_out_of_the_other_draft),
        TEST(test_a_draft_may_say_anything),
        TEST(test_a_long_message_is_called_back),
        TEST(test_other_locales),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    composer_close(composer);
    worker_close(worker);
    unlink(history_path);
    return failed;
}
