// Log: the newest entries, coloured by their levels. It follows the end, unless the wheel has left it.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ui/flow.h"
#include "ui/pane.h"

#define PREFIX_LEAST 40 // columns from which on there is room for time and module

struct kept {
    int back; // entries below the last one that is shown
};

static const enum theme_role level_roles[LOG_LEVEL_COUNT] = {[LOG_LEVEL_ERROR] = ROLE_BAD,
                                                             [LOG_LEVEL_WARNING] = ROLE_WARN,
                                                             [LOG_LEVEL_INFO] = ROLE_TEXT,
                                                             [LOG_LEVEL_DEBUG] = ROLE_DIM};

static void format_prefix(struct view_frame *f, const struct log_entry *e, int columns, char out[48]) {
    time_t seconds = (time_t)(e->at / 1000000000);
    struct tm local;
    char when[16] = "";
    if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%H:%M:%S", &local);
    const char *mark = e->level == LOG_LEVEL_ERROR ? "! " : e->level == LOG_LEVEL_WARNING ? "* " : "";
    snprintf(out, 48, "%s %-6s ", when, e->module);
    if (columns < PREFIX_LEAST) out[0] = '\0';
    if (f->without_colours) strcat(out, mark);
}

// Draws an entry from row y on, or only measures it; returns how many rows it has.
static int entry_rows(struct view_frame *f, struct rect r, int y, const struct log_entry *e, bool draw) {
    char prefix[48];
    format_prefix(f, e, r.width, prefix);
    int indent = (int)strlen(prefix), rows = 0;
    if (draw) canvas_text(f->canvas, r, r.x, y, view_style(ROLE_DIM), prefix, strlen(prefix));
    size_t size = strlen(e->text), end;
    for (size_t at = 0, next; at < size; at = next, rows++) {
        next = flow_break(e->text, size, at, r.width - indent, &end);
        if (draw)
            canvas_text(f->canvas, r, r.x + indent, y + rows, view_style(level_roles[e->level]), e->text + at,
                        end - at);
    }
    return rows ? rows : 1;
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    struct kept *k = kept;
    struct rect r = view_pane(f, box, PANE_LOG, NULL);
    const struct log_entry *log = f->view->log;
    if (r.width < 1 || r.height < 1) return;
    if (k->back > f->view->n_log - 1) k->back = f->view->n_log ? f->view->n_log - 1 : 0;
    int end = f->view->n_log - k->back, first = end, rows = 0;
    while (first > 0 && rows < r.height) rows += entry_rows(f, r, 0, &log[--first], false);
    int y = r.y + (rows > r.height ? r.height - rows : 0);
    for (int i = first; i < end; i++) y += entry_rows(f, r, y, &log[i], true);
}

static void wheel(void *kept, int step) {
    struct kept *k = kept;
    k->back -= step * VIEW_WHEEL_LINES;
    if (k->back < 0) k->back = 0;
}

const struct pane pane_log = {.keeps = sizeof(struct kept), .draw = draw, .wheel = wheel};
