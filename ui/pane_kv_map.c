// The map of pages: the KV cache at a cell a page, and what the page with the cursor holds. A cell is the page, as high
// as it is filled, and a mark: a digit for how many share it, or what else is to be known of it.
#include "ui/pane_kv_map.h"

#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/kv_cells.h"
#include "ui/pane.h"

enum {
    CELL = 2, // columns
    WIDTH = 108,
    MOST_HEIGHT = 50,
    TALL = 16, // rows, from which on the text has three of them
    WHEEL_ROWS = 2,
};

struct kept {
    int cursor;          // page; −1: not chosen yet
    int scroll;          // row that is drawn first
    int columns, height; // of the map, as it was last drawn
    int n_pages;
    int next, previous; // the nearest pages of somebody else's
    int chat;           // index of the cursor's owner; −1: none that is listed
};

int kv_map_chosen(const void *kept) {
    const struct kept *k = kept;
    return k->n_pages > 0 ? k->cursor : -1;
}

static void opened(void *kept) { *(struct kept *)kept = (struct kept){.cursor = -1, .chat = -1}; }

void kv_map_open(struct screen *s, int page) {
    struct kept *k = screen_open_pane(s, PANE_KV_MAP);
    k->cursor = page;
}

// ---- keys ----

static void move(struct kept *k, int pages) { k->cursor = clamp(k->cursor + pages, 0, k->n_pages - 1); }

static void go(struct screen *s, const struct kept *k) {
    const int chat = k->chat;
    if (chat < 0) {
        screen_say(s, false, "this page belongs to no chat here");
        return;
    }
    screen_close_pane(s, PANE_KV_MAP);
    screen_hand_out(s, COMMAND_NEXT, chat, NULL);
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (k->modifiers & ~KEY_SHIFT) return false;
    switch (k->code) {
    case KEY_LEFT: move(p, -1); return true;
    case KEY_RIGHT: move(p, 1); return true;
    case KEY_UP: move(p, -p->columns); return true;
    case KEY_DOWN: move(p, p->columns); return true;
    case KEY_PAGE_UP: move(p, -p->columns * p->height); return true;
    case KEY_PAGE_DOWN: move(p, p->columns * p->height); return true;
    case KEY_HOME: p->cursor = 0; return true;
    case KEY_END: p->cursor = p->n_pages - 1; return true;
    case KEY_TAB: p->cursor = k->modifiers ? p->previous : p->next; return true;
    case KEY_ENTER: go(s, p); return true;
    default: return false;
    }
}

// Once more on the chosen page: goes to its chat.
static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    if (h->kind == HIT_CHAT) {
        go(s, k);
        return;
    }
    if (h->kind != HIT_ROW || !k->columns) return;
    const int column = h->x / CELL, page = (k->scroll + h->y) * k->columns + column;
    if (column >= k->columns || page >= k->n_pages) return;
    if (page == k->cursor) go(s, k);
    else k->cursor = page;
}

static void wheel(void *kept, int step) {
    struct kept *k = kept;
    move(k, step * WHEEL_ROWS * k->columns);
}

// ---- the map ----

static const struct page_metrics *page_of(const struct screen_view *v, int page) {
    static const struct page_metrics none = {0};
    return page >= 0 && page < METRICS_MAX_PAGES ? &v->metrics->pages[page] : &none;
}

static bool belongs_alike(const struct screen_view *v, uint64_t current, int a, int b) {
    const struct page_metrics *p = page_of(v, a), *q = page_of(v, b);
    return p->conversation == q->conversation && kv_page_kind(p, current) == kv_page_kind(q, current);
}

// The next page in this direction that is another's, and not free unless all others are.
static int find_other(const struct screen_view *v, const struct kept *k, int step) {
    const uint64_t current = view_chat_id(v);
    for (int i = 1; i < k->n_pages; i++) {
        const int page = (k->cursor + k->n_pages + i * step % k->n_pages) % k->n_pages;
        const int before = (page - 1 + k->n_pages) % k->n_pages;
        if (!page_of(v, page)->references || belongs_alike(v, current, page, k->cursor)) continue;
        if (page == 0 || !belongs_alike(v, current, page, before)) return page; // where it begins
    }
    return k->cursor;
}

