#include "ui/kv_cells.h"

#include <string.h>

const struct page_look page_looks[PAGE_KINDS] = {
    [PAGE_FREE] = {ROLE_KV_FREE, "free", "·", '.'},       [PAGE_KEPT] = {ROLE_KV_KEPT, "kept", "░", 'o'},
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

int kv_legend_draw(struct view_frame *f, struct rect line) {
    static const enum page_kind shown[] = {PAGE_CURRENT, PAGE_OWNED, PAGE_SHARED, PAGE_KEPT};
    int x = line.x;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct page_look *look = &page_looks[shown[i]];
        int width = text_width(look->legend, strlen(look->legend));
        if (x + 1 + width > line.x + line.width) break;
        canvas_symbol(f->canvas, line, x, line.y, view_style(look->role), f->without_colours ? look->shape : "▇",
                      look->ascii);
        canvas_text(f->canvas, line, x + 1, line.y, view_style(ROLE_DIM), look->legend, strlen(look->legend));
        x += width + 2;
    }
    return x - line.x;
}
