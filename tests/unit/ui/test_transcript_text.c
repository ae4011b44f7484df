// Selecting text in the transcript: what is copied is what was written, whatever the layout did to it.
#include <stdio.h>

#include "tests/unit/transcript_scene.h"

static struct scene *s;

static int setup(void **state) {
    (void)state;
    s = scene_open(24, 12);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    scene_close(s);
    return 0;
}

static void keys(const enum text_step *steps, int n) {
    for (int i = 0; i < n; i++) transcript_text_step(s->transcript, steps[i]);
}
#define KEYS(...)                                                                                                      \
    keys((const enum text_step[]){__VA_ARGS__}, sizeof((const enum text_step[]){__VA_ARGS__}) / sizeof(enum text_step))

static void begin(void) {
    draw(s);
    assert_true(transcript_text_begin(s->transcript));
    draw(s);
}

static void check_copied(const char *expected) {
    size_t size;
    bool quote;
    transcript_text_copy(s->transcript, false);
    draw(s);
    char *text = transcript_text_copied(s->transcript, &size, &quote);
    assert_non_null(text);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
    free(text);
}

// All of the transcript's text.
static void check_all(const char *expected) {
    begin();
    KEYS(TEXT_TOP);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_BOTTOM);
    check_copied(expected);
}

static void test_wrapped_lines_are_joined(void **state) {
    (void)state;
    const char *text = "one two three four five six seven eight, a-hyphened-word-that-is-long-enough\nand a line";
    say(s, VIEW_USER, text);
    check_all(text);
}

static void test_wide_letters_and_clusters_are_whole(void **state) {
    (void)state;
    const char *text = "日本語の文章は、空白なしで折り返される。👩‍👩‍👧 🇳🇴 "
                       "e\xcc\x81migre\xcc\x81 "
                       "한국어";
    say(s, VIEW_MODEL, text);
    check_all(text);
    KEYS(TEXT_TOP);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_RIGHT);
    check_copied("日本");
}

static void test_code_has_no_frame(void **state) {
    (void)state;
    say(s, VIEW_MODEL,
        "Run:\n\n```sh\nls -l | sort --reverse --key=5 | head\n\n  echo done\n```\n\n- in a list\n\n  ```\n  x\n  ```");
    check_all("Run:\n\nls -l | sort --reverse --key=5 | head\n\n  echo done\n\n• in a list\n\nx");
}

static void test_a_table_has_tabs_between_its_cells(void **state) {
    (void)state;
    say(s, VIEW_MODEL,
        "| name | meaning |\n|:--|--:|\n| a **b** | the first of them, in many words |\n|  | x |\n\nend");
    check_all("name\tmeaning\na b\tthe first of them, in many words\n\tx\n\nend");
}

static void test_a_cell_that_is_wrapped_is_selected_as_a_whole(void **state) {
    (void)state;
    say(s, VIEW_MODEL, "| name | meaning |\n|:--|:--|\n| a | the first of them, in many words |\n| b | x |");
    begin();
    KEYS(TEXT_TOP, TEXT_DOWN, TEXT_WORD);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_LINE_END);
    check_copied("the first of them, in many words");
}

static void test_quotations_and_lists(void **state) {
    (void)state;
    say(s, VIEW_MODEL,
        "> quoted words that are wrapped\n\n1. first\n   - inner\n2. second one that is wrapped\n\n# "
        "Head\n\n---\n\nend");
    check_all("quoted words that are wrapped\n\n1. first\n   ◦ inner\n2. second one that is wrapped\n\nHead\n\n\nend");
}

static void test_messages_and_open_thinking_have_a_line_between_them(void **state) {
    (void)state;
    say(s, VIEW_USER, "Why?");
    struct view_message *m = say(s, VIEW_MODEL, "Because.");
    m->thinking = "One thought.\n\nAnother.", m->thinking_size = strlen(m->thinking);
    m->note = "stopped";
    check_all("Why?\n\nBecause.");
    assert_true(transcript_open_thinking(s->transcript));
    check_all("Why?\n\nOne thought.\n\nAnother.\n\nBecause.");
}

