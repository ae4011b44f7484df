// Layout: a pure function from the screen's size and the boxes wanted to rectangles. Nothing overlaps, nothing lies
// outside, and the transcript and composer are there at every size from 40×10 up (below that they get what there is).
#ifndef CONFAB_UI_LAYOUT_H
#define CONFAB_UI_LAYOUT_H

#include <stdint.h>

#include "ui/canvas.h"

// BOX_CHAT has no digit; the others have 1–5.
enum layout_box { BOX_CHAT, BOX_CHATS, BOX_THROUGHPUT, BOX_KV, BOX_LATENCY, BOX_TIME, BOX_COUNT };

struct layout {
    struct rect boxes[BOX_COUNT]; // with borders; width 0: not shown (not wanted, or dropped for lack of room)
    struct rect transcript, rule, composer; // inside BOX_CHAT
    struct rect sampling;         // the bottom line; height 0 when dropped
};

// `wanted`: bit b for enum layout_box b. composer_lines: lines the message needs, at least 1.
// Chats lie at the left, figures at the right of the chat; where that is too wide all of them lie in one column at the left.
// When room is short boxes drop in this order: time, latency, KV, throughput, chats, then the borders, then the sampling line.
struct layout layout_make(int width, int height, uint32_t wanted, int composer_lines);

// The boxes shown where nobody has chosen: all of them, but the time only where all have ample room.
uint32_t layout_default_boxes(int width, int height);

#endif
