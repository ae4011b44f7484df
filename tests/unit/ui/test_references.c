#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/screen_text.h"
#include "ui/markdown.h"

static void check_with(const char *text, struct markdown_options o, const char *expected) {
    struct markdown m = {0};
    markdown_layout(&m, text, strlen(text), o);
    char *out = lines_as_text(&m.lines, o.width);
    assert_string_equal(out, expected);
    free(out);
    markdown_free(&m);
}

static void check(const char *text, const char *expected) {
    check_with(text, (struct markdown_options){.width = 40}, expected);
}

static void test_references_show_their_addresses_and_hide_the_definitions(void **state) {
    (void)state;
    check("See [the docs][1].\n\n[1]: http://a.b\n", "See the docs (http://a.b).\n");
    check("See [the docs] now.\n\n[The  Docs]: <http://a.b> \"Title\"\n", "See the docs (http://a.b) now.\n");
    check("[1]: http://a.b\n[two]: x/y.html\n\n[one][1] and [two][]", "one (http://a.b) and two (x/y.html)\n");
    check("Sources:\n[1]: http://a.b\n\nAs [1] says.", "Sources:\n\nAs 1 (http://a.b) says.\n");
    check("[a.b][1]\n\n[1]: https://a.b", "a.b\n");
    check("[first][1]\n\n[1]: http://a.first\n[1]: http://other.one\n",
          "first (http://a.first)\n\n[1]: http://other.one\n"); // that one is lost nowhere
}

static void test_what_nothing_refers_to_stays_in_sight(void **state) {
    (void)state;
    check("[1]: http://a.b\n[2]: http://c.d \"T\"\n\ntext", "[1]: http://a.b\n[2]: http://c.d \"T\"\n\ntext\n");
    check("`[1]` and \\[1]\n\n[1]: http://a.b", "[1] and [1]\n\n[1]: http://a.b\n");
    check("[^1]: *Unused* [1]\n\ntext", "[^1]: *Unused* [1]\n\ntext\n");
    check("[^a]: See [^b].\n[^b]: See [^a].", "[^a]: See [^b].\n[^b]: See [^a].\n");
    check("Use [^abc] to match. [Speaker] says\n\n[Speaker]: Hello", "Use [^abc] to match. [Speaker] says\n\n"
                                                                     "[Speaker]: Hello\n");
    check("[1]\n\n```\n[1]: http://a.b\n```", "[1]\n\n [1]: http://a.b\n");
    check("[x]\n\n- [x]: http://a.b\n", "[x]\n\n• [x]: http://a.b\n"); // within a list they are text
}

static void test_footnotes_stand_numbered_at_the_end(void **state) {
    (void)state;
    check("Old[^o] and new[^n].\n\n[^n]: The *new* one.\n[^o]: The old one, which is longer\nthan a line.\n\nMore.",
          "Old[1] and new[2].\n\nMore.\n\n────────────────────\n1. The old one, which is longer\n   than a line.\n"
          "2. The new one.\n");
    check("Twice[^1], twice[^1]!\n\n[^1]: See [here][x][^2].\n\n    And more.\n\n[^2]: Nested.\n[x]: http://a.b",
          "Twice[1], twice[1]!\n\n────────────────────\n1. See here (http://a.b)[2].\n\n   And more.\n2. Nested.\n");
    check("So![^1] [text][^1]\n\n[^1]: note", "So![1] text[1]\n\n────────────────────\n1. note\n");
    check_with("A[^1]\n\n[^1]: note", (struct markdown_options){.width = 12, .ascii = true},
               "A[1]\n\n------------\n1. note\n");
}

static void test_images_are_shown_by_name(void **state) {
    (void)state;
    check("![A cat](cat.png)", "▣ A cat (cat.png)\n");
    check("![](http://a.b/cat.png \"T\")", "▣ (http://a.b/cat.png)\n");
    check("![A cat][c]\n\n[c]: http://a.b/cat.png", "▣ A cat (http://a.b/cat.png)\n");
    check("[![build](badge.svg)](http://ci.x)", "▣ build (http://ci.x)\n");
    check("![dot](data:image/png;base64,iVBORw0KGgo=)", "▣ dot (data:image/png;base64,…)\n");
    check_with("![A cat](cat.png)", (struct markdown_options){.width = 40, .ascii = true}, "[image] A cat (cat.png)\n");
}

static void test_tasks_keep_their_numbers(void **state) {
    (void)state;
    check("1. [x] done\n2. [ ] open\n3. text", "1. ☑ done\n2. ☐ open\n3. text\n");
    check("- [X] a\n  - [ ] b", "☑ a\n  ☐ b\n");
}

// ---- while it streams ----

static void check_streaming(struct markdown *m, const char *text, const char *expected) {
    markdown_layout(m, text, strlen(text), (struct markdown_options){.width = 40, .streaming = true});
    char *out = lines_as_text(&m->lines, 40);
    assert_string_equal(out, expected);
    free(out);
}