static void test_whole_lines_are_those_of_the_text(void **state) {
    (void)state;
    say(s, VIEW_USER, "one two three four five six seven eight\nnine\n\nten");
    begin();
    KEYS(TEXT_TOP, TEXT_DOWN);
    check_copied("one two three four five six seven eight"); // nothing is selected: the line
    transcript_text_select(s->transcript, TEXT_LINES);
    KEYS(TEXT_DOWN);
    check_copied("one two three four five six seven eight\nnine");
}

static void test_either_end_moves(void **state) {
    (void)state;
    say(s, VIEW_USER, "one two three");
    begin();
    KEYS(TEXT_TOP, TEXT_WORD);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_WORD_END, TEXT_OTHER_END, TEXT_WORD_BACK);
    check_copied("one two");
}

static void test_a_selection_outlasts_another_width(void **state) {
    (void)state;
    say(s, VIEW_MODEL, "one **two** three four five six seven");
    begin();
    KEYS(TEXT_TOP, TEXT_WORD);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_WORD, TEXT_WORD, TEXT_WORD_END);
    draw(s);
    canvas_resize(&s->canvas, 9, 12);
    draw(s);
    check_copied("two three four");
}

static void test_the_cursor_is_in_sight(void **state) {
    (void)state;
    int x, y;
    canvas_resize(&s->canvas, 20, 4);
    for (int i = 0; i < 9; i++) say(s, VIEW_USER, "日本 words");
    begin();
    assert_true(transcript_text_cursor(s->transcript, &x, &y));
    assert_int_equal(y, 3);
    KEYS(TEXT_TOP, TEXT_WORD);
    draw(s);
    assert_true(transcript_text_cursor(s->transcript, &x, &y));
    assert_int_equal(x, 5);
    assert_int_equal(y, 1);
    KEYS(TEXT_DOWN, TEXT_DOWN, TEXT_LEFT, TEXT_LEFT); // the column is kept; then to a wide letter
    draw(s);
    assert_true(transcript_text_cursor(s->transcript, &x, &y));
    assert_int_equal(x, 2);
    transcript_scroll(s->transcript, 9);
    draw(s);
    assert_false(transcript_text_cursor(s->transcript, &x, &y));
    KEYS(TEXT_RIGHT);
    draw(s);
    assert_true(transcript_text_cursor(s->transcript, &x, &y));
}

static void test_the_head_of_a_long_table_does_not_cover_the_cursor(void **state) {
    (void)state;
    char table[1024] = "| head | b |\n|--|--|\n", cell[16];
    for (int i = 10; i < 60; i++) sprintf(table + strlen(table), "| r%d | x |\n", i);
    say(s, VIEW_MODEL, table);
    canvas_resize(&s->canvas, 20, 8);
    begin();
    for (int i = 58; i > 10; i--) {
        int x, y;
        KEYS(TEXT_UP);
        draw(s);
        assert_true(transcript_text_cursor(s->transcript, &x, &y));
        char *text = canvas_as_text(&s->canvas), *line = text;
        for (int row = 0; row < y; row++) line = strchr(line, '\n') + 1;
        snprintf(cell, sizeof cell, "r%d", i);
        assert_memory_equal(line, cell, 3);
        free(text);
    }
}

static void test_what_is_collapsed_is_passed_over_by_rows_and_opened_by_words(void **state) {
    (void)state;
    s->view.collapse = 8;
    say(s, VIEW_USER, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
    say(s, VIEW_MODEL, "end");
    begin();
    KEYS(TEXT_TOP);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_DOWN, TEXT_DOWN, TEXT_DOWN, TEXT_DOWN, TEXT_DOWN);
    check_copied("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n\ne");
    char *text = canvas_as_text(&s->canvas);
    assert_non_null(strstr(text, "more rows"));
    free(text);
    KEYS(TEXT_WORD_BACK);
    draw(s);
    text = canvas_as_text(&s->canvas);
    assert_null(strstr(text, "more rows"));
    free(text);
}

static void test_matches_are_gone_to_from_the_cursor(void **state) {
    (void)state;
    say(s, VIEW_USER, "a word and a word"), say(s, VIEW_MODEL, "no"), say(s, VIEW_USER, "word after word");
    begin();
    transcript_search(s->transcript, "word");
    draw(s);
    KEYS(TEXT_TOP, TEXT_MATCH_BELOW, TEXT_MATCH_BELOW);
    check_copied("a word and a word");
    KEYS(TEXT_MATCH_BELOW);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_LINE_END);
    check_copied("word after word");
    KEYS(TEXT_MATCH_ABOVE);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_WORD_END);
    check_copied("word");
}

