// Text measures, drawing, graphs and gauges.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/utf8.h"
#include "ui/canvas.h"

static const struct style plain = {.role = ROLE_TEXT};

// A row of the canvas as UTF-8; a cell that is a blank is '.', so that ends are seen.
static const char *row_text(const struct canvas *c, int y) {
    static char text[4096];
    size_t n = 0;
    for (int x = 0; x < c->width; x++) {
        const struct cell *cell = &c->cells[y * c->width + x];
        bool blank = cell->codes[0] == ' ' && !cell->codes[1];
        if (blank) text[n++] = '.';
        for (int i = 0; !blank && i < CELL_CODES && cell->codes[i]; i++) n += utf8_encode(cell->codes[i], text + n);
    }
    text[n] = 0;
    return text;
}

// Every wide cell has its right half, every right half its cell.
static void assert_whole(const struct canvas *c) {
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            const struct cell *cell = &c->cells[y * c->width + x];
            if (cell->width == 2) assert_true(x + 1 < c->width && cell[1].width == 0 && cell[1].codes[0] == 0);
            if (cell->width == 0) assert_true(x > 0 && cell[-1].width == 2);
            if (cell->width) assert_int_not_equal(cell->codes[0], 0);
        }
}

static void draw(struct canvas *c, int x, int y, const char *text) {
    canvas_text(c, (struct rect){0, 0, c->width, c->height}, x, y, plain, text, strlen(text));
}

// ---- measures ----

static void test_widths(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int clusters, width;
    } samples[] = {{"abc", 3, 3},
                   {"日本", 2, 4},
                   {"e\u0301", 1, 1},
                   {"한", 1, 2},
                   {"\u1112\u1161\u11ab", 1, 2}, // the same syllable in parts
                   {"\U0001f600", 1, 2},
                   {"\u2764", 1, 1},
                   {"\u2764\ufe0f", 1, 2},
                   {"1\ufe0f\u20e3", 1, 2},
                   {"\U0001f1f3\U0001f1f4", 1, 2},
                   {"\U0001f1f3\U0001f1f4\U0001f1f8\U0001f1ea", 2, 4},
                   {"\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", 1, 2},
                   {"\U0001f44b\U0001f3fd", 1, 2},
                   {"\u0915\u093e", 1, 2},
                   {"\u0301", 1, 1}, // with nothing to sit on
                   {"\u200d", 1, 0},
                   {"\u0645\u200c\u06cc", 2, 2}, // ZWNJ stays with its letter
                   {"\u200b", 1, 0},
                   {"\t", 1, 1},
                   {"\r\n", 2, 1},
                   {"\033[1m", 4, 4},
                   {"\u202e\u2066\u200f", 3, 3},
                   {"\xff\xfe", 2, 2},
                   {"\xe2\x82", 1, 1},
                   {"\uff21", 1, 2},
                   {"", 0, 0}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        size_t size = strlen(samples[i].text);
        int clusters = 0, width = 0, w;
        for (size_t at = 0; at < size; clusters++, width += w) at += text_cluster(samples[i].text + at, size - at, &w);
        if (clusters != samples[i].clusters || width != samples[i].width)
            fail_msg("sample %zu: %d clusters, %d columns", i, clusters, width);
        assert_int_equal(text_width(samples[i].text, size), width);
    }
}

static void test_marks(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 16, 2);
    static const char hostile[] = "\x01\x1b\x7f\xc2\x9b\u202e\u2069\xff\u061c\u2028\ufffe\0z";
    canvas_text(&c, (struct rect){0, 0, 16, 2}, 0, 0, plain, hostile, sizeof hostile - 1);
    assert_string_equal(row_text(&c, 0), "␁␛␡␦␦␦\ufffd␦␦\ufffd␀z....");
    c.ascii = true;
    canvas_text(&c, (struct rect){0, 0, 16, 2}, 0, 1, plain, "\x01\x1b\u202eé", 7);
    assert_string_equal(row_text(&c, 1), "???é............");
    canvas_close(&c);
}

static void test_invisible_messages_are_dropped(void **state) {
    (void)state;
    uint32_t codes[CELL_CODES];
    int width;
    const char *hidden = "a\U000e0069\U000e0067\U000e006e";
    assert_int_equal(text_glyph(hidden, strlen(hidden), codes, &width), strlen(hidden));
    assert_true(codes[0] == 'a' && codes[1] == 0 && width == 1);
    const char *england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f";
    assert_int_equal(text_glyph(england, strlen(england), codes, &width), strlen(england));
    assert_true(codes[0] == 0x1f3f4 && codes[6] == 0xe007f && codes[7] == 0 && width == 2);
    const char *longer = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e0067\U000e0067\U000e007f";
    assert_int_equal(text_glyph(longer, strlen(longer), codes, &width), strlen(longer));
    assert_true(codes[0] == 0x1f3f4 && codes[1] == 0 && width == 2); // too long to keep
}

