// Keys of messages: what can be done with the message that is selected in the transcript, or with a block of it, chosen
// in the tree or the context, or compared, a key each, and the lines that say so; and likewise with the pane in focus.
#ifndef CONFAB_UI_MESSAGE_KEYS_H
#define CONFAB_UI_MESSAGE_KEYS_H

#include "ui/commands.h"
#include "ui/terminal.h"
#include "ui/view.h"

enum message_place {
    MESSAGE_SELECTED = 1,
    MESSAGE_IN_TREE = 2,
    MESSAGE_IN_CONTEXT = 4,
    MESSAGE_COMPARED = 8,
    MESSAGE_BLOCK = 16,
    PANE_IN_FOCUS = 32
};

int message_keys_command(const struct key *k, enum message_place place); // −1: the key means nothing here
// Rows that it takes to name all of them, `most` at most.
int message_keys_rows(int width, bool ascii, enum message_place place, int most);
// Each with its label, which can be clicked (HIT_CHOICE: the command), from the first on as far as there is room.
void message_keys_draw(struct view_frame *f, struct rect area, enum message_place place);

#endif