static void find_places(struct kept *k, const struct screen_view *v) {
    const uint64_t current = view_chat_id(v);
    k->n_pages = v->metrics->n_pages < METRICS_MAX_PAGES ? v->metrics->n_pages : METRICS_MAX_PAGES;
    if (k->n_pages < 0) k->n_pages = 0;
    for (int i = 0; k->cursor < 0 && i < k->n_pages; i++)
        if (page_of(v, i)->references && page_of(v, i)->conversation == current) k->cursor = i;
    k->cursor = clamp(k->cursor, 0, k->n_pages - 1);
    k->chat = -1;
    const struct page_metrics *p = page_of(v, k->cursor);
    for (int i = 0; p->references && i < v->n_chats; i++)
        if (v->chats[i].id == p->conversation) k->chat = i;
    k->next = find_other(v, k, 1);
    k->previous = find_other(v, k, -1);
}

static void draw_mark(struct view_frame *f, struct rect r, int x, int y, const struct page_metrics *p) {
    if (p->proposed) canvas_symbol(f->canvas, r, x, y, view_bold(ROLE_ACCENT), "+", '+');
    else if (p->references > 9) canvas_symbol(f->canvas, r, x, y, view_style(ROLE_KV_SHARED), "*", '*');
    else if (p->references > 1) canvas_print(f->canvas, r, x, y, view_style(ROLE_KV_SHARED), "%d", p->references);
    else if (p->on_disk) canvas_symbol(f->canvas, r, x, y, view_style(ROLE_DIM), "•", '\'');
}

static void draw_map(struct view_frame *f, struct rect r, struct kept *k) {
    const struct screen_view *v = f->view;
    const uint64_t current = view_chat_id(v);
    k->columns = r.width / CELL > 0 ? r.width / CELL : 1;
    k->height = r.height;
    const int rows = (k->n_pages + k->columns - 1) / k->columns, row = k->cursor / k->columns;
    k->scroll = clamp(k->scroll, row - r.height + 1, row);
    k->scroll = clamp(k->scroll, 0, rows > r.height ? rows - r.height : 0);
    frame_hit(f, r, HIT_ROW, 0);
    for (int i = 0; i < k->columns * r.height; i++) {
        const int page = k->scroll * k->columns + i, x = r.x + i % k->columns * CELL, y = r.y + i / k->columns;
        if (page >= k->n_pages) break;
        const struct page_metrics *p = page_of(v, page);
        struct page_cell cell = {.kind = kv_page_kind(p, current), .chosen = page == k->cursor};
        if (v->metrics->page_tokens > 0) cell.share = (double)p->filled / v->metrics->page_tokens;
        if (cell.kind == PAGE_OWNED) cell.shade = kv_owner_shade(p->conversation);
        kv_cell_draw(f, r, x, y, cell);
        draw_mark(f, r, x + 1, y, p);
        if (cell.chosen) f->cursor_x = x, f->cursor_y = y;
    }
}

// "▇this ▇other ▇shared ▇cached   2…9 share it  + drafts  • on disk"
static void draw_legend(struct view_frame *f, struct rect line) {
    const char *const marks[] = {"2-9 share it", "+ drafts", f->canvas->ascii ? "' on disk" : "• on disk"};
    int x = line.x + kv_legend_draw(f, line) + 1;
    for (int i = 0; i < 3; i++) {
        if (x + text_width(marks[i], strlen(marks[i])) > line.x + line.width) return;
        x += canvas_print(f->canvas, line, x, line.y, view_style(ROLE_DIM), "%s", marks[i]) + 2;
    }
}

// ---- the page with the cursor ----

static const char *owner_of(const struct view_frame *f, const struct kept *k, const struct page_metrics *p) {
    if (!p->references) return "free";
    return k->chat >= 0 ? f->view->chats[k->chat].title : "another client's";
}

