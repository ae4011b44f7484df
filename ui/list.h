// List: rows of which some are in sight, in most lists one of them chosen. It knows how many there are and where it
// stands; what a row says is its owner's.
#ifndef CONFAB_UI_LIST_H
#define CONFAB_UI_LIST_H

#include "ui/terminal.h"
#include "ui/view.h"

// A zeroed struct list stands at its first row.
struct list {
    int count;  // of the rows; the owner keeps it up to date
    int chosen; // the row with the cursor
    bool plain; // it has no cursor: keys scroll it
    int scroll; // the first row in sight
    int height; // rows that the last draw had room for
};

// Up and down, by pages; with a cursor Ctrl+P and Ctrl+N too, without one to the ends. False: the key means nothing to
// a list.
bool list_key(struct list *l, const struct key *k);
void list_move(struct list *l, int rows);            // the cursor, or what is in sight
void list_show(struct list *l, int row, int height); // brings a row into sight

typedef void list_row(void *context, struct view_frame *f, struct rect line, int row, bool chosen);
// Arrows at the right of `frame` say where there is more.
void list_draw(struct list *l, struct view_frame *f, struct rect area, struct rect frame, list_row *row, void *context);

#endif
