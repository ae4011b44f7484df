// What the list of chats shows of a chat, for the line that says it where there is no list.
#ifndef CONFAB_UI_PANE_CHATS_H
#define CONFAB_UI_PANE_CHATS_H

#include "ui/view.h"

// The mark of its state, one column.
void chats_draw_mark(struct view_frame *f, struct rect line, const struct view_chat *chat, struct style style);
struct style chats_mark_style(const struct view_chat *chat); // on the ground

#endif
