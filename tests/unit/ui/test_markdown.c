#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "tests/unit/screen_text.h"
#include "ui/markdown.h"

static char *rendered(const char *text, int width) {
    struct markdown m = {0};
    markdown_layout(&m, text, strlen(text), (struct markdown_options){.width = width});
    char *out = lines_as_text(&m.lines, width);
    markdown_free(&m);
    return out;
}

static void check(const char *text, int width, const char *expected) {
    char *out = rendered(text, width);
    assert_string_equal(out, expected);
    free(out);
}

static void test_paragraphs_wrap_at_words(void **state) {
    (void)state;
    check("The quick brown fox jumps.", 12, "The quick\nbrown fox\njumps.\n");
    check("one\n\n\n\ntwo", 20, "one\n\ntwo\n");
    check("a line\nand another", 20, "a line\nand another\n");
    check("unbreakablewordlongerthanthat ok", 10, "unbreakabl\newordlonge\nrthanthat\nok\n");
    check("well-known", 7, "well-\nknown\n");
}

static void test_wide_characters_wrap_by_rule(void **state) {
    (void)state;
    check("日本語の文章です。", 8, "日本語の\n文章で\nす。\n"); // "。" begins no line
    check("「括弧」", 6, "「括\n弧」\n");
    check("e\xcc\x81"
          "e\xcc\x81"
          "e\xcc\x81",
          2,
          "e\xcc\x81"
          "e\xcc\x81\ne\xcc\x81\n");
}

static void test_headings(void **state) {
    (void)state;
    check("# Big\ntext\n## Small\nmore", 20, "Big\n───\n\ntext\n\nSmall\n\nmore\n");
}

static void test_lists_nest_and_hang(void **state) {
    (void)state;
    check("- one two three\n- four\n  1. five\n  2. six", 12, "• one two\n  three\n• four\n  1. five\n  2. six\n");
    check("1. a\n\n1. b\n\n1. c", 20, "1. a\n\n2. b\n\n3. c\n");
    check("1. a\n\ntext\n\n1. b", 20, "1. a\n\ntext\n\n1. b\n");
    check("- [x] done\n- [ ] open", 20, "☑ done\n☐ open\n");
    check("- a\n\n  more of a\n- b", 20, "• a\n\n  more of a\n\n• b\n");
}

static void test_quotations(void **state) {
    (void)state;
    check("> one two\n> three\n>\n> four", 9, "▎ one two\n▎ three\n▎\n▎ four\n");
    check("> - a\n>   - b", 12, "▎ • a\n▎   ◦ b\n");
}

static void test_code_keeps_its_lines(void **state) {
    (void)state;
    check("```c\nint a;\n\n\tint b;\n```\nafter", 20, " c\n int a;\n\n     int b;\n\nafter\n");
    check("```\nint number = other + third;\n```", 16, " int number =\n   other +\n   third;\n");
    check("```\nnever closed\n\n# not a heading", 20, " never closed\n\n # not a heading\n");
    check("- item\n  ```\n  code\n  ```\n- next", 20, "• item\n   code\n• next\n");
}

static void test_tables_are_aligned(void **state) {
    (void)state;
    check("| a | long |\n|--|--:|\n| 日本 | 1 |\n| x | 22 |", 30,
          "a    │ long\n─────┼─────\n日本 │    1\nx    │   22\n");
    check("|a|b|\n|:-:|-|\n|xyz|", 30, " a  │ b\n────┼───\nxyz │\n");
}

static void test_formulas_are_readable(void **state) {
    (void)state;
    check("So \\(x^2 \\le *y*\\) and $a_1$.", 40, "So x² ≤ *y* and a₁.\n");
    check("Then\n\\[\n  a + b\n  + c \\\\\n  = d\n\\]\nholds.", 40, "Then\na + b + c\n= d\nholds.\n");
    check("It is $$x = 1.$$ Yes.", 40, "It is\nx = 1.\nYes.\n");
    check("1. one\n\n    \\[x_1\\]\n\n2. two", 40, "1. one\n\n   x₁\n\n2. two\n");
    check("| a | b |\n|--|--|\n| $x_1$ | \\[z^2\\] |", 40, "a  │ b\n───┼───\nx₁ │ z²\n");
    check("`$x^2$` costs $5 or \\(open", 40, "$x^2$ costs $5 or (open\n");
    check("```\n\\[x^2\\]\n```\n\n    $y^2$", 40, " \\[x^2\\]\n\n $y^2$\n");
    struct markdown m = {0};
    markdown_layout(&m, "\\(x^2\\)", 7, (struct markdown_options){.width = 20, .ascii = true});
    char *out = lines_as_text(&m.lines, 20);
    assert_string_equal(out, "(x^2)\n");
    free(out);
    markdown_free(&m);
}

