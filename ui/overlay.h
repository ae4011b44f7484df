// Overlay: a box over the screen that lists the commands: the help (all of them, by group) and the palette (those that
// match what is typed, one chosen). Both are made from the commands table.
#ifndef CONFAB_UI_OVERLAY_H
#define CONFAB_UI_OVERLAY_H

#include "ui/line_edit.h"
#include "ui/view.h"

enum overlay_kind { OVERLAY_NONE, OVERLAY_HELP, OVERLAY_PALETTE };

// A zeroed struct overlay is closed.
struct overlay {
    enum overlay_kind kind;
    struct line_edit filter;
    int chosen; // of the matches
    int scroll;
    int height; // rows that the last draw had for the list
};

void overlay_open(struct overlay *o, enum overlay_kind kind);
// Every key but a command's own is the overlay's while it is open. Returns the command that was picked, or −1.
int overlay_key(struct overlay *o, const struct key *k);
void overlay_scroll(struct overlay *o, int rows);
// The command of row `row` of the list as it is now, −1: none.
int overlay_command(const struct overlay *o, int row);
void overlay_draw(struct overlay *o, struct view_frame *f, int *cursor_x, int *cursor_y);

#endif
