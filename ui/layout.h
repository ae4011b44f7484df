// Layout: a pure function from the screen's size and the panes wanted to rectangles. Nothing overlaps, nothing lies
// outside, and the transcript and composer are there at every size from 40×10 up (below that they get what there is).
#ifndef CONFAB_UI_LAYOUT_H
#define CONFAB_UI_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/canvas.h"
#include "ui/panes.h"

struct layout {
    struct rect panes[PANES_END];   // with borders; width 0: not shown (not wanted, or dropped for lack of room)
    struct rect transcript, rule, composer; // inside PANE_CHAT
    bool bare;                    // the transcript from its first column on
    struct rect sampling;         // the bottom line; height 0 when dropped
};

// `wanted`: bit p for enum pane_id p. composer_lines: lines the message needs, at least 1.
// The table of panes says at which side of the chat each lies, from above in the table's order; where that is too wide
// all of them lie in one column at the left. When room is short panes drop, the highest rank first, then the borders,
// then the sampling line.
struct layout layout_make(int width, int height, uint32_t wanted, int composer_lines);
struct layout layout_read(int width, int height); // the transcript alone

// The panes shown where nobody has chosen: those with ample room.
uint32_t layout_default_panes(int width, int height);

#endif