static void test_wide_tables_shrink_and_wrap(void **state) {
    (void)state;
    check("|k|text|\n|-|-|\n|a|one two three|\n|b|four|", 12,
          "k  │ text\n───┼────────\na  │ one two\n   │ three\n───┼────────\nb  │ four\n");
}

static void test_a_table_too_wide_for_the_pane_is_text(void **state) {
    (void)state;
    char *out = rendered("|a|b|c|d|e|\n|-|-|-|-|-|\n|1|2|3|4|5|", 12);
    assert_non_null(strstr(out, "|a|b|c|d|e|"));
    free(out);
}

static void test_inline_styles(void **state) {
    (void)state;
    struct markdown m = {0};
    const char *text = "**b** *i* ~~s~~ `c` [l](http://x.y)";
    markdown_layout(&m, text, strlen(text), (struct markdown_options){.width = 60});
    const struct {
        const char *text;
        int attributes, role;
    } runs[] = {
        {"b", CELL_BOLD, ROLE_STRONG},
        {" ", 0, ROLE_TEXT},
        {"i", CELL_ITALIC, ROLE_TEXT},
        {" ", 0, ROLE_TEXT},
        {"s", CELL_STRIKE, ROLE_TEXT},
        {" ", 0, ROLE_TEXT},
        {"c", 0, ROLE_CODE},
        {" ", 0, ROLE_TEXT},
        {"l", CELL_UNDERLINE, ROLE_LINK},
        {" (http://x.y)", 0, ROLE_DIM},
    };
    assert_int_equal(m.lines.n_runs, sizeof runs / sizeof *runs);
    for (size_t i = 0; i < m.lines.n_runs; i++) {
        const struct lines_run *r = &m.lines.runs[i];
        assert_int_equal(r->size, strlen(runs[i].text));
        assert_memory_equal(m.lines.text + r->start, runs[i].text, r->size);
        assert_int_equal(r->style.attributes, runs[i].attributes);
        assert_int_equal(r->style.role, runs[i].role);
    }
    markdown_free(&m);
}

static void test_nothing_is_interpreted_that_should_be_seen(void **state) {
    (void)state;
    check("<b>x</b> &amp; &#65; &unknown;", 40, "<b>x</b> & A &unknown;\n");
    check("<div>\nblock\n</div>", 40, "<div>\nblock\n</div>\n");
    check("[1]: http://a.b\n\n[Speaker]: Hello", 40, "[1]: http://a.b\n\n[Speaker]: Hello\n");
    check("see <http://a.b> now", 40, "see http://a.b now\n");
    check("[a.b](https://a.b) [me@a.b](mailto:me@a.b)", 40, "a.b me@a.b\n");
    check("[bank.com](http://xbank.com)", 40, "bank.com (http://xbank.com)\n"); // its address is not hidden
    check("[bank.com](http://www.bank.com)", 40, "bank.com (http://www.bank.com)\n");
    check("see https://a.b/c_d. Now [x](http://a.b", 50, "see https://a.b/c_d. Now [x](http://a.b\n");
    check("a\033[31mb", 40, "a␛[31mb\n");
}

// Chunks end where md4c, given the whole document, sees fences end.
static void test_a_fence_is_closed_as_in_the_whole_document(void **state) {
    (void)state;
    static const char *const documents[] = {
        "```markdown\n1. Install\n\n    ```bash\n    make\n    ```\n\n2. Run\n```\n\nAfter *it*.\n\n- one\n",
        "```markdown\n- a\n\n\t```c\n\tint a;\n\t```\n\nb\n```\n\nAfter *it*.\n",
        "```\n- ```\n\ntext\n```\n\nAfter *it*.\n",
        "```\n> ```\n\ntext\n```\n\nAfter *it*.\n",
        "1. one\n\n   ```\n   a\n\n   b\n      ```\n\nAfter *it*.\n",
        "- ```\n  a\n\n  b\n  ```\n\nAfter *it*.\n",
        "> ```\n> a\n>\n> > ```\n> b\n>    ```\n\nAfter *it*.\n",
        ">```\n> a\n>    ```\n\nAfter *it*.\n",
        "> ```\n> ends with the quotation\n\n```\na\n\nb\n```\n\nAfter *it*.\n",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        size_t size = strlen(documents[i]);
        struct markdown m = {0}, whole = {.width = 40, .references.text = documents[i]};
        for (size_t n = 0; n < size; n++)
            markdown_layout(&m, documents[i], n, (struct markdown_options){.width = 40, .streaming = true});
        markdown_layout(&m, documents[i], size, (struct markdown_options){.width = 40});
        markdown_chunk(&whole, &(struct markdown_start){.table = MARKDOWN_NO_TABLE}, size);
        char *streamed = lines_as_text(&m.lines, 40), *once = lines_as_text(&whole.lines, 40);
        assert_string_equal(streamed, once);
        assert_non_null(strstr(streamed, "\nAfter it."));
        free(streamed);
        free(once);
        markdown_free(&m);
        markdown_free(&whole);
    }
}

