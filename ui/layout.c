#include "ui/layout.h"

#include "ui/clamp.h"

enum {
    CHAT_WIDTH = 40,    // of the chat beside other panes, at least
    READING_WIDTH = 80, // what the chat gets before the panes at its right get more than RIGHT_WIDTH_READING
    LEFT_WIDTH = 20,
    LEFT_WIDTH_MOST = 30,
    RIGHT_WIDTH = 30,
    RIGHT_WIDTH_READING = 32,
    RIGHT_WIDTH_MOST = 48,
    STACK_WIDTH = 24, // of all panes below each other
    STACK_WIDTH_MOST = 28,
    BORDER_WIDTH = 20, // below these the chat does without its border
    BORDER_HEIGHT = 7,
    SAMPLING_HEIGHT = 5, // of the screen; below it the sampling line goes
};

static uint32_t at_side(enum pane_side side) {
    uint32_t set = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) set |= (uint32_t)(panes[p].side == side) << p;
    return set;
}

static int column_height(uint32_t set) {
    int height = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) height += set >> p & 1 ? panes[p].rows : 0;
    return height;
}

static int larger(int a, int b) { return a > b ? a : b; }

// At the left and the right of the chat.
static bool beside_fits(uint32_t set, int width, int height) {
    uint32_t left = set & at_side(PANE_LEFT), right = set & at_side(PANE_RIGHT);
    int need = (left ? LEFT_WIDTH : 0) + (right ? RIGHT_WIDTH : 0);
    return !need || (need + CHAT_WIDTH <= width && larger(column_height(left), column_height(right)) <= height &&
                     height >= BORDER_HEIGHT);
}

// Where that is too wide: all of them in one column at the left.
static bool stack_fits(uint32_t set, int width, int height) {
    return set & at_side(PANE_LEFT) && set & at_side(PANE_RIGHT) && STACK_WIDTH + CHAT_WIDTH <= width &&
           column_height(set) <= height;
}

static void layout_column(struct layout *l, uint32_t set, struct rect column) {
    int spare = column.height - column_height(set), weights = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) weights += set >> p & 1 ? panes[p].weight : 0;
    for (int p = PANES_FIRST, y = column.y; p < PANES_END; p++) {
        if (!(set >> p & 1)) continue;
        int extra = spare * panes[p].weight / weights; // of what the panes from here on share
        spare -= extra;
        weights -= panes[p].weight;
        int height = panes[p].rows + extra;
        l->panes[p] = (struct rect){column.x, y, column.width, height};
        y += height;
    }
}

// 0: none is left.
static int first_to_drop(uint32_t set) {
    int found = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (set >> p & 1 && (!found || panes[p].rank > panes[found].rank)) found = p;
    return found;
}

static void layout_chat(struct layout *l, struct rect box, int composer_lines) {
    bool border = box.width >= BORDER_WIDTH && box.height >= BORDER_HEIGHT;
    struct rect in = border ? rect_inside(box) : box;
    l->panes[PANE_CHAT] = box;
    int rule = in.height >= 3;
    int composer = clamp(composer_lines, 1, in.height / 3 > 1 ? in.height / 3 : 1);
    int transcript = in.height - rule - composer;
    if (transcript < 0) transcript = 0;
    l->transcript = (struct rect){in.x, in.y, in.width, transcript};
    l->rule = (struct rect){in.x, in.y + transcript, in.width, rule};
    l->composer = (struct rect){in.x, in.y + transcript + rule, in.width, in.height - transcript - rule};
}

struct layout layout_make(int width, int height, uint32_t wanted, int composer_lines) {
    struct layout l = {0};
    if (width < 1 || height < 1) return l;
    int sampling = height >= SAMPLING_HEIGHT;
    int body = height - sampling;
    l.sampling = (struct rect){0, body, width, sampling};
    uint32_t set = wanted & PANES_BESIDE;
    for (int p; (p = first_to_drop(set)) && !beside_fits(set, width, body) && !stack_fits(set, width, body);)
        set &= ~(1u << p);
    int left = 0, right = 0;
    if (!beside_fits(set, width, body)) {
        left = clamp(width * 3 / 10, STACK_WIDTH, STACK_WIDTH_MOST);
        layout_column(&l, set, (struct rect){0, 0, left, body});
    } else {
        uint32_t at_left = set & at_side(PANE_LEFT), at_right = set & at_side(PANE_RIGHT);
        left = at_left ? clamp(width / 5, LEFT_WIDTH, LEFT_WIDTH_MOST) : 0;
        right = at_right ? clamp(width * 2 / 7, RIGHT_WIDTH, RIGHT_WIDTH_READING) : 0;
        const int spare = larger(width - left - right - READING_WIDTH, 0);
        if (at_right) right = clamp(right + spare * 2 / 5, RIGHT_WIDTH, RIGHT_WIDTH_MOST);
        layout_column(&l, at_left, (struct rect){0, 0, left, body});
        layout_column(&l, at_right, (struct rect){width - right, 0, right, body});
    }
    layout_chat(&l, (struct rect){left, 0, width - left - right, body}, composer_lines);
    return l;
}

struct layout layout_read(int width, int height) {
    const struct rect all = {0, 0, width, height};
    return (struct layout){.panes = {[PANE_CHAT] = all}, .transcript = all, .bare = true};
}

uint32_t layout_default_panes(int width, int height) {
    uint32_t set = 0;
    for (int p = PANES_FIRST; p < PANES_END; p++) set |= (uint32_t)!panes[p].unasked << p;
    for (int p = PANES_FIRST; p < PANES_END; p++)
        if (layout_make(width, height, set | 1u << p, 1).panes[p].height >= panes[p].unasked) set |= 1u << p;
    return set;
}