static void draw_title(struct view_frame *f, struct rect line, const struct kept *k, const struct page_metrics *p) {
    const struct engine_metrics *g = f->view->metrics;
    char number[VIEW_NUMBER], listed[VIEW_NUMBER], more[2 * VIEW_NUMBER] = "";
    const int right = line.x + line.width;
    line.x += canvas_print(f->canvas, line, line.x, line.y, view_bold(ROLE_STRONG), "page %s",
                           view_number(k->cursor, number));
    if (g->n_pages > k->n_pages) snprintf(more, sizeof more, ", %s listed", view_number(k->n_pages, listed));
    line.x += 2 + canvas_print(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), " of %s%s",
                               view_number(g->n_pages, number), more);
    const char *owner = owner_of(f, k, p);
    line.width = right - line.x;
    const int width = canvas_cut(f->canvas, line, view_style(k->chat >= 0 ? ROLE_LINK : ROLE_DIM), owner);
    if (k->chat >= 0) frame_hit(f, (struct rect){line.x, line.y, width, 1}, HIT_CHAT, k->chat);
}

static void draw_figures(struct view_frame *f, struct rect line, const struct page_metrics *p,
                         const struct page_text *t) {
    char text[200];
    int n = 0;
    if (!p->references) return;
    const bool known = t && t->n_tokens > 0;
    if (known)
        n += snprintf(text + n, sizeof text - (size_t)n, "tokens %d to %d", t->position + 1, t->position + p->filled);
    else n += snprintf(text + n, sizeof text - (size_t)n, "%d tokens", p->filled);
    if (p->references > 1) n += snprintf(text + n, sizeof text - (size_t)n, ", shared by %d", p->references);
    if (p->kept) n += snprintf(text + n, sizeof text - (size_t)n, ", cached for reuse");
    if (p->on_disk) n += snprintf(text + n, sizeof text - (size_t)n, ", on disk");
    if (p->proposed) n += snprintf(text + n, sizeof text - (size_t)n, ", drafts in it");
    canvas_cut(f->canvas, line, view_style(ROLE_TEXT), text);
}

static void draw_text(struct view_frame *f, struct rect r, const char *text) {
    int x = r.x, y = r.y;
    for (size_t at = 0, size = strlen(text), n; at < size; at += n) {
        int width;
        n = text_cluster(text + at, size - at, &width);
        const bool line_end = text[at] == '\n';
        if (line_end) width = 1;
        if (x + width > r.x + r.width) x = r.x, y++;
        if (y >= r.y + r.height) return;
        if (line_end) canvas_symbol(f->canvas, r, x++, y, view_style(ROLE_DIM), "↵", '$');
        else x += canvas_text(f->canvas, r, x, y, view_style(ROLE_QUOTE), text + at, n);
    }
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const struct engine_metrics *g = f->view->metrics;
    const int columns = ((area.width < WIDTH ? area.width : WIDTH) - 4) / CELL, lines = area.height >= TALL ? 3 : 1;
    const int rows = g && columns > 0 ? (g->n_pages + columns - 1) / columns : 1, foot = 2 + lines;
    struct rect box =
        view_over(f, area, (struct view_size){WIDTH, rows + foot + 4, MOST_HEIGHT}, PANE_KV_MAP,
                  area.width >= 60 ? "Enter opens the chat, Tab the next owner, Esc closes" : "Esc closes");
    struct rect r = view_over_inside(box);
    if (!g || g->n_pages <= 0) {
        canvas_cut(f->canvas, (struct rect){r.x, r.y, r.width, 1}, view_style(ROLE_DIM), "no model is loaded");
        return;
    }
    find_places(k, f->view);
    const struct page_metrics *p = page_of(f->view, k->cursor);
    const struct page_text *t = g->page.page == k->cursor ? &g->page : NULL;
    const int map = r.height - foot - 2;
    draw_map(f, (struct rect){r.x, r.y, r.width, map > 1 ? map : 1}, k);
    struct rect line = {r.x, r.y + r.height - foot - 1, r.width, 1};
    draw_legend(f, line);
    line.y++, draw_title(f, line, k, p);
    line.y++, draw_figures(f, line, p, t);
    if (t) draw_text(f, (struct rect){r.x, line.y + 1, r.width, lines}, t->text);
}

const struct pane pane_kv_map = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
