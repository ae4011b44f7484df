// Block cursor: which block of the selected message is chosen, and the rows that it has in the message's layout.
#ifndef CONFAB_UI_BLOCK_CURSOR_H
#define CONFAB_UI_BLOCK_CURSOR_H

#include "ui/lines.h"
#include "ui/markdown.h"
#include "ui/panes.h"

#define BLOCK_LAST 1000000

// A zeroed struct stands on no block.
struct block_cursor {
    int at;           // from 1 on, which keys before the next draw may lead beyond the last; 0: none
    int count;        // of the message at the last draw; 0: not known
    bool moved;       // it is to come into sight
    int code;         // which block of code it is, from 1 on; 0: none
    int first, rows;  // of the layout; no rows: the message has no blocks
    uint64_t message; // that these are of, as it was then
    uint32_t revision;
    int width, height, placed; // height: of the pane
    struct markdown beginning; // of the message: how many rows it has says where a block begins
    struct flow flow;
};

void block_cursor_free(struct block_cursor *c);
void block_cursor_set(struct block_cursor *c, int at);
bool block_cursor_step(struct block_cursor *c, int step); // false: the message ends there
// Brings the cursor to a block that there is, and finds its rows in the layout.
void block_cursor_place(struct block_cursor *c, const struct view_message *m, const struct lines *layout, int width,
                        bool ascii);

#endif
