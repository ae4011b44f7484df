#include "ui/layout.h"

#include <stdbool.h>

enum {
    CHAT_WIDTH = 40, // of the chat box beside others, at least
    CHATS_WIDTH = 20,
    CHATS_WIDTH_MOST = 30,
    FIGURES_WIDTH = 30,
    FIGURES_WIDTH_MOST = 48,
    BORDER_WIDTH = 20, // below these the chat does without its border
    BORDER_HEIGHT = 7,
    SAMPLING_HEIGHT = 5, // of the screen; below it the sampling line goes
};

// The boxes of the right column, from above: least height, and share of what is left over.
static const struct {
    enum layout_box box;
    int least, weight;
} figures[] = {{BOX_THROUGHPUT, 5, 5}, {BOX_KV, 4, 4}, {BOX_LATENCY, 5, 4}};
enum { FIGURES = sizeof figures / sizeof *figures };

static const enum layout_box drop_order[] = {BOX_LATENCY, BOX_KV, BOX_THROUGHPUT, BOX_CHATS};

static int clamp(int n, int low, int high) {
    return n < low ? low : n > high ? high : n;
}

static bool shown(uint32_t boxes, enum layout_box b) {
    return boxes >> b & 1;
}

static int figures_height(uint32_t boxes) {
    int height = 0;
    for (int i = 0; i < FIGURES; i++) height += shown(boxes, figures[i].box) ? figures[i].least : 0;
    return height;
}

static bool boxes_fit(uint32_t boxes, int width, int height) {
    int column = figures_height(boxes);
    int need = (shown(boxes, BOX_CHATS) ? CHATS_WIDTH : 0) + (column ? FIGURES_WIDTH : 0);
    if (!need) return true;
    return need + CHAT_WIDTH <= width && column <= height && height >= BORDER_HEIGHT;
}

static void layout_figures(struct layout *l, uint32_t boxes, struct rect column) {
    int spare = column.height - figures_height(boxes), weights = 0;
    for (int i = 0; i < FIGURES; i++) weights += shown(boxes, figures[i].box) ? figures[i].weight : 0;
    for (int i = 0, y = column.y; i < FIGURES; i++) {
        if (!shown(boxes, figures[i].box)) continue;
        int extra = spare * figures[i].weight / weights; // of what the boxes from here on share
        spare -= extra;
        weights -= figures[i].weight;
        int height = figures[i].least + extra;
        l->boxes[figures[i].box] = (struct rect){column.x, y, column.width, height};
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
    for (unsigned i = 0; i < sizeof drop_order / sizeof *drop_order && !boxes_fit(boxes, width, body); i++)
        boxes &= ~(1u << drop_order[i]);
    int chats = shown(boxes, BOX_CHATS) ? clamp(width / 5, CHATS_WIDTH, CHATS_WIDTH_MOST) : 0;
    int column = figures_height(boxes) ? clamp(width * 2 / 7, FIGURES_WIDTH, FIGURES_WIDTH_MOST) : 0;
    if (chats) l.boxes[BOX_CHATS] = (struct rect){0, 0, chats, body};
    if (column) layout_figures(&l, boxes, (struct rect){width - column, 0, column, body});
    layout_chat(&l, (struct rect){chats, 0, width - chats - column, body}, composer_lines);
    return l;
}
