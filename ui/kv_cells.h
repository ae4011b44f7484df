// Cells of the KV cache: what a page is to the chat on the screen, as the small map and the large one draw it.
#ifndef CONFAB_UI_KV_CELLS_H
#define CONFAB_UI_KV_CELLS_H

#include "ui/view.h"

enum page_kind { PAGE_FREE, PAGE_KEPT, PAGE_OWNED, PAGE_CURRENT, PAGE_SHARED, PAGE_KINDS };

struct page_look {
    enum theme_role role;
    const char *legend, *shape; // shape: where colours cannot tell them apart
    char ascii;
};
extern const struct page_look page_looks[PAGE_KINDS];

struct page_cell {
    enum page_kind kind;
    double share;  // filled, 0–1
    uint8_t shade; // tells the other conversations apart
    bool chosen;
};

enum page_kind kv_page_kind(const struct page_metrics *p, uint64_t current); // current: id of the chat on the screen
uint8_t kv_owner_shade(uint64_t conversation);
void kv_cell_draw(struct view_frame *f, struct rect clip, int x, int y, struct page_cell cell);
// "▇this ▇other ▇shared ▇cached", as far as it fits. Returns the columns advanced.
int kv_legend_draw(struct view_frame *f, struct rect line);

#endif
