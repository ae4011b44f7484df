// The layout at every size, with every set of panes, in every arrangement, with panes zoomed and of every size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ui/layout.h"

enum { WIDEST = 300, TALLEST = 100, SETS = 1 << PANES_END, ALL = SETS - 1 };

static struct layout make(int width, int height, uint32_t wanted, int lines) {
    return layout_make(
        &(struct layout_params){.width = width, .height = height, .wanted = wanted, .composer_lines = lines});
}

static bool inside(struct rect a, struct rect b) {
    return a.x >= b.x && a.y >= b.y && a.x + a.width <= b.x + b.width && a.y + a.height <= b.y + b.height;
}

static bool empty(struct rect r) { return r.width <= 0 || r.height <= 0; }

static bool overlap(struct rect a, struct rect b) {
    return !empty(a) && !empty(b) && a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height &&
           b.y < a.y + a.height;
}

static int area(struct rect r) { return empty(r) ? 0 : r.width * r.height; }

static void check(const struct layout_params *p) {
    const struct layout l = layout_make(p);
    const int width = p->width, height = p->height;
    struct rect screen = {0, 0, width, height}, pieces[PANES_END + 1];
    for (int i = 0; i < PANES_END; i++) pieces[i] = l.panes[i];
    pieces[PANES_END] = l.sampling;
    int covered = 0;
    for (int i = 0; i <= PANES_END; i++) {
        covered += area(pieces[i]);
        assert_true(pieces[i].width >= 0 && pieces[i].height >= 0);
        assert_true(empty(pieces[i]) || inside(pieces[i], screen));
        for (int k = 0; k < i; k++) assert_false(overlap(pieces[i], pieces[k]));
        const bool shown = pieces[i].width > 0, beside = shown && i != PANE_CHAT && i != PANES_END;
        assert_true(!beside || (p->wanted >> i & 1) || i == (int)p->zoomed); // nothing unasked
        if (beside) assert_true(pieces[i].height >= panes[i].rows && pieces[i].width >= 12);
    }
    assert_int_equal(covered, width * height); // and no hole
    struct rect chat = l.panes[PANE_CHAT];
    assert_true(inside(l.transcript, chat) && inside(l.rule, chat) && inside(l.composer, chat));
    assert_false(overlap(l.transcript, l.composer) || overlap(l.transcript, l.rule) || overlap(l.rule, l.composer));
    assert_true(l.composer.height >= 1 && l.composer.width >= 1);
    const bool zoomed = p->zoomed != PANE_CHAT && l.panes[p->zoomed].width == width;
    if (zoomed) return;
    if (width >= 40 && height >= 10)
        assert_true(l.transcript.height >= l.composer.height && l.rule.height == 1 && l.sampling.height == 1);
    if (height >= 2) assert_true(l.transcript.height >= 1);
}

// Every size is met by some sets, every set at some sizes.
static void check_sets(int width, int height, const struct pane_sizes *sizes, int every) {
    for (uint32_t wanted = (uint32_t)(width + height) % (uint32_t)every; wanted < SETS; wanted += (uint32_t)every)
        for (int arrangement = 0; arrangement < ARRANGE_COUNT; arrangement++)
            check(&(struct layout_params){.width = width,
                                          .height = height,
                                          .wanted = wanted,
                                          .arrangement = (enum pane_arrangement)arrangement,
                                          .sizes = sizes,
                                          .composer_lines = 1 + (int)wanted % 5});
}

static void test_every_size(void **state) {
    (void)state;
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++) check_sets(width, height, NULL, 7);
    check(&(struct layout_params){.width = 80, .height = 24, .wanted = ALL, .composer_lines = 1000});
    check(&(struct layout_params){.width = 80, .height = 24, .wanted = ALL, .composer_lines = -3});
    assert_int_equal(make(0, 0, ALL, 1).panes[PANE_CHAT].width, 0);
}

static void test_every_size_of_panes(void **state) {
    (void)state;
    srand(1);
    for (int height = 5; height <= TALLEST; height += 3)
        for (int width = 20; width <= WIDEST; width += 3) {
            struct pane_sizes sizes = {0};
            for (int id = 0; id < SIZE_COUNT; id++)
                sizes.of[id] = (struct pane_size){(int16_t)(rand() % 3 ? rand() % 320 : 0),
                                                  (int16_t)(rand() % 3 ? rand() % 110 : 0)};
            check_sets(width, height, &sizes, 5);
        }
}

