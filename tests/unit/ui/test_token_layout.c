// Answers laid out token by token: each is where its text is, whatever the width.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/xorshift.h"
#include "ui/token_layout.h"

enum { MOST = 400 };

struct scene {
    struct token_layout layout;
    struct flow flow;
    char text[4096], thinking[4096];
    struct message_token tokens[MOST];
    struct view_message message;
};

static void add(struct scene *s, enum channel channel, const char *text, float probability) {
    char *all = channel == CHANNEL_THINKING ? s->thinking : s->text;
    strcat(all, text);
    s->tokens[s->message.n_drawn++] = (struct message_token){
        .end = (uint32_t)strlen(all), .channel = (uint8_t)channel, .probability = probability, .entropy = 1};
    s->message.text = s->text, s->message.size = strlen(s->text);
    s->message.thinking = s->thinking, s->message.thinking_size = strlen(s->thinking);
    s->message.drawn = s->tokens;
}

static void lay_out(struct scene *s, int width, int marked) {
    token_layout_make(&s->layout, &s->flow, &s->message,
                      &(struct token_layout_options){.width = width, .marked = marked});
}

static void scene_free(struct scene *s) {
    token_layout_free(&s->layout);
    flow_free(&s->flow);
}

static const char *row_text(const struct scene *s, int row) {
    static char text[512];
    const struct lines *l = &s->layout.lines;
    const size_t end = row + 1 < (int)l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
    text[0] = 0;
    for (size_t i = l->rows[row].first_run; i < end; i++) strncat(text, l->text + l->runs[i].start, l->runs[i].size);
    return text;
}

static void assert_spot(const struct scene *s, int i, int token, int row, int column, int width) {
    const struct token_spot *spot = &s->layout.spots[i];
    assert_int_equal(spot->token, token);
    assert_int_equal(spot->row, row);
    assert_int_equal(spot->column, column);
    assert_int_equal(spot->width, width);
}

static void test_tokens_are_where_their_text_is(void **state) {
    (void)state;
    struct scene s = {0};
    add(&s, CHANNEL_THINKING, "Hm", 1);
    add(&s, CHANNEL_ANSWER, "The", 1);
    add(&s, CHANNEL_ANSWER, " **cat**", 0.5f);
    add(&s, CHANNEL_ANSWER, "", 0.5f); // a mark
    add(&s, CHANNEL_ANSWER, " sat\ndown", 0.1f);
    lay_out(&s, 12, 4);
    assert_int_equal(s.layout.lines.n_rows, 5);
    assert_string_equal(row_text(&s, 0), "Hm");
    assert_string_equal(row_text(&s, 2), "The **cat**");
    assert_string_equal(row_text(&s, 3), "sat");
    assert_string_equal(row_text(&s, 4), "down");
    assert_int_equal(s.layout.marked_row, 3);
    assert_spot(&s, 0, 0, 0, 0, 2);
    assert_spot(&s, 1, 1, 2, 0, 3);
    assert_spot(&s, 2, 2, 2, 3, 8);
    assert_spot(&s, 3, 4, 3, 0, 3);
    assert_spot(&s, 4, 4, 4, 0, 4);
    assert_spot(&s, 5, 5, 4, 4, 1); // the end
    assert_int_equal(s.layout.n_spots, 6);
    scene_free(&s);
}

static void test_what_cannot_be_seen_has_a_sign(void **state) {
    (void)state;
    struct scene s = {0};
    add(&s, CHANNEL_ANSWER, "a", 1);
    add(&s, CHANNEL_ANSWER, "", 1);
    add(&s, CHANNEL_ANSWER, "\n", 1);
    lay_out(&s, 12, 1);
    assert_string_equal(row_text(&s, 0), "a▯");
    lay_out(&s, 12, 2);
    assert_string_equal(row_text(&s, 0), "a↵");
    lay_out(&s, 12, -1);
    assert_string_equal(row_text(&s, 0), "a");
    assert_int_equal(s.layout.marked_row, -1);
    add(&s, CHANNEL_ANSWER, "bc", 1);
    lay_out(&s, 12, 4); // the end
    assert_string_equal(row_text(&s, 1), "bc▯");
    assert_int_equal(s.layout.marked_row, 1);
    assert_int_equal(token_layout_at(&s.layout, 1, 2), 4);
    lay_out(&s, 2, 4);
    assert_string_equal(row_text(&s, 2), "▯");
    assert_int_equal(s.layout.marked_row, 2);
    assert_int_equal(token_layout_at(&s.layout, 2, 0), 4);
    scene_free(&s);
}