static void test_families(void **state) {
    (void)state;
    uint32_t codes[CELL_CODES];
    int width;
    const char *family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466";
    assert_int_equal(text_glyph(family, strlen(family), codes, &width), strlen(family));
    assert_true(codes[6] == 0x1f466 && codes[7] == 0 && width == 2); // all four
    const char *tones =
        "\U0001f468\U0001f3fd\u200d\U0001f469\U0001f3fd\u200d\U0001f467\U0001f3fd\u200d\U0001f466\U0001f3fd";
    assert_int_equal(text_glyph(tones, strlen(tones), codes, &width), strlen(tones));
    assert_true(codes[7] == 0x1f3fd && width == 2);
    const char *waiting = "\U0001f468\U0001f3fd\u200d\U0001f469\u200d\u2764\ufe0f\u200d\U0001f466";
    text_glyph(waiting, strlen(waiting), codes, &width);
    assert_true(codes[6] == 0xfe0f && codes[7] == 0); // never ends waiting for more
}

static void test_long_clusters_are_linear(void **state) {
    (void)state;
    enum { MARKS = 1 << 19 };
    char *text = malloc(1 + 2 * MARKS);
    text[0] = 'a';
    for (int i = 0; i < MARKS; i++) text[1 + 2 * i] = (char)0xcc, text[2 + 2 * i] = (char)0x81;
    assert_int_equal(text_width(text, 1 + 2 * MARKS), 1);
    int width;
    assert_int_equal(text_fit(text, 1 + 2 * MARKS, 1, &width), 1 + 2 * MARKS);
    free(text);
}

static void test_fit(void **state) {
    (void)state;
    int width;
    assert_int_equal(text_fit("日本語", 9, 5, &width), 6);
    assert_int_equal(width, 4);
    assert_int_equal(text_fit("abc", 3, 0, NULL), 0);
    assert_int_equal(text_fit("abc", 3, 9, &width), 3);
    assert_int_equal(width, 3);
}

// ---- drawing ----

static void test_clipping(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 8, 3);
    struct rect clip = {2, 1, 4, 1};
    assert_int_equal(canvas_text(&c, clip, 1, 1, plain, "日本語文", 12), 6);
    assert_string_equal(row_text(&c, 1), "...本...");
    assert_int_equal(canvas_text(&c, clip, 0, 0, plain, "out", 3), 0);
    assert_string_equal(row_text(&c, 0), "........");
    canvas_text(&c, (struct rect){-5, -5, 100, 100}, 6, 2, plain, "long text", 9);
    assert_string_equal(row_text(&c, 2), "......lo");
    assert_int_equal(canvas_text(&c, (struct rect){0, 0, 8, 3}, 0, 0, plain, "one\ntwo", 7), 3);
    assert_string_equal(row_text(&c, 0), "one.....");
    assert_whole(&c);
    canvas_close(&c);
}

static void test_halves_become_blank(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 6, 1);
    draw(&c, 0, 0, "日本語");
    draw(&c, 1, 0, "x");
    assert_string_equal(row_text(&c, 0), ".x本語");
    draw(&c, 3, 0, "文");
    assert_string_equal(row_text(&c, 0), ".x.文.");
    assert_whole(&c);
    canvas_resize(&c, 3, 2);
    assert_string_equal(row_text(&c, 1), "...");
    canvas_close(&c);
}

static void test_random_drawing_stays_whole(void **state) {
    (void)state;
    static const char *const pieces[] = {"日", "ab", "\U0001f600\u0301", "e\u0301", "\u2764\ufe0f", "\t", "한국"};
    struct canvas c;
    canvas_open(&c, 11, 4);
    srand(7);
    for (int i = 0; i < 5000; i++) {
        const char *piece = pieces[rand() % 7];
        struct rect clip = {rand() % 14 - 2, rand() % 6 - 1, rand() % 12, rand() % 5};
        canvas_text(&c, clip, rand() % 16 - 4, rand() % 6 - 1, plain, piece, strlen(piece));
        if (i % 50 == 0) canvas_fill(&c, clip, plain, '#');
        if (i % 70 == 0) canvas_box(&c, clip, i % 11, piece, "n", ROLE_BORDER);
        assert_whole(&c);
    }
    canvas_close(&c);
}

