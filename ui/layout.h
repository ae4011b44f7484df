// Layout: a pure function from the screen's size, the panes wanted and their sizes to rectangles. Nothing overlaps,
// nothing lies outside, and the composer is there at every size; so is the transcript, unless another pane is zoomed.
#ifndef CONFAB_UI_LAYOUT_H
#define CONFAB_UI_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/canvas.h"
#include "ui/pane_sizes.h"
#include "ui/panes.h"

struct layout_params {
    int width, height;
    uint32_t wanted; // bit p for enum pane_id p
    enum pane_arrangement arrangement;
    const struct pane_sizes *sizes; // NULL: none are given
    enum pane_id zoomed;            // alone above the message; PANE_CHAT: none is
    int composer_lines;             // that the message needs, at least 1
};

struct layout {
    struct rect panes[PANES_END]; // with borders; width 0: not shown (not wanted, or dropped for lack of room)
    struct rect transcript, rule, composer; // inside PANE_CHAT
    bool bare;                              // the transcript from its first column on
    bool above;                             // the panes stand in rows above the chat
    struct rect sampling;                   // the bottom line; height 0 when dropped
};

// The table of panes says at which side of the chat each lies, in the table's order. When room is short panes drop, the
// highest rank first. In a small window the chat has no border.
struct layout layout_make(const struct layout_params *p);
struct layout layout_read(int width, int height); // the transcript alone

// The panes shown where nobody has chosen: those with ample room.
uint32_t layout_default_panes(int width, int height, enum pane_arrangement arrangement);

// A border that can be moved: between two panes, or between panes and the chat.
struct layout_edge {
    enum pane_id before, after; // at its left and right, or above and below
    bool across;                // it stands upright, and is moved to the left and right
    int at;                     // the first column or row behind it
};
bool layout_edge_at(const struct layout *l, int x, int y, struct layout_edge *out);
// The one that sizes a pane: behind it if there is one, otherwise before it.
bool layout_edge_of(const struct layout *l, enum pane_id pane, bool across, struct layout_edge *out);
// Gives the panes, or the area, the sizes that they have with the edge at `to`.
void layout_edge_move(const struct layout *l, const struct layout_edge *edge, int to, struct pane_sizes *sizes);

#endif
