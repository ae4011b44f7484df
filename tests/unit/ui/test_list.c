// The list: however it is moved, the cursor stays on a row, what is in sight lies within, and the arrows tell the
// truth.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/xorshift.h"
#include "ui/list.h"

enum { WIDTH = 12, HEIGHT = 10 };

struct seen {
    int first, last, rows, chosen; // chosen: −1: none was
};

static void see(void *context, struct view_frame *f, struct rect line, int row, bool chosen) {
    struct seen *s = context;
    (void)f, (void)line;
    if (!s->rows++) s->first = row;
    s->last = row;
    if (chosen) s->chosen = row;
}

static bool symbol_at(const struct canvas *c, int x, int y, uint32_t code) {
    return c->cells[y * c->width + x].codes[0] == code;
}

// Draws it and checks what must hold of every list.
static struct seen draw(struct list *l, struct rect area) {
    struct canvas c;
    struct seen s = {.chosen = -1};
    canvas_open(&c, WIDTH, HEIGHT);
    struct view_frame f = {.canvas = &c};
    struct rect frame = {area.x - 1, area.y - 1, area.width + 2, area.height + 2};
    list_draw(l, &f, area, frame, see, &s);
    int most = l->count < area.height ? l->count : area.height;
    assert_int_equal(s.rows, most > 0 ? most : 0);
    bool above = s.rows && s.first > 0, below = s.rows && s.last < l->count - 1;
    assert_int_equal(symbol_at(&c, frame.x + frame.width - 2, frame.y, 0x25b2), above);
    assert_int_equal(symbol_at(&c, frame.x + frame.width - 2, frame.y + frame.height - 1, 0x25bc), below);
    if (!l->plain && s.rows) assert_true(s.chosen == l->chosen && s.first <= s.chosen && s.chosen <= s.last);
    if (l->plain) assert_int_equal(s.chosen, -1);
    canvas_close(&c);
    return s;
}

static void press(struct list *l, enum key_code code) {
    struct key k = {.code = code};
    assert_true(list_key(l, &k));
}

static void test_the_cursor_stays_in_sight(void **state) {
    (void)state;
    struct rect area = {1, 1, WIDTH - 2, 4};
    struct list l = {.count = 10};
    draw(&l, area);
    for (int i = 0; i < 20; i++) press(&l, KEY_DOWN), draw(&l, area);
    assert_int_equal(l.chosen, 9);
    press(&l, KEY_PAGE_UP);
    assert_int_equal(l.chosen, 6);
    l.count = 3;
    assert_int_equal(draw(&l, area).chosen, 2);
    l.count = 0;
    draw(&l, area);
    l.count = 1;
    assert_int_equal(draw(&l, area).chosen, 0);
}

static void test_a_list_without_cursor_scrolls(void **state) {
    (void)state;
    struct rect area = {1, 1, WIDTH - 2, 4};
    struct list l = {.count = 10, .plain = true};
    draw(&l, area);
    press(&l, KEY_END);
    assert_int_equal(draw(&l, area).last, 9);
    press(&l, KEY_UP);
    assert_int_equal(draw(&l, area).first, 5);
    list_show(&l, 2, area.height);
    assert_int_equal(draw(&l, area).first, 2);
    press(&l, KEY_HOME);
    assert_int_equal(draw(&l, area).first, 0);
    struct key control = {.code = KEY_CONTROL, .number = 'p'};
    assert_false(list_key(&l, &control));
}

static void test_any_moves_at_any_size(void **state) {
    (void)state;
    static const enum key_code codes[] = {KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN};
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        struct list l = {.count = (int)xorshift_below(&random, 15), .plain = round % 2};
        for (int i = 0; i < 20; i++) {
            if (xorshift_below(&random, 4) == 0) l.count = (int)xorshift_below(&random, 15);
            press(&l, codes[xorshift_below(&random, 4)]);
            list_move(&l, (int)xorshift_below(&random, 9) - 4);
            draw(&l, (struct rect){1, 1, WIDTH - 2, 1 + (int)xorshift_below(&random, HEIGHT - 2)});
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cursor_stays_in_sight),
        cmocka_unit_test(test_a_list_without_cursor_scrolls),
        cmocka_unit_test(test_any_moves_at_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