static void test_boxes(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 20, 3);
    struct rect all = {0, 0, 20, 3};
    canvas_box(&c, all, 2, "kv cache", "40%", ROLE_BORDER);
    assert_string_equal(row_text(&c, 0), "╭─²kv.cache────40%─╮");
    assert_string_equal(row_text(&c, 1), "│..................│");
    assert_string_equal(row_text(&c, 2), "╰──────────────────╯");
    canvas_box(&c, all, 0, "a title much too long for it", "note", ROLE_BORDER);
    assert_string_equal(row_text(&c, 0), "╭─a.title.much.to…─╮");
    canvas_box(&c, (struct rect){0, 0, 9, 3}, 0, "日本語", NULL, ROLE_BORDER);
    assert_memory_equal(row_text(&c, 0), "╭─日本…─╮", strlen("╭─日本…─╮"));
    c.ascii = true;
    canvas_box(&c, all, 2, "kv", NULL, ROLE_BORDER);
    assert_string_equal(row_text(&c, 0), "+-2kv--------------+");
    canvas_box(&c, (struct rect){0, 0, 1, 1}, 2, "kv", NULL, ROLE_BORDER); // too small: nothing, no harm
    assert_int_equal(rect_inside((struct rect){0, 0, 1, 1}).width, 0);
    canvas_close(&c);
}

// ---- graphs ----

static void test_graph_forms(void **state) {
    (void)state;
    static const float values[] = {0, 1, 2, 4};
    struct canvas c;
    canvas_open(&c, 6, 1);
    struct rect all = {0, 0, 6, 1};
    canvas_graph(&c, all, ROLE_DECODE, values, 4, 4, true);
    assert_string_equal(row_text(&c, 0), "....\u28c0\u28fc");
    canvas_clear(&c);
    canvas_graph(&c, all, ROLE_DECODE, values, 4, 0, false);
    assert_string_equal(row_text(&c, 0), "..▁▂▄█");
    c.ascii = true;
    canvas_clear(&c);
    canvas_graph(&c, all, ROLE_DECODE, values, 4, 4, true);
    assert_string_equal(row_text(&c, 0), "....:#");
    canvas_close(&c);
}

static void test_graph_is_tall_and_shaded(void **state) {
    (void)state;
    static const float values[] = {1, 8};
    struct canvas c;
    canvas_open(&c, 2, 4);
    canvas_graph(&c, (struct rect){0, 0, 2, 4}, ROLE_DECODE, values, 2, 8, false);
    assert_string_equal(row_text(&c, 0), ".█");
    assert_string_equal(row_text(&c, 3), "▄█");
    assert_int_equal(c.cells[1].shade, 101);
    assert_int_equal(c.cells[3 * 2 + 1].shade, 26);
    canvas_close(&c);
}

static void test_graph_of_nonsense(void **state) {
    (void)state;
    const float values[] = {NAN, INFINITY, -INFINITY, -3, 1e38f, 0};
    struct canvas c;
    canvas_open(&c, 3, 2);
    for (int i = -1; i <= 6; i++) {
        canvas_graph(&c, (struct rect){0, 0, 3, 2}, ROLE_DECODE, values, i, 0, true);
        canvas_graph(&c, (struct rect){-4, 1, 30, 9}, ROLE_DECODE, values, i, NAN, false);
        canvas_graph(&c, (struct rect){0, 0, 0, 0}, ROLE_DECODE, values, i, 1, false);
    }
    for (int i = 0; i < 6; i++) assert_true(c.cells[i].shade <= THEME_STEPS);
    canvas_close(&c);
}

static void test_gauges_do_not_lie(void **state) {
    (void)state;
    static const struct {
        double share;
        const char *text;
    } samples[] = {{0, "░░░░░░░░░░"}, {0.001, "▓░░░░░░░░░"}, {0.5, "▓▓▓▓▓░░░░░"}, {0.999, "▓▓▓▓▓▓▓▓▓░"},
                   {1, "▓▓▓▓▓▓▓▓▓▓"}, {7, "▓▓▓▓▓▓▓▓▓▓"},     {-1, "░░░░░░░░░░"},  {NAN, "░░░░░░░░░░"}};
    struct canvas c;
    canvas_open(&c, 10, 1);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        canvas_gauge(&c, (struct rect){0, 0, 10, 1}, 0, 0, 10, samples[i].share, ROLE_GAUGE);
        assert_string_equal(row_text(&c, 0), samples[i].text);
    }
    canvas_close(&c);
}

static void test_a_canvas_may_have_no_rows(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 40, 0);
    canvas_clear(&c);
    draw(&c, 0, 0, "x");
    canvas_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_invisible_messages_are_dropped),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_long_clusters_are_linear),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_halves_become_blank),
        cmocka_unit_test(test_random_drawing_stays_whole),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_graph_forms),
        cmocka_unit_test(test_graph_is_tall_and_shaded),
        cmocka_unit_test(test_graph_of_nonsense),
        cmocka_unit_test(test_gauges_do_not_lie),
        cmocka_unit_test(test_a_canvas_may_have_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
