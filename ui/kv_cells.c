#include "ui/kv_cells.h"

#include <string.h>

const struct page_look page_looks[PAGE_KINDS] = {
    [PAGE_FREE] = {ROLE_KV_FREE, "free", "·", '.'},       [PAGE_KEPT] = {ROLE_KV_KEPT, "cached", "░", 'o'},
    [PAGE_OWNED] = {ROLE_KV_OWNED, "other", "▒", 'c'},    [PAGE_CURRENT] = {ROLE_KV_CURRENT, "this", "█", 'C'},
    [PAGE_SHARED] = {ROLE_KV_SHARED, "shared", "▓", 'S'},
};

enum page_kind kv_page_kind(const struct page_metrics *p, uint64_t current) {
    if (p->references == 0) return PAGE_FREE;
    if (p->kept) return PAGE_KEPT;
    if (p->references > 1) return PAGE_SHARED;
    return p->conversation == current ? PAGE_CURRENT : PAGE_OWNED;
}

uint8_t kv_owner_shade(uint64_t conversation) { return (uint8_t)(1 + conversation * 37 % THEME_STEPS); }

void kv_cell_draw(struct view_frame *f, struct rect clip, int x, int y, struct page_cell cell) {
    static const char *const levels[8] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "▇"};
    const struct page_look *look = &page_looks[cell.kind];
    struct style style = view_style(look->role);
    style.shade = cell.shade;
    if (cell.chosen) style.attributes = CELL_REVERSE;
    int level = (int)(cell.share * 8);
    level = level < 0 ? 0 : level > 7 ? 7 : level;
    bool shape = cell.kind == PAGE_FREE || f->without_colours;
    canvas_symbol(f->canvas, clip, x, y, style, shape ? look->shape : levels[level], look->ascii);
}

// A letter would run into its word; where room is short it does, and blocks stand close.
int kv_legend_draw(struct view_frame *f, struct rect line) {
    static const enum page_kind shown[] = {PAGE_CURRENT, PAGE_OWNED, PAGE_SHARED, PAGE_KEPT};
    enum { SHOWN = sizeof shown / sizeof *shown };
    const bool ascii = f->canvas->ascii;
    int words = 0, x = line.x;
    for (int i = 0; i < SHOWN; i++)
        words += text_width(page_looks[shown[i]].legend, strlen(page_looks[shown[i]].legend));
    const bool roomy = line.width >= words + SHOWN * (1 + ascii) + SHOWN - 1;
    const int sign = 1 + (ascii && roomy), gap = ascii || roomy;
    for (int i = 0; i < SHOWN; i++) {
        const struct page_look *look = &page_looks[shown[i]];
        const int width = sign + text_width(look->legend, strlen(look->legend));
        if (x + width > line.x + line.width) break;
        canvas_symbol(f->canvas, line, x, line.y, view_style(look->role), f->without_colours ? look->shape : "▇",
                      look->ascii);
        canvas_text(f->canvas, line, x + sign, line.y, view_style(ROLE_DIM), look->legend, strlen(look->legend));
        x += width + gap;
    }
    return x - line.x;
}