static void test_the_mouse_selects_words_lines_and_what_it_is_drawn_over(void **state) {
    (void)state;
    size_t size;
    bool quote;
    say(s, VIEW_USER, "one two three");
    say(s, VIEW_MODEL, "four five");
    draw(s);
    assert_null(transcript_text_copied(s->transcript, &size, &quote));
    assert_false(transcript_mouse_press(s->transcript, 5, 1, 1));
    assert_true(transcript_mouse_press(s->transcript, 5, 1, 2));
    draw(s);
    check_copied("two");
    assert_true(transcript_mouse_press(s->transcript, 5, 1, 3));
    check_copied("one two three");
    transcript_mouse_press(s->transcript, 8, 1, 1);
    assert_true(transcript_mouse_drag(s->transcript, 20, 3)); // over the heading: what is above it
    draw(s);
    assert_true(transcript_mouse_drag(s->transcript, 3, 4));
    check_copied("three\n\nfour");
    transcript_mouse_release(s->transcript);
    assert_false(transcript_mouse_drag(s->transcript, 0, 1));
}

static void test_a_text_of_which_nothing_is_shown(void **state) {
    (void)state;
    const enum text_step all[] = {TEXT_LEFT,     TEXT_WORD_BACK, TEXT_BLOCK_BACK, TEXT_RIGHT,      TEXT_WORD,
                                  TEXT_WORD_END, TEXT_BLOCK,     TEXT_LINE_BEGIN, TEXT_LINE_FIRST, TEXT_LINE_END,
                                  TEXT_UP,       TEXT_DOWN,      TEXT_TOP,        TEXT_BOTTOM};
    say(s, VIEW_USER, "one"), say(s, VIEW_MODEL, "| | |\n|-|-|\n| | |"), say(s, VIEW_USER, "two");
    begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) KEYS(TEXT_TOP, TEXT_WORD_END, all[i], all[k]), draw(s);
    KEYS(TEXT_TOP);
    transcript_text_select(s->transcript, TEXT_LETTERS);
    KEYS(TEXT_BOTTOM);
    check_copied("one\n\n\t\n\t\n\ntwo");
}

static void test_no_text_no_cursor(void **state) {
    (void)state;
    draw(s);
    assert_false(transcript_text_begin(s->transcript));
    struct view_message *m = say(s, VIEW_MODEL, "");
    m->streaming = true;
    begin();
    KEYS(TEXT_WORD, TEXT_UP, TEXT_TOP, TEXT_MATCH_BELOW, TEXT_OTHER_END, TEXT_PAGE_DOWN);
    transcript_text_copy(s->transcript, false);
    draw(s);
    size_t size;
    bool quote;
    assert_null(transcript_text_copied(s->transcript, &size, &quote));
    retext(m, "text");
    KEYS(TEXT_TOP);
    check_copied("text");
    s->view.n_messages = 0; // another chat
    draw(s);
    assert_false(transcript_mouse_press(s->transcript, 1, 1, 2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_wrapped_lines_are_joined),
        TEST(test_wide_letters_and_clusters_are_whole),
        TEST(test_code_has_no_frame),
        TEST(test_a_table_has_tabs_between_its_cells),
        TEST(test_a_cell_that_is_wrapped_is_selected_as_a_whole),
        TEST(test_quotations_and_lists),
        TEST(test_messages_and_open_thinking_have_a_line_between_them),
        TEST(test_whole_lines_are_those_of_the_text),
        TEST(test_either_end_moves),
        TEST(test_a_selection_outlasts_another_width),
        TEST(test_the_cursor_is_in_sight),
        TEST(test_the_head_of_a_long_table_does_not_cover_the_cursor),
        TEST(test_what_is_collapsed_is_passed_over_by_rows_and_opened_by_words),
        TEST(test_matches_are_gone_to_from_the_cursor),
        TEST(test_the_mouse_selects_words_lines_and_what_it_is_drawn_over),
        TEST(test_a_text_of_which_nothing_is_shown),
        TEST(test_no_text_no_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
