// Log: the newest entries beside the chat, coloured by their levels. It follows the end, unless the wheel has left it;
// its head says how many errors nobody has looked at, and a click opens all of it (pane_log_entries.c).
#include <stdio.h>
#include <string.h>

#include "ui/flow.h"
#include "ui/log_view.h"
#include "ui/pane.h"

#define PREFIX_LEAST 40 // columns from which on there is room for time and module

static void format_prefix(const struct log_entry *e, int columns, char out[48]) {
    char when[16], source[32];
    log_view_time(e, when);
    snprintf(source, sizeof source, "%s %-6s ", when, e->module);
    snprintf(out, 48, "%s%s", columns < PREFIX_LEAST ? "" : source, log_view_mark(e->level));
}

// Draws an entry from row y on, or only measures it; returns how many rows it has.
static int entry_rows(struct view_frame *f, struct rect r, int y, const struct log_entry *e, bool draw) {
    char prefix[48];
    format_prefix(e, r.width, prefix);
    int indent = (int)strlen(prefix), rows = 0;
    if (draw) canvas_text(f->canvas, r, r.x, y, view_style(ROLE_DIM), prefix, strlen(prefix));
    size_t size = strlen(e->text), end;
    for (size_t at = 0, next; at < size; at = next, rows++) {
        next = flow_break(e->text, size, at, r.width - indent, &end);
        if (draw)
            canvas_text(f->canvas, r, r.x + indent, y + rows, view_style(log_view_role(e->level)), e->text + at,
                        end - at);
    }
    return rows ? rows : 1;
}

// At the right end of the upper border.
static void draw_unread(struct view_frame *f, struct rect box, int errors) {
    char text[32];
    const int width = snprintf(text, sizeof text, errors == 1 ? "%d error" : "%d errors", errors);
    const struct rect note = {box.x + box.width - 2 - width, box.y, width, 1};
    if (!errors || note.x < box.x + 2) return;
    canvas_text(f->canvas, box, note.x, note.y, view_bold(ROLE_BAD), text, (size_t)width);
    frame_hit(f, note, HIT_COMMAND, COMMAND_LOG);
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    struct log_view *k = kept;
    char title[40];
    int shown[LOG_RING];
    snprintf(title, sizeof title, k->hidden ? "%s: %s" : "%s", panes[PANE_LOG].title, log_view_level(k));
    struct rect r = view_pane(f, box, PANE_LOG, title);
    draw_unread(f, box, log_view_unread_errors(k, f->view));
    if (r.width < 1 || r.height < 1) return;
    frame_hit(f, r, HIT_COMMAND, COMMAND_LOG);
    const struct log_entry *log = f->view->log;
    const int n = log_view_find(k, f->view, "", shown);
    if (k->back > n - 1) k->back = n ? n - 1 : 0;
    int end = n - k->back, first = end, rows = 0;
    while (first > 0 && rows < r.height) rows += entry_rows(f, r, 0, &log[shown[--first]], false);
    int y = r.y + (rows > r.height ? r.height - rows : 0);
    for (int i = first; i < end; i++) y += entry_rows(f, r, y, &log[shown[i]], true);
}

static void wheel(void *kept, int step) {
    struct log_view *k = kept;
    k->back -= step * VIEW_WHEEL_LINES;
    if (k->back < 0) k->back = 0;
}

const struct pane pane_log = {.keeps = sizeof(struct log_view), .draw = draw, .wheel = wheel};
