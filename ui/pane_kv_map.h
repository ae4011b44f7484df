// The map of pages, as others open and ask it.
#ifndef CONFAB_UI_PANE_KV_MAP_H
#define CONFAB_UI_PANE_KV_MAP_H

struct screen;

void kv_map_open(struct screen *s, int page); // with the cursor on it
int kv_map_chosen(const void *kept);          // with the cursor; −1: none yet

#endif
