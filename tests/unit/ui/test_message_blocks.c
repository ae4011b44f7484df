#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/exact_copy.h"
#include "ui/message_blocks.h"

static const char kinds[] = {
    [BLOCK_TEXT] = 't', [BLOCK_CODE] = 'c', [BLOCK_TABLE] = '#', [BLOCK_LIST] = '-', [BLOCK_QUOTE] = '>'};

// The kinds of all blocks, a letter each.
static void check_kinds(const char *text, const char *expected) {
    struct message_block b = {0};
    char found[64] = "";
    for (size_t n = 0; message_block_next(text, strlen(text), b.end, &b); n++) {
        assert_true(n < sizeof found - 1 && b.end > b.start && b.end <= strlen(text));
        found[n] = kinds[b.kind];
    }
    assert_string_equal(found, expected);
}

static void check_copy(const char *text, int number, const char *expected) {
    struct message_block b;
    size_t size;
    assert_true(message_block_find(text, strlen(text), number, &b));
    char *copy = message_block_text(text, &b, &size);
    assert_string_equal(copy, expected);
    assert_int_equal(size, strlen(expected));
    free(copy);
}

static void check_name(const char *text, const char *expected) {
    struct message_block b;
    char name[64];
    assert_true(message_block_find(text, strlen(text), 1, &b));
    message_block_file_name(text, &b, name);
    assert_string_equal(name, expected);
}

static void test_a_message_is_cut_where_its_blocks_end(void **state) {
    (void)state;
    check_kinds("", "");
    check_kinds("\n \n", "");
    check_kinds("one\ntwo\n\nthree", "tt");
    check_kinds("# Head\ntext\n```\ncode\n\nmore\n```\ntext", "ttct");
    check_kinds("- a\n\n- b\n\n  still b\n\nc", "-t");
    check_kinds("1. a\n   ```c\n   x\n   ```\n2. b", "-c-");
    check_kinds("a\n\n| x | y |\n|---|---|\n| 1 | 2 |\nb", "t#");
    check_kinds("> a\n> b\n\n> ```\n> c\n\nd", ">ct");
    check_kinds("text\n- item", "t-");
    check_kinds("```\nopen", "c");
    check_kinds("2.5 is no list\n-nor this", "t");
}

static void test_code_is_copied_without_fence_and_margin(void **state) {
    (void)state;
    check_copy("```c\nint a;\n\n    int b;\n```\n", 1, "int a;\n\n    int b;\n");
    check_copy("1. a\n   ```c\n   x\n     y\n   ```", 2, "x\n  y\n");
    check_copy("> ```\n> a\n>  b\n> ```", 1, "a\n b\n");
    check_copy("> ```\n> a\nb", 1, "a\n");
    check_copy("~~~\n```\n~~~", 1, "```\n");
    check_copy("```", 1, "");
    check_copy("```\nopen", 1, "open\n");
}

static void test_a_table_is_copied_with_tabs(void **state) {
    (void)state;
    check_copy("| a | b |\n|---|:-:|\n| 1 \\| 2 | **3** |\n||", 1, "a\tb\n1 | 2\t**3**\n\n");
    check_copy("a|b\n-|-\n1|2|3", 1, "a\tb\n1\t2\t3\n");
}

static void test_text_is_copied_as_it_was_written(void **state) {
    (void)state;
    check_copy("one **two**\n\n- a\n\n  b\n\nc", 1, "one **two**");
    check_copy("one **two**\n\n- a\n\n  b\n\nc", 2, "- a\n\n  b");
    check_copy("a\r\n\r\nb\r\n", 2, "b");
}

static void test_files_are_named_by_comment_or_language(void **state) {
    (void)state;
    check_name("```python\n# src/sum.py\nx\n```", "src/sum.py");
    check_name("```html\n<!-- index.html -->\n```", "index.html");
    check_name("```css\n/* file: a.css */\n```", "a.css");
    check_name("```c\n// ../../etc/passwd.c\n```", "code.c");
    check_name("```c\n// /etc/x.c\n```", "code.c");
    check_name("```c\n// Adds two numbers.\n```", "code.c");
    check_name("```python\na.py\n```", "code.py");
    check_name("```C++ title=x\n```", "code.cpp");
    check_name("```\nx\n```", "code.txt");
    check_name("```a/b\nx\n```", "code.txt");
}

// Whatever a model writes: every block lies behind the one before, and copies to no more than it has and a newline.
static void test_any_text_is_cut_within_its_bounds(void **state) {
    (void)state;
    static const char *const pieces[] = {"```", "~~~c\n", "\n",   "| a |", "|-|\n", "> ",  "- ",
                                         "1. ", "    ",   "x\\|", "\t",    "#",     "\r\n"};
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[128] = "";
        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            strcat(text, pieces[(seed >> 16) % (sizeof pieces / sizeof *pieces)]);
        }
        const size_t size = strlen(text);
        char *exact = exact_copy(text, size), name[64];
        struct message_block b = {0};
        for (size_t end = 0, length; message_block_next(exact, size, b.end, &b); end = b.end) {
            assert_true(b.start >= end && b.end > b.start && b.end <= size);
            char *copy = message_block_text(exact, &b, &length);
            assert_true(length <= b.end - b.start + 1);
            message_block_file_name(exact, &b, name);
            free(copy);
        }
        free(exact);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_is_cut_where_its_blocks_end),
        cmocka_unit_test(test_code_is_copied_without_fence_and_margin),
        cmocka_unit_test(test_a_table_is_copied_with_tabs),
        cmocka_unit_test(test_text_is_copied_as_it_was_written),
        cmocka_unit_test(test_files_are_named_by_comment_or_language),
        cmocka_unit_test(test_any_text_is_cut_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