static void test_a_definition_that_comes_later_resolves_then(void **state) {
    (void)state;
    struct markdown m = {0};
    check_streaming(&m, "Old.\n\nSee [docs][1].\n\nMore.\n\n", "Old.\n\nSee [docs][1].\n\nMore.\n");
    check_streaming(&m, "Old.\n\nSee [docs][1].\n\nMore.\n\n[1]: http://a.b", "Old.\n\nSee [docs][1].\n\nMore.\n");
    check_streaming(&m, "Old.\n\nSee [docs][1].\n\nMore.\n\n[1]: http://a.b\n",
                    "Old.\n\nSee docs (http://a.b).\n\nMore.\n");
    markdown_free(&m);
}

static void test_a_line_that_may_become_a_definition_waits(void **state) {
    (void)state;
    static const char *const waiting[] = {"[",   "[1",   "[1]", "[1]:", "[1]: http://", "[1]: http://a.b \"T\"",
                                          "- [", "- [x]"};
    static const char *const shown[] = {"[a](b", "[1]: Hello you", "[^1]: note", "x [1"};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        struct markdown m = {0};
        check_streaming(&m, waiting[i], "");
        markdown_free(&m);
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct markdown m = {0};
        markdown_layout(&m, shown[i], strlen(shown[i]), (struct markdown_options){.width = 40, .streaming = true});
        assert_int_equal(m.lines.n_rows, 1);
        markdown_free(&m);
    }
    struct markdown code = {0};
    check_streaming(&code, "```\n[1, 2", " [1, 2\n");
    markdown_free(&code);
}

static void test_a_footnote_grows_at_the_end(void **state) {
    (void)state;
    struct markdown m = {0};
    check_streaming(&m, "A[^1]\n\n[^1]: No", "A[1]\n\n────────────────────\n1. No\n");
    check_streaming(&m, "A[^1]\n\n[^1]: Note\n    goes on\n\nB",
                    "A[1]\n\nB\n\n────────────────────\n1. Note\n   goes on\n");
    markdown_free(&m);
}

// Definitions are laid out again from their first mention on, not once for each frame after.
static void test_definitions_cost_little_again(void **state) {
    (void)state;
    enum { PARAGRAPHS = 300 };
    static char text[PARAGRAPHS * 40];
    struct markdown m = {0};
    size_t n = 0;
    for (int i = 0; i < PARAGRAPHS; i++)
        n += (size_t)sprintf(text + n, "paragraph %d %s\n\n", i, i == 290 ? "[1]" : "");
    for (size_t at = 0; at < n; at += 3)
        markdown_layout(&m, text, at, (struct markdown_options){.width = 40, .streaming = true});
    n += (size_t)sprintf(text + n, "[1]: http://a.b\n");
    const unsigned long before = m.chunks_laid_out;
    markdown_layout(&m, text, n, (struct markdown_options){.width = 40, .streaming = true});
    assert_in_range(m.chunks_laid_out - before, 10, 20);
    const unsigned long resolved = m.chunks_laid_out;
    for (int i = 0; i < 50; i++) {
        text[n++] = 'x';
        markdown_layout(&m, text, n, (struct markdown_options){.width = 40, .streaming = true});
    }
    assert_in_range(m.chunks_laid_out - resolved, 50, 60);
    markdown_free(&m);
}

// More than are kept, and labels of every size: nothing is lost and it ends.
static void test_hostile_definitions(void **state) {
    (void)state;
    enum { DEFINITIONS = 2000 };
    static char text[DEFINITIONS * 60];
    struct markdown m = {0};
    size_t n = 0;
    for (int i = 0; i < DEFINITIONS; i++)
        n += (size_t)sprintf(text + n, "[l%d][l%d] [^%d]\n[l%d]: u%d.x\n[^%d]: n\n", i, i, i, i, i, i);
    markdown_layout(&m, text, n, (struct markdown_options){.width = 60});
    char *out = lines_as_text(&m.lines, 60), last[16];
    snprintf(last, sizeof last, "u%d.x", DEFINITIONS - 1);
    assert_non_null(strstr(out, last));
    free(out);
    markdown_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_references_show_their_addresses_and_hide_the_definitions),
        cmocka_unit_test(test_what_nothing_refers_to_stays_in_sight),
        cmocka_unit_test(test_footnotes_stand_numbered_at_the_end),
        cmocka_unit_test(test_images_are_shown_by_name),
        cmocka_unit_test(test_tasks_keep_their_numbers),
        cmocka_unit_test(test_a_definition_that_comes_later_resolves_then),
        cmocka_unit_test(test_a_line_that_may_become_a_definition_waits),
        cmocka_unit_test(test_a_footnote_grows_at_the_end),
        cmocka_unit_test(test_definitions_cost_little_again),
        cmocka_unit_test(test_hostile_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
