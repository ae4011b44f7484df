// Motions of the text cursor: letters are grapheme clusters, words change with the script, blocks lie between empty
// lines.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ui/text_motion.h"

// Where steps lead from the place of the first '|' in a text: to the second one; with none they lead out of it.
static void check(enum text_step step, const char *marked) {
    char text[256];
    size_t size = 0, places[2] = {0, TEXT_BEYOND}, n = 0;
    for (const char *at = marked; *at; at++) {
        if (*at == '|') places[n++] = size;
        else text[size++] = *at;
    }
    size_t from = places[0], to = places[1];
    if (step <= TEXT_BLOCK_BACK && n == 2) from = places[1], to = places[0]; // the other way
    const size_t came = text_motion(text, size, from, step);
    if (came != to) fail_msg("step %d in '%s': %d, not %d", step, marked, (int)came, (int)to);
}

static void check_both(const char *marked) { check(TEXT_RIGHT, marked), check(TEXT_LEFT, marked); }

static void test_letters_are_grapheme_clusters(void **state) {
    (void)state;
    check_both("|a|b");
    check_both("|e\xcc\x81|x"); // with a combining accent
    check_both("a|👩‍👩‍👧|b");
    check_both("|日|本");
    check_both("|🇳🇴|🇸🇪");
}

static void test_a_line_ends_where_its_last_letter_is(void **state) {
    (void)state;
    check_both("a|b\n|c");
    check_both("ab|c\n|\nd"); // an empty line is a place
    check_both("a\n|\n|b");
    check(TEXT_RIGHT, "ab|c\n");
    check(TEXT_LEFT, "|abc");
    check(TEXT_LINE_END, "a|b|c\nd");
    check(TEXT_LINE_END, "a\n||\nd");
    check(TEXT_LINE_BEGIN, "a\n||  bc");
    check(TEXT_LINE_FIRST, "a\n|  |bc");
    check(TEXT_LINE_FIRST, "|  |bc\nd");
}

static void test_words_end_with_signs_and_scripts(void **state) {
    (void)state;
    check(TEXT_WORD, "|one |two");
    check(TEXT_WORD, "|one|, two");
    check(TEXT_WORD, "one_|1\n\n  |two");
    check(TEXT_WORD, "|日本|の名前");
    check(TEXT_WORD, "日本|の|名前");
    check(TEXT_WORD, "|カタカナ|ひらがな");
    check(TEXT_WORD, "|한국어 |말");
    check(TEXT_WORD, "|émigré |x");
    check(TEXT_WORD, "|ok|👍 x");
    check(TEXT_WORD, "one |two  ");
    check(TEXT_WORD_END, "|on|e two");
    check(TEXT_WORD_END, "on|e tw|o, three");
    check(TEXT_WORD_END, "tw|o|, three");
    check(TEXT_WORD_END, "thre|e ");
    check(TEXT_WORD_BACK, "|one| two");
    check(TEXT_WORD_BACK, "one |t|wo");
    check(TEXT_WORD_BACK, "one |two\n\n|");
    check(TEXT_WORD_BACK, "|one");
}

static void test_blocks_lie_between_empty_lines(void **state) {
    (void)state;
    check(TEXT_BLOCK, "o|ne\ntwo\n\n\n|three\n");
    check(TEXT_BLOCK, "one\n|\n|three");
    check(TEXT_BLOCK, "one\n\nth|ree\n");
    check(TEXT_BLOCK_BACK, "one\n\n|two\nth|ree");
    check(TEXT_BLOCK_BACK, "|one\n\n|two\nthree");
    check(TEXT_BLOCK_BACK, "|one\n\n\n|");
    check(TEXT_BLOCK_BACK, "|one");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_are_grapheme_clusters),
        cmocka_unit_test(test_a_line_ends_where_its_last_letter_is),
        cmocka_unit_test(test_words_end_with_signs_and_scripts),
        cmocka_unit_test(test_blocks_lie_between_empty_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
