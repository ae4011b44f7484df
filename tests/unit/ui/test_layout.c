// The layout at every size from 1×1 to 260×80 and every set of panes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "ui/layout.h"

enum { WIDEST = 260, TALLEST = 80, SETS = 1 << PANES_END };

static bool inside(struct rect a, struct rect b) {
    return a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width && a.y + a.height <= b.y + b.height;
}

static bool empty(struct rect r) { return r.width <= 0 || r.height <= 0; }

static bool overlap(struct rect a, struct rect b) {
    return !empty(a) && !empty(b) && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
           b.y < a.y + a.height;
}

static int area(struct rect r) { return empty(r) ? 0 : r.width * r.height; }

static void check(int width, int height, uint32_t wanted, int lines) {
    struct layout l = layout_make(width, height, wanted, lines);
    struct rect screen = {0, 0, width, height}, pieces[PANES_END + 1];
    for (int i = 0; i < PANES_END; i++) pieces[i] = l.panes[i];
    pieces[PANES_END] = l.sampling;
    int covered = 0;
    for (int i = 0; i <= PANES_END; i++) {
        covered += area(pieces[i]);
        assert_true(pieces[i].width >= 0 && pieces[i].height >= 0);
        assert_true(empty(pieces[i]) || inside(pieces[i], screen));
        for (int k = 0; k < i; k++) assert_false(overlap(pieces[i], pieces[k]));
        bool shown = i == PANES_END || pieces[i].width > 0;
        assert_true(!shown || i == PANE_CHAT || i == PANES_END || (wanted >> i & 1)); // nothing unasked
    }
    assert_int_equal(covered, width * height); // and no hole
    struct rect chat = l.panes[PANE_CHAT];
    assert_true(inside(l.transcript, chat) && inside(l.rule, chat) && inside(l.composer, chat));
    assert_false(overlap(l.transcript, l.composer) || overlap(l.transcript, l.rule) || overlap(l.rule, l.composer));
    assert_true(l.composer.height >= 1 && l.composer.width >= 1);
    if (width >= 40 && height >= 10)
        assert_true(l.transcript.height >= l.composer.height && l.rule.height == 1 && l.sampling.height == 1);
    if (height >= 2) assert_true(l.transcript.height >= 1);
}

static void test_every_size(void **state) {
    (void)state;
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++)
            for (uint32_t wanted = 0; wanted < SETS; wanted++) check(width, height, wanted, 1 + (int)wanted % 5);
    check(80, 24, SETS - 1, 1000);
    check(80, 24, SETS - 1, -3);
    struct layout none = layout_make(0, 0, SETS - 1, 1);
    assert_int_equal(none.panes[PANE_CHAT].width, 0);
}

// A pane that drops when the screen shrinks leaves before those that are to stay longer.
static void test_panes_drop_in_order(void **state) {
    (void)state;
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++) {
            struct layout l = layout_make(width, height, SETS - 1, 1);
            for (int a = PANES_FIRST; a < PANES_END; a++)
                for (int b = PANES_FIRST; b < PANES_END; b++)
                    if (panes[a].rank > panes[b].rank && l.panes[a].width > 0) assert_true(l.panes[b].width > 0);
        }
}

static void test_ranks_and_presets_are_an_order(void **state) {
    (void)state;
    for (int a = PANES_FIRST; a < PANES_END; a++) {
        assert_true(panes[a].rows >= 3 && panes[a].weight > 0 && panes[a].presets > 0);
        for (int b = PANES_FIRST; b < a; b++) assert_int_not_equal(panes[a].rank, panes[b].rank);
    }
}

static void test_the_picture(void **state) {
    (void)state;
    const uint32_t shown = layout_default_panes(112, 22);
    struct layout l = layout_make(112, 22, shown, 1);
    assert_int_equal(l.panes[PANE_CHATS].width, 22);
    assert_int_equal(l.panes[PANE_THROUGHPUT].width, 32);
    assert_int_equal(l.panes[PANE_CHAT].width, 58);
    assert_int_equal(l.sampling.y, 21);
    assert_int_equal(layout_make(140, 22, shown, 1).panes[PANE_CHAT].width, 80);
    for (int pane = PANE_THROUGHPUT; pane <= PANE_LATENCY; pane++) assert_true(l.panes[pane].height >= 6);
    assert_int_equal(l.composer.height, 1);
    assert_int_equal(layout_make(112, 22, shown, 4).composer.height, 4);
    l = layout_make(40, 10, SETS - 1, 1);
    assert_int_equal(l.panes[PANE_CHAT].width, 40);
    assert_int_equal(l.transcript.height, 5);
}

// Unasked, a pane that wants ample room is there in a tall terminal and takes no other pane its room.
static void test_panes_nobody_chose(void **state) {
    (void)state;
    uint32_t always = 0, never = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        always |= (uint32_t)(panes[p].unasked == 0) << p;
        never |= (uint32_t)(panes[p].unasked == PANE_NEVER) << p;
    }
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++) {
            uint32_t shown = layout_default_panes(width, height);
            assert_int_equal(shown & always, always);
            assert_int_equal(shown & never, 0);
            if (shown == always) continue;
            struct layout l = layout_make(width, height, shown, 1);
            for (int p = PANES_FIRST; p < PANES_END; p++) {
                if (shown & ~always & 1u << p) assert_true(l.panes[p].height >= panes[p].unasked);
                if (always & 1u << p) assert_true(l.panes[p].height >= 6);
            }
        }
    const uint32_t time = 1u << PANE_TIME, all = always | time;
    assert_int_equal(layout_default_panes(80, 24), always);
    assert_int_equal(layout_default_panes(112, 26), always);
    assert_int_equal(layout_default_panes(120, 40), all);
    assert_true(layout_make(80, 24, all, 1).panes[PANE_TIME].height >= 3); // asked for, it finds room there too
}

// The commonest size of all shows the engine too, and leaves the conversation its room.
static void test_a_column_at_80x24(void **state) {
    (void)state;
    const uint32_t shown = layout_default_panes(80, 24);
    struct layout l = layout_make(80, 24, shown, 1);
    for (int pane = PANE_CHATS; pane <= PANE_LATENCY; pane++) {
        assert_int_equal(l.panes[pane].x, 0);
        assert_int_equal(l.panes[pane].width, 24);
    }
    assert_int_equal(l.panes[PANE_CHATS].height, 7);
    assert_int_equal(l.panes[PANE_CHAT].width, 56);
    assert_int_equal(layout_make(90, 24, shown, 1).panes[PANE_CHATS].width, 20); // side by side again
    assert_int_equal(layout_make(80, 24, 1u << PANE_CHATS, 1).panes[PANE_CHATS].width, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_panes_drop_in_order),
        cmocka_unit_test(test_ranks_and_presets_are_an_order),
        cmocka_unit_test(test_the_picture),
        cmocka_unit_test(test_a_column_at_80x24),
        cmocka_unit_test(test_panes_nobody_chose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
