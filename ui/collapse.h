// Collapse: messages and blocks of code of which only the first rows are shown, and a line that says how many follow.
// It knows rows of a layout; those that are in sight are counted without what is hidden.
#ifndef CONFAB_UI_COLLAPSE_H
#define CONFAB_UI_COLLAPSE_H

#include "ui/lines.h"
#include "ui/panes.h"

enum {
    COLLAPSE_PARTS = 16, // of a message; further blocks of code stay open
    COLLAPSE_LONG = 25,  // rows from which on a block of code has a mark to collapse it
    COLLAPSE_HEAD = 5,   // rows that stay of a block
};

// A zeroed struct has nothing collapsed.
struct collapse {
    struct collapse_toggle {
        uint64_t message;
        int code; // which block of code, from 1 on; 0: the whole message
    } * toggled;  // otherwise than by length
    int n_toggled;
    uint32_t version; // changes with them
    int longest;      // what has more rows is collapsed by itself when it is complete; 0: nothing is
};

// What can be collapsed of a message; when closed, rows [hidden, end) of its layout are one line.
struct collapse_part {
    int first, hidden, end, code;
    bool closed;
};
struct collapse_parts {
    struct collapse_part at[COLLAPSE_PARTS];
    int n;
};

void collapse_free(struct collapse *c);
void collapse_toggle(struct collapse *c, uint64_t message, int code);
void collapse_find(const struct collapse *c, const struct view_message *m, const struct lines *l,
                   struct collapse_parts *out);
int collapse_rows(const struct collapse_parts *p, int rows); // that are in sight, of all rows
// The row of the layout that is in sight as `row`; *part: the closed one whose line it is, −1: none.
int collapse_row(const struct collapse_parts *p, int row, int *part);
int collapse_in_sight(const struct collapse_parts *p, int row); // the reverse: hidden ones are where their line is

int collapse_hides(const struct collapse_parts *p, int row); // the part that hides this row of the layout; −1: none

// The rows [first, end) of the next block of code in a layout, from a row on; end 0: there is none.
struct code_rows {
    int first, end;
};
struct code_rows collapse_code(const struct lines *l, int from);

#endif
