// Command list: rows of commands with their keys, as the help and the palette show them.
#ifndef CONFAB_UI_COMMAND_LIST_H
#define CONFAB_UI_COMMAND_LIST_H

#include "ui/view.h"

struct command_row {
    int command;       // −1: a heading or a blank
    const char *group; // NULL: a blank
};

#define COMMAND_GROUPS    8
#define COMMAND_ROWS_MOST (COMMAND_COUNT + 2 * COMMAND_GROUPS)

void command_row_draw(struct view_frame *f, struct rect line, const struct command_row *row, bool chosen);

#endif