// Markdown of random parts, with the words w0x, w1x … in it.
static size_t random_markdown(unsigned *seed, char *text, int *words) {
    static const char *const parts[] = {"\n", "\n\n", " ",   "- ",    "1. ",     "> ",      "# ",   "```\n",
                                        "**", "*",    "`",   "|",     "|-|-|\n", "    ",    "[",    "](",
                                        ")",  "~~",   "<b>", "---\n", "日本",    "http://", "[1]: "};
    size_t n = 0;
    *words = 0;
    for (int i = 0; i < 60; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        unsigned pick = *seed >> 16;
        if (pick % 3 == 0) n += (size_t)sprintf(text + n, "w%dx", (*words)++);
        else n += (size_t)sprintf(text + n, "%s", parts[pick / 3 % (sizeof parts / sizeof *parts)]);
    }
    return n;
}

static void test_another_text_at_the_same_place_starts_afresh(void **state) {
    (void)state;
    struct markdown m = {0};
    markdown_layout(&m, "first\n\nsecond\n\nthird", 20, (struct markdown_options){.width = 40});
    markdown_layout(&m, "other\n\nsecond\n\nthird", 20, (struct markdown_options){.width = 40});
    char *out = lines_as_text(&m.lines, 40);
    assert_string_equal(out, "other\n\nsecond\n\nthird\n");
    free(out);
    markdown_free(&m);
}

static void test_a_marker_that_has_only_begun_waits(void **state) {
    (void)state;
    struct markdown m = {0};
    markdown_layout(&m, "text\n-", 6, (struct markdown_options){.width = 20, .streaming = true}); // would be a heading
    char *out = lines_as_text(&m.lines, 20);
    assert_string_equal(out, "text\n");
    free(out);
    markdown_free(&m);
}

static void check_widths(const char *text, size_t n, int width) {
    struct markdown m = {0};
    markdown_layout(&m, text, n, (struct markdown_options){.width = width});
    for (size_t i = 0; i < m.lines.n_runs; i++) {
        const struct lines_run *r = &m.lines.runs[i];
        int end = r->column + text_width((r->sign ? m.lines.signs : m.lines.text) + r->start, r->size);
        if (end > width + 1) fail_msg("%d columns of %d taken by:\n%s", end, width, text); // one: the margin of code
    }
    markdown_free(&m);
}

// Every word of the source is shown, and no row is wider than the pane, whatever the Markdown around it.
static void test_random_markdown_loses_no_word(void **state) {
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 3000; round++) {
        char text[4096];
        int words;
        size_t n = random_markdown(&seed, text, &words);
        char *shown = rendered(text, 3000); // so wide that nothing is cut
        for (int i = 0; i < words; i++) {
            char word[16];
            sprintf(word, "w%dx", i);
            if (!strstr(shown, word)) fail_msg("round %d lost %s of:\n%s", round, word, text);
        }
        free(shown);
        check_widths(text, n, 10 + round % 60);
    }
}

static void test_hostile_depth_and_size(void **state) {
    (void)state;
    size_t size = 200000;
    char *text = xmalloc(size);
    static const char *const fills[] = {">", "- ", "[", "*", "`", "|", "\n\n", "&", "\xcc\x81", " ", "a", "\xff"};
    for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
        size_t step = strlen(fills[f]);
        for (size_t i = 0; i + step <= size; i += step) memcpy(text + i, fills[f], step);
        struct markdown m = {0};
        markdown_layout(&m, text, size / step * step, (struct markdown_options){.width = 40});
        assert_true(m.lines.n_rows <= size + 1);
        markdown_free(&m);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paragraphs_wrap_at_words),
        cmocka_unit_test(test_wide_characters_wrap_by_rule),
        cmocka_unit_test(test_headings),
        cmocka_unit_test(test_lists_nest_and_hang),
        cmocka_unit_test(test_quotations),
        cmocka_unit_test(test_code_keeps_its_lines),
        cmocka_unit_test(test_tables_are_aligned),
        cmocka_unit_test(test_formulas_are_readable),
        cmocka_unit_test(test_wide_tables_shrink_and_wrap),
        cmocka_unit_test(test_a_table_too_wide_for_the_pane_is_text),
        cmocka_unit_test(test_inline_styles),
        cmocka_unit_test(test_nothing_is_interpreted_that_should_be_seen),
        cmocka_unit_test(test_a_fence_is_closed_as_in_the_whole_document),
        cmocka_unit_test(test_another_text_at_the_same_place_starts_afresh),
        cmocka_unit_test(test_a_marker_that_has_only_begun_waits),
        cmocka_unit_test(test_random_markdown_loses_no_word),
        cmocka_unit_test(test_hostile_depth_and_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
