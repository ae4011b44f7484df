// The pane with the requests of other programs, and what the list of chats shows of them.
#ifndef CONFAB_UI_PANE_CLIENTS_H
#define CONFAB_UI_PANE_CLIENTS_H

#include "ui/view.h"

void clients_open(struct screen *s, int row); // with this one chosen

int clients_count(const struct screen_view *v); // also of those that are not listed

void clients_draw_mark(struct view_frame *f, struct rect line, struct style style); // one column
struct style clients_style(const struct view_client *c);                            // by its state, on the ground
const char *clients_progress(const struct view_client *c, char out[VIEW_NUMBER]);   // "waits", "42%", "38/s"

#endif
