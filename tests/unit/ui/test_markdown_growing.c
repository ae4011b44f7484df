// Markdown that grows: at every moment it looks as if it were laid out at once, and little is laid out again.
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

enum { ROOM = 1 << 17 };

static bool same_rows(const struct lines *a, const struct lines *b) {
    for (size_t i = 0; i < a->n_runs; i++)
        if (memcmp(&a->runs[i], &b->runs[i], sizeof *a->runs)) return false;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct lines_row *r = &a->rows[i], *s = &b->rows[i];
        if (r->first_run != s->first_run || r->start != s->start || r->fill_from != s->fill_from || r->fill != s->fill)
            return false;
        if (r->above != s->above || r->head != s->head) return false;
    }
    return true;
}

static void check_grown(struct markdown *m, const char *text, size_t size, struct markdown_options o) {
    struct markdown fresh = {0};
    const struct lines *a = &m->lines, *b = &fresh.lines;
    markdown_layout(m, text, size, o);
    markdown_layout(&fresh, text, size, o);
    if (a->n_rows != b->n_rows || a->n_runs != b->n_runs || a->size != b->size ||
        (a->size && memcmp(a->text, b->text, a->size)) || !same_rows(a, b)) {
        char *grown = lines_as_text(a, o.width), *once = lines_as_text(b, o.width);
        fail_msg("width %d, %s, after %zu bytes of:\n%.*s\n---- grown:\n%s---- at once:\n%s", o.width,
                 o.streaming ? "streaming" : "whole", size, (int)size, text, grown, once);
    }
    markdown_free(&fresh);
}

static void check_growing(const char *text, size_t size, size_t piece, int width, bool streaming) {
    struct markdown m = {0};
    for (size_t n = 0; n <= size; n += piece)
        check_grown(&m, text, n, (struct markdown_options){.width = width, .streaming = streaming});
    markdown_free(&m);
}

