// How wrapped text looks on a terminal that it streams to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "app/base/word_wrap.h"

enum { COLUMNS = 20, ROWS = 12 };

// Returns the rows of a terminal after writing the text in parts of so many bytes, without trailing spaces.
static char *shown(const char *text, size_t part) {
    char *bytes = NULL;
    size_t n_bytes, size = strlen(text);
    FILE *out = open_memstream(&bytes, &n_bytes);
    struct word_wrap w = {.columns = COLUMNS};
    for (size_t at = 0; at < size; at += part) word_wrap_write(&w, out, text + at, size - at < part ? size - at : part);
    fclose(out);
    VTerm *terminal = vterm_new(ROWS, COLUMNS);
    vterm_set_utf8(terminal, 1);
    VTermScreen *screen = vterm_obtain_screen(terminal);
    vterm_screen_reset(screen, 1);
    for (size_t i = 0; i < n_bytes; i++) // a tty turns \n into \r\n
        vterm_input_write(terminal, bytes[i] == '\n' ? "\r\n" : bytes + i, bytes[i] == '\n' ? 2 : 1);
    char *rows = calloc(ROWS, COLUMNS * 4 + 2);
    size_t used = 0, end = 0;
    for (int y = 0; y < ROWS; y++) {
        VTermRect line = {.start_row = y, .end_row = y + 1, .start_col = 0, .end_col = COLUMNS};
        used += vterm_screen_get_text(screen, rows + used, COLUMNS * 4, line);
        while (used > end && rows[used - 1] == ' ') used--;
        rows[used++] = '\n';
        if (used > end + 1) end = used;
    }
    while (used && rows[used - 1] == '\n') used--;
    rows[used] = 0;
    vterm_free(terminal);
    free(bytes);
    return rows;
}

static void check(const char *text, const char *expected) {
    static const size_t parts[] = {1, 3, 7, 1000};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool ascii = true;
        for (const char *c = text; *c; c++) ascii &= !(*c & 0x80);
        if (!ascii && parts[i] != 3 && parts[i] != 1000) continue; // only whole characters, which have three bytes here
        char *rows = shown(text, parts[i]);
        assert_string_equal(rows, expected);
        free(rows);
    }
}

static void test_lines_are_broken_between_words(void **state) {
    (void)state;
    check("The quick brown fox jumps over it.", "The quick brown fox\njumps over it.");
    check("The quick brown foxes jump", "The quick brown\nfoxes jump");
    check("a  b\n\n  indented text goes on here", "a  b\n\n  indented text\ngoes on here");
    check("nineteen characters again", "nineteen characters\nagain");
}

static void test_long_words_are_broken_anywhere(void **state) {
    (void)state;
    check("https://example.org/a/long/path", "https://example.org\n/a/long/path");
    check("see https://example.org/a/long/path", "see\nhttps://example.org\n/a/long/path");
}

static void test_wide_characters_are_words(void **state) {
    (void)state;
    check("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
          "\xe6\x97\xa5",
          "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e"
          "\n\xe6\x97\xa5");
}

// Nine characters fill the line; closing or opening punctuation takes its neighbour along.
#define EIGHT "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5\xe6\x9c\xac"
#define NINTH "\xe8\xaa\x9e"
static void test_punctuation_stays_with_its_character(void **state) {
    (void)state;
    check(EIGHT NINTH "\xe3\x80\x82", EIGHT "\n" NINTH "\xe3\x80\x82"); // full stop
    check(EIGHT "\xe3\x80\x8c" NINTH, EIGHT "\n\xe3\x80\x8c" NINTH);    // opening bracket
    check(EIGHT NINTH NINTH, EIGHT NINTH "\n" NINTH);
}

static void test_code_blocks_are_not_wrapped(void **state) {
    (void)state;
    check("~~~\n```\nint main(void) { return 0; }\n~~~~\nThe quick brown foxes",
          "~~~\n```\nint main(void) { ret\nurn 0; }\n~~~~\nThe quick brown\nfoxes");
    check("```\nint main(void) { return 0; }\n```\nThe quick brown foxes", // the terminal breaks the line
          "```\nint main(void) { ret\nurn 0; }\n```\nThe quick brown\nfoxes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_broken_between_words),
        cmocka_unit_test(test_long_words_are_broken_anywhere),
        cmocka_unit_test(test_wide_characters_are_words),
        cmocka_unit_test(test_punctuation_stays_with_its_character),
        cmocka_unit_test(test_code_blocks_are_not_wrapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