static void test_every_zoom(void **state) {
    (void)state;
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++)
            for (int pane = PANE_CHAT; pane < PANES_END; pane++)
                check(&(struct layout_params){
                    .width = width, .height = height, .zoomed = (enum pane_id)pane, .composer_lines = 1 + pane % 3});
    const struct layout l =
        layout_make(&(struct layout_params){.width = 40, .height = 10, .zoomed = PANE_THROUGHPUT, .composer_lines = 1});
    assert_int_equal(l.panes[PANE_THROUGHPUT].width, 40);
    assert_int_equal(l.panes[PANE_THROUGHPUT].height, 7);
    assert_int_equal(l.rule.y, 7);
    assert_int_equal(l.composer.y, 8);
}

// A pane that drops when the screen shrinks leaves before those that are to stay longer.
static void test_panes_drop_in_order(void **state) {
    (void)state;
    for (int height = 1; height <= TALLEST; height++)
        for (int width = 1; width <= WIDEST; width++) {
            struct layout l = make(width, height, ALL, 1);
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

// Nobody's screen shows panes at the cost of reading: 80 columns of text where there are so many beside a column.
static void test_reading_comes_first(void **state) {
    (void)state;
    for (int height = 10; height <= TALLEST; height++)
        for (int width = 40; width <= WIDEST; width++) {
            const struct layout l = make(width, height, layout_default_panes(width, height, ARRANGE_AUTO), 1);
            const int text = l.transcript.width - 2, chats = l.panes[PANE_CHATS].width;
            if (width >= 112) assert_true(text >= 80 && (!chats || chats >= 28)); // titles can be read
            if (width >= 100) assert_true(text >= 68);
            if (width >= 64 && chats) assert_true(text >= 36);
        }
    assert_int_equal(make(120, 40, layout_default_panes(120, 40, ARRANGE_AUTO), 1).panes[PANE_CHATS].width, 36);
    assert_int_equal(make(160, 40, layout_default_panes(160, 40, ARRANGE_AUTO), 1).panes[PANE_CHATS].width, 32);
}

static void test_the_picture(void **state) {
    (void)state;
    const uint32_t shown = layout_default_panes(150, 22, ARRANGE_AUTO);
    struct layout l = make(150, 22, shown, 1);
    assert_int_equal(l.panes[PANE_CHATS].x, 0);
    assert_int_equal(l.panes[PANE_THROUGHPUT].x + l.panes[PANE_THROUGHPUT].width, 150);
    assert_int_equal(l.sampling.y, 21);
    for (int pane = PANE_THROUGHPUT; pane <= PANE_LATENCY; pane++) assert_true(l.panes[pane].height >= 6);
    assert_int_equal(l.composer.height, 1);
    assert_int_equal(make(150, 22, shown, 4).composer.height, 4);
    l = make(40, 10, ALL, 1);
    assert_int_equal(l.panes[PANE_CHAT].width, 40);
    assert_int_equal(l.transcript.width, 40); // without a border
    assert_int_equal(l.transcript.height, 7);
}

// The commonest size of all shows the engine too, and leaves the conversation its room.
static void test_a_column_at_80x24(void **state) {
    (void)state;
    const uint32_t shown = layout_default_panes(80, 24, ARRANGE_AUTO);
    struct layout l = make(80, 24, shown, 1);
    for (int pane = PANE_CHATS; pane <= PANE_LATENCY; pane++) {
        assert_int_equal(l.panes[pane].x, 0);
        assert_int_equal(l.panes[pane].width, 24);
    }
    assert_int_equal(l.panes[PANE_CHATS].height, 7);
    assert_int_equal(l.panes[PANE_CHAT].width, 56);
    assert_int_equal(make(80, 24, 1u << PANE_CHATS, 1).panes[PANE_CHATS].width, 20);
}

static void test_arrangements(void **state) {
    (void)state;
    const uint32_t shown = layout_default_panes(100, 24, ARRANGE_AUTO);
    struct layout_params p = {
        .width = 100, .height = 24, .wanted = shown, .arrangement = ARRANGE_WIDE, .composer_lines = 1};
    struct layout l = layout_make(&p);
    assert_true(l.panes[PANE_CHATS].x < l.panes[PANE_CHAT].x && l.panes[PANE_CHAT].x < l.panes[PANE_KV].x);
    p.arrangement = ARRANGE_TALL;
    l = layout_make(&p);
    assert_int_equal(l.panes[PANE_CHAT].width, 100);
    for (int pane = PANE_CHATS; pane <= PANE_LATENCY; pane++) {
        assert_int_equal(l.panes[pane].y, 0);
        assert_int_equal(l.panes[pane].width, 25);
    }
    p.width = 60, p.height = 50;
    l = layout_make(&p);
    assert_int_equal(l.panes[PANE_CHAT].width, 60);
    assert_int_equal(l.panes[PANE_KV].y, l.panes[PANE_CHATS].height); // in two rows
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
            uint32_t shown = layout_default_panes(width, height, ARRANGE_AUTO);
            assert_int_equal(shown & always, always);
            assert_int_equal(shown & never, 0);
            if (shown == always) continue;
            struct layout l = make(width, height, shown, 1);
            for (int p = PANES_FIRST; p < PANES_END; p++) {
                if (shown & ~always & 1u << p) assert_true(l.panes[p].height >= panes[p].unasked);
                if (always & 1u << p) assert_true(l.panes[p].height >= 6);
            }
        }
    const uint32_t time = 1u << PANE_TIME, all = always | time;
    assert_int_equal(layout_default_panes(80, 24, ARRANGE_AUTO), always);
    assert_int_equal(layout_default_panes(120, 40, ARRANGE_AUTO), always);
    assert_int_equal(layout_default_panes(120, 50, ARRANGE_AUTO), all);
    assert_int_equal(layout_default_panes(160, 40, ARRANGE_AUTO), all);
    assert_int_equal(layout_default_panes(160, 60, ARRANGE_TALL), always);
    assert_true(make(80, 24, all, 1).panes[PANE_TIME].height >= 3); // asked for, it finds room there too
}

// ---- borders that are moved ----

static struct layout_params moved = {.width = 160, .height = 50, .wanted = ALL, .composer_lines = 1};

// A column of panes has one width.
static bool moved_with(int pane, const struct layout_edge *edge) {
    return (edge->before == PANE_CHAT || edge->after == PANE_CHAT) &&
           panes[pane].side == panes[edge->before == PANE_CHAT ? edge->after : edge->before].side;
}

// From where it is to where it goes, and the two sides with it.
static void check_move(int x, int y, int to_x, int to_y) {
    struct pane_sizes sizes = {0};
    struct layout_edge edge;
    struct layout l = layout_make(&moved);
    const struct layout was = l;
    assert_true(layout_edge_at(&l, x, y, &edge));
    const int to = edge.across ? to_x : to_y;
    layout_edge_move(&l, &edge, to, &sizes);
    moved.sizes = &sizes;
    check(&moved);
    l = layout_make(&moved);
    const struct rect before = l.panes[edge.before], after = l.panes[edge.after];
    for (int p = PANES_FIRST; p < PANES_END; p++) { // nothing else moves to the side
        const bool shares = edge.across && (p == (int)edge.before || p == (int)edge.after || moved_with(p, &edge));
        if (!shares) assert_int_equal(l.panes[p].x, was.panes[p].x);
    }
    assert_int_equal(edge.across ? before.x + before.width : before.y + before.height, to);
    assert_int_equal(edge.across ? after.x : after.y, to);
    moved.sizes = NULL;
}

static void test_borders_move(void **state) {
    (void)state;
    for (int a = 0; a < ARRANGE_COUNT; a++) {
        moved.arrangement = (enum pane_arrangement)a;
        const struct layout l = layout_make(&moved);
        const struct rect chat = l.panes[PANE_CHAT], kv = l.panes[PANE_KV];
        if (a == ARRANGE_TALL) {
            check_move(5, chat.y - 1, 5, chat.y + 5);
            check_move(5, chat.y, 5, chat.y - 2);
            check_move(kv.x, kv.y + 1, kv.x + 4, kv.y + 1);
        } else {
            check_move(chat.x, 5, chat.x + 6, 5);
            check_move(chat.x - 1, 5, chat.x - 3, 5);
            check_move(chat.x + chat.width, 3, chat.x + chat.width - 9, 3);
            check_move(kv.x + 3, kv.y, kv.x + 3, kv.y + 1);
            check_move(kv.x + 3, kv.y + kv.height - 1, kv.x + 3, kv.y + kv.height + 1);
        }
    }
    moved.arrangement = ARRANGE_AUTO;
}

static void test_only_borders_can_be_moved(void **state) {
    (void)state;
    const struct layout l = layout_make(&moved);
    const struct rect chat = l.panes[PANE_CHAT];
    struct layout_edge edge;
    assert_false(layout_edge_at(&l, chat.x + 10, 10, &edge));
    assert_false(layout_edge_at(&l, 0, 0, &edge));
    assert_false(layout_edge_at(&l, chat.x, 49, &edge)); // the bottom line
    assert_false(layout_edge_of(&l, PANE_CHAT, false, &edge));
    assert_true(layout_edge_of(&l, PANE_CHAT, true, &edge) && edge.before == PANE_CHAT);
    assert_true(layout_edge_of(&l, PANE_LOG, false, &edge) && edge.after == PANE_LOG); // the lowest
}

static void test_panes_above_the_chat_grow_together(void **state) {
    (void)state;
    const struct layout l = layout_make(&(struct layout_params){
        .width = 60, .height = 60, .wanted = ALL, .arrangement = ARRANGE_TALL, .composer_lines = 1});
    for (int p = PANES_FIRST; p < PANES_END; p++) {
        struct layout_edge edge;
        struct pane_sizes sizes = {0};
        assert_true(layout_edge_of(&l, (enum pane_id)p, false, &edge) && edge.after == PANE_CHAT);
        layout_edge_move(&l, &edge, edge.at + 1, &sizes);
        assert_int_equal(sizes.of[SIZE_ABOVE].rows, l.panes[PANE_CHAT].y + 1);
    }
}

static void test_sizes_as_text(void **state) {
    (void)state;
    struct pane_sizes sizes = {0}, read;
    char text[PANE_SIZES_TEXT], again[PANE_SIZES_TEXT];
    const char *bad;
    size_t size;
    assert_string_equal(pane_sizes_format(&sizes, text), "");
    sizes.of[SIZE_LEFT].columns = 33, sizes.of[SIZE_ABOVE].rows = 12, sizes.of[PANE_KV] = (struct pane_size){40, 7};
    assert_string_equal(pane_sizes_format(&sizes, text), "kv=40x7 left=33x0 above=0x12");
    assert_true(pane_sizes_parse(&read, text, &bad, &size));
    assert_memory_equal(&read, &sizes, sizeof read);
    for (int id = PANES_FIRST; id < SIZE_COUNT; id++) sizes.of[id] = (struct pane_size){PANE_SIZE_MOST, PANE_SIZE_MOST};
    assert_true(pane_sizes_parse(&read, pane_sizes_format(&sizes, again), &bad, &size)); // the longest fits
    assert_memory_equal(&read, &sizes, sizeof read);
    static const char *const wrong[] = {"kv",        "kv=4",     "kv=4x",      "kv=4x5x",     "kv=-1x2",
                                        "kv=1001x0", "chat=3x3", "nobody=1x1", "kv=1x1 left", "KV=1x1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (pane_sizes_parse(&read, wrong[i], &bad, &size)) fail_msg("'%s' was taken for sizes", wrong[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_every_size_of_panes),
        cmocka_unit_test(test_every_zoom),
        cmocka_unit_test(test_panes_drop_in_order),
        cmocka_unit_test(test_ranks_and_presets_are_an_order),
        cmocka_unit_test(test_reading_comes_first),
        cmocka_unit_test(test_the_picture),
        cmocka_unit_test(test_a_column_at_80x24),
        cmocka_unit_test(test_arrangements),
        cmocka_unit_test(test_panes_nobody_chose),
        cmocka_unit_test(test_borders_move),
        cmocka_unit_test(test_only_borders_can_be_moved),
        cmocka_unit_test(test_panes_above_the_chat_grow_together),
        cmocka_unit_test(test_sizes_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