static void test_documents_grow_as_if_laid_out_at_once(void **state) {
    (void)state;
    static const char *const documents[] = {
        "Look:\n```c\nint a;\n\n\tint b = some_function(with, many, arguments);\n```\n\nAfter *it*.\n",
        "```\n\n\n# no heading\n[1]: no definition\n``` not closed\n  ```\nafter\n\n```\n\nopen",
        "1. one\n2. two\n\n   ```sh\n   make\n\n   make check\n   ```\n\n3. three\n   ```\n   a\nescapes\n",
        "- ```\n  a\n\n  b\n- ~~~\n  c\n\n\n  d\n",
        "> ```\n> a\n>\n> b\n> ```\n> c\n\n> > ```\n> > d\n> e\n",
        "| a |\n|---|\n| 1 |\n```\na | b | c\n||||\n```\n",
        "```\na\n```\n    ```\n    indented\n\n    code\n```\nopen\n\nstill\n",
        "~~~x `y`\na\r\n\r\nb\rc\n日本語のとても長い行です\n~~~\n",
        "````md\n```\ninner\n```\n\nmore\n````\nend\n",
        "So $x_1$ and\n\\[\na\n+ b\n\\]\nthen $$y$$ is\n\n\\[ open\n```\n\\]\n```\n",
        "```c\nint a; /* open\n\nstill */ return 1;\n\"unclosed\nchar\n```\n/* text\n",
        "1. x\n   ```py\n   s = '''a\n   b''' # c\n\n   def f():\n   ```\n```html\n<a\n href='x'>if</a>\n```\n",
        "# Title\n\nSome *text* with `code` and a [link](http://x.y), long enough to be wrapped.\n\n> quoted\n> "
        "text\n\n"
        "1. one\n\n   more\n\n2. two\n   - nested\n\n3. three\n\n| a | b |\n|---|---|\n| 1 | 2 "
        "|\n\n日本語の文章。\n\n---\nend",
        "See [one][1], [Two] and `[1]`.\n\n![A picture][pic] of it[^n]!\n\nMore[^n] and[^m].\n\n[1]: http://a.b\n"
        "[two]: <http://c.d> \"Title\"\n[pic]: img/x.png\n[^m]: The *second*,\n    indented.\n\n[^n]: "
        "First[^k].\n[^k]: In it.\n",
        "[1]: http://before.use\n[^a]: A note before,\ngoing on.\n\nText[^a] with [a link][1].\n\n[1]: "
        "http://second.one\nend",
        "[Speaker]: Hello\n\n[Note]: this is said. [Speaker]\n\n```\n[1]: http://in.code\n[^1]: in code\n```\n\nUse "
        "[1][^1].\n",
        "text\n\n2. two\n   - nested\n     ```sh\n     make\n     `` more\n\n2. two\n   - the list ends the fence",
        "- [ ] open\n- [x] done\n1. [ ] one\n2. [X] two\n",
        "a [^Ä b][é] [É]\n\n[é]: http://e.e\n\n[STRASSE] [straße]\n\n[straße]: http://s.s\n",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        for (int width = 9; width <= 40; width += 31)
            for (size_t piece = 1; piece < 60; piece += piece / 2 + 1) {
                check_growing(documents[i], strlen(documents[i]), piece, width, true);
                check_growing(documents[i], strlen(documents[i]), piece, width, false);
            }
}

// ---- random ----

static unsigned seed = 11;

static unsigned draw(unsigned below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % below;
}

static size_t random_markdown(char *text, int parts) {
    static const char *const pieces[] = {"\n",        "\n\n",
                                         " ",         "- ",
                                         "1. ",       "> ",
                                         "# ",        "```\n",
                                         "**",        "*",
                                         "`",         "|",
                                         "|-|-|\n",   "    ",
                                         "[",         "](",
                                         ")",         "~~",
                                         "<b>",       "---\n",
                                         "日本",      "http://",
                                         "\n[1]: ",   "[1]",
                                         "[^1]",      "\n[^1]: note ",
                                         "[a][2]",    "\n[2]: <x.y>\n",
                                         "![p](u.v)", "![q][1]",
                                         "\n[^é]: e", "[^é]",
                                         "- [ ] ",    "$x_1$",
                                         "\\",        "\t",
                                         "]: a.b\n",  "```c\nint a;\n"};
    size_t n = 0;
    for (int i = 0; i < parts; i++)
        if (draw(3) == 0) n += (size_t)sprintf(text + n, "word%u", draw(100));
        else n += (size_t)sprintf(text + n, "%s", pieces[draw(sizeof pieces / sizeof *pieces)]);
    return n;
}

static void test_random_markdown_grows_as_if_laid_out_at_once(void **state) {
    (void)state;
    static char text[ROOM];
    for (int round = 0; round < 400; round++) {
        const size_t n = random_markdown(text, 60);
        check_growing(text, n, 1 + round % 3, 10 + round % 60, round % 4 > 0);
    }
}

// So long that chunks are cut; pieces of any size come, and now and then the window has another width.
static void test_long_random_markdown_grows_by_pieces_as_if_laid_out_at_once(void **state) {
    (void)state;
    static char text[ROOM];
    for (int round = 0; round < 6; round++) {
        size_t n = random_markdown(text, 9000), at = 0;
        for (size_t i = 0; round % 3 && i + 1 < n; i++) // no blank lines, or no line ends at all
            if (text[i] == '\n' && (round % 3 == 2 || text[i + 1] == '\n')) text[i] = ' ';
        struct markdown m = {0};
        for (int width = 50; at < n; at += draw(8000)) {
            if (!draw(8)) width = 20 + (int)draw(60);
            check_grown(&m, text, at < n ? at : n, (struct markdown_options){.width = width, .streaming = draw(4)});
        }
        markdown_free(&m);
    }
}

static void test_a_text_that_is_another_one_is_laid_out_anew(void **state) {
    (void)state;
    static char text[ROOM];
    struct markdown m = {0};
    for (int round = 0; round < 300; round++) {
        const size_t n = random_markdown(text, 40);
        if (draw(2)) memcpy(text, "The same beginning [1]\n\nof all[^1] ", 36);
        check_grown(&m, text, n, (struct markdown_options){.width = 30});
    }
    markdown_free(&m);
}

// ---- what it costs ----

static void test_streaming_lays_out_only_the_last_chunk(void **state) {
    (void)state;
    enum { PARAGRAPHS = 200 };
    char text[PARAGRAPHS * 16] = "";
    struct markdown m = {0};
    size_t n = 0;
    for (int i = 0; i < PARAGRAPHS; i++) {
        n += (size_t)sprintf(text + n, "paragraph %d\n\n", i);
        markdown_layout(&m, text, n, (struct markdown_options){.width = 40, .streaming = true});
    }
    assert_int_equal(m.lines.n_rows, 2 * PARAGRAPHS - 1);
    assert_true(m.chunks_laid_out <= 2 * PARAGRAPHS); // each once as the last, once as complete
    markdown_free(&m);
}

static void test_an_open_fence_lays_out_only_its_last_line(void **state) {
    (void)state;
    enum { LINES = 300 };
    static const char *const before[] = {"", "Text:\n", "1. item\n\n", "> quoted\n"};
    static const char *const margin[] = {"", "", "   ", "> "};
    for (int k = 0; k < 4; k++) {
        char text[LINES * 24];
        size_t n = (size_t)sprintf(text, "%s%s```c\n", before[k], margin[k]);
        struct markdown m = {0};
        for (int i = 0; i < LINES; i++) {
            n += (size_t)sprintf(text + n, "%scall(%d);", margin[k], i);
            markdown_layout(&m, text, n, (struct markdown_options){.width = 40, .streaming = true});
            text[n++] = '\n';
            markdown_layout(&m, text, n, (struct markdown_options){.width = 40, .streaming = true});
        }
        assert_true(m.lines.n_rows >= LINES + 1);
        assert_in_range(m.rows_laid_out, 1, 12 * LINES); // what precedes the code, and at most two lines, twice a line
        markdown_free(&m);
    }
}

// Where a chunk is cut because it became long, nothing shows it.
static void test_long_text_without_blank_lines_shows_no_seam(void **state) {
    (void)state;
    static const char *const kinds[][2] = {
        {"a line of text\n", "a line of text\n"},
        {"- an item\n  that goes on\n", "• an item\n  that goes on\n"},
        {"> a quotation\n", "▎ a quotation\n"},
        {"## Head\ntext\n- a\n- b\n", "Head\n\ntext\n\n• a\n• b\n\n"},
    };
    static char text[ROOM], expected[ROOM];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = 0, size = 0;
        while (n < 20000) {
            n += (size_t)sprintf(text + n, "%s", kinds[k][0]);
            size += (size_t)sprintf(expected + size, "%s", kinds[k][1]);
        }
        struct markdown m = {0};
        markdown_layout(&m, text, n, (struct markdown_options){.width = 60});
        assert_true(m.n_starts > 2);
        char *out = lines_as_text(&m.lines, 60);
        while (size && expected[size - 1] == '\n') size--;
        assert_int_equal(strncmp(out, expected, size), 0);
        free(out);
        markdown_free(&m);
    }
}

