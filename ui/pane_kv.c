// The KV cache: metrics, and a map in which every page (or every few pages, when there are more than cells) is a cell
// coloured by whom it belongs to and as high as it is filled.
#include <stdio.h>
#include <string.h>

#include "ui/kv_cells.h"
#include "ui/pane.h"
#include "ui/pane_kv_map.h"

#define MORE_COLUMNS 7 // of "+16384" and a blank before it

struct kept {
    int each, width; // pages a cell, and cells a row of the map as it was last drawn
};

// Several pages: of the kind that most of their tokens are of.
static struct page_cell map_cell(const struct engine_metrics *g, int first, int last, uint64_t current) {
    int tokens[PAGE_KINDS] = {0}, filled = 0;
    struct page_cell cell = {.kind = PAGE_FREE};
    uint64_t owner = 0;
    for (int i = first; i < last; i++) {
        const struct page_metrics *p = &g->pages[i];
        enum page_kind kind = kv_page_kind(p, current);
        if (kind == PAGE_FREE) continue;
        tokens[kind] += p->filled ? p->filled : 1;
        filled += p->filled;
        if (kind == PAGE_OWNED) owner = p->conversation;
    }
    for (int k = PAGE_KEPT; k < PAGE_KINDS; k++)
        if (tokens[k] > 0 && (cell.kind == PAGE_FREE || tokens[k] > tokens[cell.kind])) cell.kind = (enum page_kind)k;
    int room = (last - first) * g->page_tokens;
    cell.share = room > 0 ? (double)filled / room : 0;
    if (cell.kind == PAGE_OWNED) cell.shade = kv_owner_shade(owner);
    return cell;
}

// A large cache that is nearly empty would be a cell or two: then there are as few pages a cell as leave half of the
// map free, and the free pages behind it are a number.
static void draw_map(struct view_frame *f, struct rect r, const struct engine_metrics *g, uint64_t current,
                     struct kept *kept) {
    int cells = r.width * r.height, pages = g->n_pages < METRICS_MAX_PAGES ? g->n_pages : METRICS_MAX_PAGES;
    if (r.width <= 0 || cells <= 0 || pages <= 0) return;
    int each = (pages + cells - 1) / cells, used = pages;
    while (used > 0 && !g->pages[used - 1].references) used--;
    while (each > 1 && cells >= 2 * MORE_COLUMNS && used <= cells / 2 * (each / 2)) each /= 2;
    bool all = each * cells >= pages;
    *kept = (struct kept){each, r.width};
    frame_hit(f, r, HIT_ROW, 0);
    int shown = all ? pages : (cells - MORE_COLUMNS) * each;
    for (int i = 0; i * each < shown; i++) {
        int first = i * each, last = first + each < shown ? first + each : shown;
        kv_cell_draw(f, r, r.x + i % r.width, r.y + i / r.width, map_cell(g, first, last, current));
    }
    char more[MORE_COLUMNS];
    int width = snprintf(more, sizeof more, "+%d", pages - shown);
    if (!all)
        canvas_text(f->canvas, r, r.x + r.width - width, r.y + r.height - 1, view_style(ROLE_DIM), more, (size_t)width);
}

// The words that explain a figure go first where room is short.
static void metrics_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char shared[VIEW_NUMBER], used[VIEW_NUMBER], all[VIEW_NUMBER];
    char share[VIEW_NUMBER] = "-";
    int percent = g->n_pages > 0 ? (int)(100LL * g->pages_used / g->n_pages) : 0;
    if (metric_known(g->n_pages) && metric_known(g->pages_used)) snprintf(share, sizeof share, "%d%%", percent);
    view_number(g->pages_shared, shared);
    bool words = r.width >= 24 + (int)(strlen(view_number(g->pages_used, used)) + strlen(view_number(g->n_pages, all)) +
                                       strlen(shared));
    int x = r.x + canvas_print(f->canvas, r, r.x, y, view_style(ROLE_STRONG), "%s/%s", used, all);
    x += canvas_print(f->canvas, r, x, y, view_style(ROLE_DIM), words ? " pages " : " ");
    x += canvas_print(f->canvas, r, x, y, view_style(percent >= 90 ? ROLE_WARN : ROLE_TEXT), "%s", share);
    view_figure_right(f, r, x + 1, y, "shared", g->pages_shared > 0 ? ROLE_KV_SHARED : ROLE_TEXT, shared);
}

static void cached_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char text[VIEW_NUMBER], cached[VIEW_NUMBER];
    snprintf(text, sizeof text, r.width >= 38 && metric_known(g->pages_kept) ? "%s for reuse" : "%s",
             view_number(g->pages_kept, cached));
    int x = r.x + view_figure(f, r, r.x, y, "cached", ROLE_TEXT, text);
    view_figure_right(f, r, x + 2, y, "in all", ROLE_TEXT, view_bytes((double)g->kv_bytes, text));
}

static void disk_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char bytes[VIEW_NUMBER], budget[VIEW_NUMBER], text[2 * VIEW_NUMBER + 8];
    snprintf(text, sizeof text, "%s of %s", view_bytes((double)g->disk_bytes, bytes),
             view_bytes((double)g->disk_budget, budget));
    view_figure(f, r, r.x, y, "on disk", ROLE_TEXT, text);
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    const struct screen_view *v = f->view;
    const struct engine_metrics *g = v->metrics;
    struct rect r = view_pane(f, box, PANE_KV, NULL);
    if (!g) return;
    uint64_t current = view_chat_id(v);
    int y = r.y;
    metrics_line(f, r, y++, g);
    if (r.height >= 4) cached_line(f, r, y++, g);
    if (r.height >= 7 && g->disk_bytes > 0) disk_line(f, r, y++, g);
    bool legend = r.height >= 6;
    draw_map(f, (struct rect){r.x, y, r.width, r.y + r.height - y - legend}, g, current, kept);
    if (legend) kv_legend_draw(f, (struct rect){r.x, r.y + r.height - 1, r.width, 1});
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    const struct kept *k = kept;
    kv_map_open(s, (h->y * k->width + h->x) * k->each);
}

const struct pane pane_kv = {.keeps = sizeof(struct kept), .draw = draw, .click = click};
