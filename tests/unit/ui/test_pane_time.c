// The pane of the time at every size: nothing outside it, the bar as long as the shares say, ASCII where that is asked.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/screen_text.h"
#include "ui/pane_time.h"

enum { WIDEST = 70, TALLEST = 40 };

static const struct view_time example = {
    .stages = {[STAGE_EMBED] = {0.001, 1e5, 0},
               [STAGE_PROJECT] = {0.2, 8e9, 4e10},
               [STAGE_ATTEND] = {0.1, 1e9, 1e10},
               [STAGE_FEED] = {0.5, 2e10, 8e10},
               [STAGE_LOGITS] = {0.1, 3e9, 6e9},
               [STAGE_SAMPLE] = {0.06, 0, 0}},
    .decode = {0.8, 3e10, 3e10},
    .prefill = {0.2, 2e9, 1.06e11},
    .most_bytes = 5e10,
    .most_operations = 9e11,
    .cache_share = 1.25,
    .busy = true,
};

static void draw(struct canvas *c, const struct view_time *t, struct rect box, bool colours) {
    const struct screen_view view = {.time = t};
    struct view_frame *f = calloc(1, sizeof *f);
    f->canvas = c;
    f->view = &view;
    f->without_colours = !colours;
    canvas_clear(c);
    pane_time.draw(f, box, NULL);
    free(f);
}

static bool blank(const struct cell *c) { return c->codes[0] == ' ' && c->width == 1; }

static void test_every_size_stays_inside(void **state) {
    (void)state;
    struct view_time nothing = {0}, unmeasured = example, odd = example;
    unmeasured.most_bytes = unmeasured.most_operations = 0;
    odd.decode = (struct stage_work){1e-9, 1e15, 1}; // far outside of the plot
    odd.prefill = (struct stage_work){1e9, 1, 1e18};
    const struct view_time *const times[] = {&example, &nothing, &unmeasured, &odd, NULL};
    struct canvas c;
    canvas_open(&c, WIDEST + 4, TALLEST + 4);
    for (int height = 3; height <= TALLEST; height++)
        for (int width = 3; width <= WIDEST; width++) {
            struct rect box = {2, 2, width, height};
            c.ascii = width % 2;
            draw(&c, times[(width + height) % 5], box, height % 2);
            for (int y = 0; y < c.height; y++)
                for (int x = 0; x < c.width; x++) {
                    const struct cell *at = &c.cells[y * c.width + x];
                    bool inside = x >= 2 && x < 2 + width && y >= 2 && y < 2 + height;
                    assert_true(inside || blank(at));
                    if (c.ascii) assert_true(at->codes[0] >= ' ' && at->codes[0] < 0x7f);
                }
        }
    canvas_close(&c);
}

static void test_the_bar_shows_the_shares(void **state) {
    (void)state;
    struct canvas c;
    canvas_open(&c, 54, 3);
    c.ascii = true;
    draw(&c, &example, (struct rect){0, 0, 54, 3}, true); // 50 columns inside
    char *text = canvas_as_text(&c);
    assert_non_null(strstr(text, " ppppppppppaaaaaffffffffffffffffffffffffflllllsssoo "));
    free(text);
    canvas_close(&c);
}

static void test_which_limit_is_nearer(void **state) {
    (void)state;
    enum time_limit limit;
    struct stage_work reads = {1, 4e10, 9e10}, computes = {0.5, 1e9, 4.05e11}, neither = {0};
    assert_true(fabs(time_limit_share(&example, &reads, &limit) - 0.8) < 1e-9 && limit == LIMIT_MEMORY);
    assert_true(fabs(time_limit_share(&example, &computes, &limit) - 0.9) < 1e-9 && limit == LIMIT_COMPUTE);
    assert_true(time_limit_share(&example, &neither, &limit) == 0);
}

// A share is never more than all of it: what is beyond is from the caches, or the limit was measured in a bad minute.
static void test_no_share_is_more_than_all(void **state) {
    (void)state;
    enum time_limit limit;
    struct view_time unknown = example, cached = example;
    unknown.cache_share = 1, cached.cache_share = 0;
    struct stage_work faster = {1, 6e10, 0}, far_faster = {1, 8.25e10, 0}, computes = {1, 1e9, 2e12},
                      slow = {1, 1e10, 0};
    assert_true(time_limit_share(&example, &faster, &limit) == 1 && limit == LIMIT_MEMORY);
    assert_true(time_limit_share(&example, &far_faster, &limit) == 0 && limit == LIMIT_CACHE);
    assert_true(time_limit_share(&example, &computes, &limit) == 1 && limit == LIMIT_COMPUTE);
    assert_true(time_limit_share(&unknown, &faster, &limit) == 0 && limit == LIMIT_CACHE);
    assert_true(time_limit_share(&cached, &slow, &limit) == 0 && limit == LIMIT_CACHE);
}

static char *drawn(int width, int height, const struct view_time *t) {
    struct canvas c;
    canvas_open(&c, width, height);
    draw(&c, t, (struct rect){0, 0, width, height}, true);
    char *text = canvas_as_text(&c);
    canvas_close(&c);
    return text;
}

// What a pane says at a size, and what it leaves out.
static void test_what_goes_first(void **state) {
    (void)state;
    static const struct {
        int width, height;
        const char *says, *leaves_out;
    } cases[] = {
        {48, 3, "█", "%"},
        {48, 4, "█feed 50%", "GB/s"},
        {48, 5, "memory  32.0 of 50.0 GB/s", "compute"},
        {48, 6, "compute 0.14 of 0.90 TOP/s", "limit"},
        {48, 12, "█ sample", "roof"},
        {48, 12, "80% memory", "by operations"},
        {48, 20, "operations a second, by operations a byte", "went"},
        {48, 20, "● decode  75%", "nothing"},
        {34, 12, "limit", "TOP/s  limit"},
        {24, 12, "█ feed", "limit"},
        {24, 6, "█feed 50", "GB/s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = drawn(cases[i].width, cases[i].height, &example);
        if (!strstr(text, cases[i].says)) fail_msg("case %zu does not say %s:\n%s", i, cases[i].says, text);
        if (strstr(text, cases[i].leaves_out)) fail_msg("case %zu says %s:\n%s", i, cases[i].leaves_out, text);
        free(text);
    }
}

static void test_over_or_not_begun(void **state) {
    (void)state;
    struct view_time over = example, before = {.most_bytes = 5e10, .most_operations = 9e11};
    over.busy = false;
    char *text = drawn(48, 12, &over);
    assert_non_null(strstr(text, "where the time went"));
    free(text);
    text = drawn(48, 12, &before);
    assert_non_null(strstr(text, "where the time goes"));
    assert_non_null(strstr(text, "memory  - of 50.0 GB/s"));
    assert_null(strstr(text, "nan"));
    free(text);
}

// More than memory gives comes from the caches.
static void test_caches_are_named(void **state) {
    (void)state;
    struct view_time small = example;
    small.most_bytes = 1e10;
    char *text = drawn(48, 20, &small);
    assert_non_null(strstr(text, "cache   32.0 GB/s  "));
    assert_non_null(strstr(text, "0.20  cache")); // in the table
    assert_non_null(strstr(text, "● decode cache"));
    assert_null(strstr(text, "32.0 of"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_stays_inside), cmocka_unit_test(test_the_bar_shows_the_shares),
        cmocka_unit_test(test_which_limit_is_nearer),   cmocka_unit_test(test_no_share_is_more_than_all),
        cmocka_unit_test(test_what_goes_first),         cmocka_unit_test(test_over_or_not_begun),
        cmocka_unit_test(test_caches_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
