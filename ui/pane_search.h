// Search: the field to search the chat on the screen, in the message's place.
#ifndef CONFAB_UI_PANE_SEARCH_H
#define CONFAB_UI_PANE_SEARCH_H

struct screen;

void search_open(struct screen *s);

#endif
