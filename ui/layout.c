#include "ui/layout.h"

#include <stdbool.h>

enum {
    CHAT_WIDTH = 40, // of the chat box beside others, at least
    CHATS_WIDTH = 20,
    CHATS_WIDTH_MOST = 30,
    FIGURES_WIDTH = 30,
    FIGURES_WIDTH_MOST = 48,
    STACK_WIDTH = 24, // of chats and figures below each other
    STACK_WIDTH_MOST = 28,
    BORDER_WIDTH = 20, // below these the chat does without its border
    BORDER_HEIGHT = 7,
    TIME_HEIGHT = 12, // of its box, to be shown unasked
    SAMPLING_HEIGHT = 5, // of the screen; below it the sampling line goes
};

// The boxes of a column, from above: least height, and share of what is left over.
static const struct {
    enum layout_box box;
    int least, weight;
} column_boxes[] = {{BOX_CHATS, 5, 12}, {BOX_THROUGHPUT, 5, 5}, {BOX_KV, 4, 4}, {BOX_LATENCY, 4, 4}, {BOX_TIME, 3, 16}};
enum { COLUMN_BOXES = sizeof column_boxes / sizeof *column_boxes };

static const enum layout_box drop_order[] = {BOX_TIME, BOX_LATENCY, BOX_KV, BOX_THROUGHPUT, BOX_CHATS};

#define CHATS   (1u << BOX_CHATS)
#define FIGURES (1u << BOX_THROUGHPUT | 1u << BOX_KV | 1u << BOX_LATENCY | 1u << BOX_TIME)

static int clamp(int n, int low, int high) { return n < low ? low : n > high ? high : n; }

static int column_height(uint32_t boxes) {
    int height = 0;
    for (int i = 0; i < COLUMN_BOXES; i++) height += boxes >> column_boxes[i].box & 1 ? column_boxes[i].least : 0;
    return height;
}

// Chats at the left and figures at the right of the chat.
static bool beside_fits(uint32_t boxes, int width, int height) {
    int need = (boxes & CHATS ? CHATS_WIDTH : 0) + (boxes & FIGURES ? FIGURES_WIDTH : 0);
    return !need || (need + CHAT_WIDTH <= width && column_height(boxes & FIGURES) <= height && height >= BORDER_HEIGHT);
}

// Where that is too wide: all of them in one column at the left.
static bool stack_fits(uint32_t boxes, int width, int height) {
    return boxes & CHATS && boxes & FIGURES && STACK_WIDTH + CHAT_WIDTH <= width && column_height(boxes) <= height;
}

static void layout_column(struct layout *l, uint32_t boxes, struct rect column) {
    int spare = column.height - column_height(boxes), weights = 0;
    for (int i = 0; i < COLUMN_BOXES; i++) weights += boxes >> column_boxes[i].box & 1 ? column_boxes[i].weight : 0;
    for (int i = 0, y = column.y; i < COLUMN_BOXES; i++) {
        if (!(boxes >> column_boxes[i].box & 1)) continue;
        int extra = spare * column_boxes[i].weight / weights; // of what the boxes from here on share
        spare -= extra;
        weights -= column_boxes[i].weight;
        int height = column_boxes[i].least + extra;
        l->boxes[column_boxes[i].box] = (struct rect){column.x, y, column.width, height};
        y += height;
    }
}

static void layout_chat(struct layout *l, struct rect box, int composer_lines) {
    bool border = box.width >= BORDER_WIDTH && box.height >= BORDER_HEIGHT;
    struct rect in = border ? rect_inside(box) : box;
    l->boxes[BOX_CHAT] = box;
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
    uint32_t boxes = wanted;
    for (unsigned i = 0; i < sizeof drop_order / sizeof *drop_order; i++)
        if (!beside_fits(boxes, width, body) && !stack_fits(boxes, width, body)) boxes &= ~(1u << drop_order[i]);
    int left = 0, right = 0;
    if (!beside_fits(boxes, width, body)) {
        left = clamp(width * 3 / 10, STACK_WIDTH, STACK_WIDTH_MOST);
        layout_column(&l, boxes, (struct rect){0, 0, left, body});
    } else {
        left = boxes & CHATS ? clamp(width / 5, CHATS_WIDTH, CHATS_WIDTH_MOST) : 0;
        right = boxes & FIGURES ? clamp(width * 2 / 7, FIGURES_WIDTH, FIGURES_WIDTH_MOST) : 0;
        layout_column(&l, boxes & CHATS, (struct rect){0, 0, left, body});
        layout_column(&l, boxes & FIGURES, (struct rect){width - right, 0, right, body});
    }
    layout_chat(&l, (struct rect){left, 0, width - left - right, body}, composer_lines);
    return l;
}

uint32_t layout_default_boxes(int width, int height) {
    const uint32_t all = CHATS | FIGURES;
    bool ample = layout_make(width, height, all, 1).boxes[BOX_TIME].height >= TIME_HEIGHT;
    return ample ? all : all & ~(1u << BOX_TIME);
}