// Bytes that md4c was given while the text grew from one size to another, a few tokens at a time.
static unsigned long bytes_parsed(struct markdown *m, const char *text, size_t from, size_t to) {
    const unsigned long before = m->bytes_parsed;
    for (size_t n = from; n < to; n += 64)
        markdown_layout(m, text, n, (struct markdown_options){.width = 80, .streaming = true});
    return m->bytes_parsed - before;
}

// Whatever it consists of, and also where it has no blank lines or line ends.
static void test_a_token_costs_the_same_however_long_the_answer_is(void **state) {
    (void)state;
    static const char *const kinds[][2] = {
        {"", "Some words of a *paragraph* with [a mark] in it.\n\n"},
        {"", "1. An item of a list\n\n"},
        {"", "words without an end "},
        {"", "a line that another one follows\n"},
        {"", "- an item of a list\n"},
        {"", "> a line of a quotation\n"},
        {"| a | b |\n|---|---|\n", "| one | of many rows |\n"},
        {"```c\n", "    int count = add(values, 12);\n"},
        {"", "[^1] and [a] [b]\n\n```\ncode\n```\n"},
    };
    enum { SIZE = 1 << 16 };
    static char text[SIZE + 100];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = (size_t)sprintf(text, "%s", kinds[k][0]);
        while (n < SIZE) n += (size_t)sprintf(text + n, "%s", kinds[k][1]);
        struct markdown m = {0};
        const unsigned long first = bytes_parsed(&m, text, 0, SIZE / 2),
                            second = bytes_parsed(&m, text, SIZE / 2, SIZE);
        if (second > first + first / 4) fail_msg("%s: %lu bytes parsed, then %lu", kinds[k][1], first, second);
        markdown_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_grow_as_if_laid_out_at_once),
        cmocka_unit_test(test_random_markdown_grows_as_if_laid_out_at_once),
        cmocka_unit_test(test_long_random_markdown_grows_by_pieces_as_if_laid_out_at_once),
        cmocka_unit_test(test_a_text_that_is_another_one_is_laid_out_anew),
        cmocka_unit_test(test_streaming_lays_out_only_the_last_chunk),
        cmocka_unit_test(test_an_open_fence_lays_out_only_its_last_line),
        cmocka_unit_test(test_long_text_without_blank_lines_shows_no_seam),
        cmocka_unit_test(test_a_token_costs_the_same_however_long_the_answer_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