static void test_styles_tell_how_sure_it_was(void **state) {
    (void)state;
    const struct style base = {.role = ROLE_TEXT};
    struct message_token token = {.probability = 1, .entropy = 0};
    struct style style = token_layout_style(&token, TOKENS_BY_PROBABILITY, false, base);
    assert_int_equal(style.role, ROLE_TOKEN);
    assert_int_equal(style.shade, 1);
    token.probability = 0;
    assert_int_equal(token_layout_style(&token, TOKENS_BY_PROBABILITY, false, base).shade, THEME_STEPS);
    assert_int_equal(token_layout_style(&token, TOKENS_BY_ENTROPY, false, base).shade, 1);
    assert_int_equal(token_layout_style(&token, TOKENS_PLAIN, false, base).role, ROLE_TEXT);
    style = token_layout_style(&token, TOKENS_BY_PROBABILITY, true, base);
    assert_int_equal(style.role, ROLE_TEXT);
    assert_int_equal(style.attributes, CELL_UNDERLINE | CELL_BOLD);
    token.entropy = 30;
    assert_int_equal(token_layout_style(&token, TOKENS_BY_ENTROPY, false, base).shade, THEME_STEPS);
    token.probability = NAN;
    assert_int_equal(token_layout_style(&token, TOKENS_BY_ENTROPY, false, base).role, ROLE_TEXT);
    assert_int_equal(token_layout_style(&token, TOKENS_BY_DRAFT, false, base).role, ROLE_TEXT);
    token.accepted = true;
    assert_int_equal(token_layout_style(&token, TOKENS_BY_DRAFT, false, base).role, ROLE_ACCENT);
    assert_int_equal(token_layout_style(&token, TOKENS_BY_DRAFT, true, base).attributes, CELL_UNDERLINE);
}

// At any width: spots lie in order and apart within their rows, and the marked token is in the row that is said.
static void test_any_text_at_any_width(void **state) {
    (void)state;
    static const char *const pieces[] = {"a",    " b", "word", " long-word",         "\n",   "\n\n", "  ", "\t",
                                         "日本", "é",  "",     "👩‍👩‍👧", "\r\n", "x\ny", "-",  "(a)"};
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 200; round++) {
        struct scene s = {0};
        for (int i = 0; i < 100; i++)
            add(&s, CHANNEL_ANSWER, pieces[xorshift_below(&random, sizeof pieces / sizeof *pieces)], 0.5f);
        const int width = 2 + (int)xorshift_below(&random, 40), marked = (int)xorshift_below(&random, 100);
        lay_out(&s, width, marked);
        bool seen = false;
        for (int i = 0; i < s.layout.n_spots; i++) {
            const struct token_spot *a = &s.layout.spots[i], *before = i ? a - 1 : NULL;
            assert_true(a->column >= 0 && a->width > 0);
            assert_in_range(a->row, 0, s.layout.lines.n_rows - 1);
            if (before && before->row == a->row) assert_true(before->column + before->width <= a->column);
            if (before) assert_true(before->token < a->token || before->row < a->row);
            assert_int_equal(token_layout_at(&s.layout, a->row, a->column), a->token);
            assert_int_equal(token_layout_at(&s.layout, a->row, a->column + a->width - 1), a->token);
            if (a->token == marked && !seen) assert_int_equal(s.layout.marked_row, a->row), seen = true;
        }
        assert_int_equal(token_layout_at(&s.layout, (int)s.layout.lines.n_rows, 0), -1);
        scene_free(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens_are_where_their_text_is),
        cmocka_unit_test(test_what_cannot_be_seen_has_a_sign),
        cmocka_unit_test(test_styles_tell_how_sure_it_was),
        cmocka_unit_test(test_any_text_at_any_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
