// Latency: time to the first token and between tokens, as people feel them: the middle and the worst.
#include <string.h>

#include "ui/view.h"

#define LABEL_COLUMNS 6
#define NAME_COLUMNS  4
#define P50_COLUMNS   7 // so that the figures of both lines stand below each other

struct latency_line {
    const char *label;
    char p50[VIEW_NUMBER], p99[VIEW_NUMBER];
};

static struct latency_line format_line(const char *label, const struct latency_figures *l) {
    struct latency_line line = {.label = label};
    view_seconds(l->count ? (double)l->p50 : 0, line.p50);
    view_seconds(l->count ? (double)l->p99 : 0, line.p99);
    return line;
}

static void draw_value(struct view_frame *f, struct rect r, int right, int y, const char *value) {
    canvas_text(f->canvas, r, right - text_width(value, strlen(value)), y, view_style(ROLE_STRONG), value,
                strlen(value));
}

static void draw_line(struct view_frame *f, struct rect r, int y, const struct latency_line *line, int p99_columns) {
    int right = r.x + r.width, p99 = right - NAME_COLUMNS - p99_columns;
    int middle = r.x + LABEL_COLUMNS + NAME_COLUMNS + P50_COLUMNS;
    canvas_text(f->canvas, r, r.x, y, view_style(ROLE_TEXT), line->label, strlen(line->label));
    canvas_text(f->canvas, r, r.x + LABEL_COLUMNS, y, view_style(ROLE_DIM), "p50", 3);
    draw_value(f, r, middle < p99 ? middle : p99 - 1, y, line->p50);
    canvas_text(f->canvas, r, p99, y, view_style(ROLE_DIM), "p99", 3);
    draw_value(f, r, right, y, line->p99);
}

void view_latency(struct view_frame *f, struct rect box) {
    const struct engine_figures *g = f->view->figures;
    struct rect r = view_box(f, box, 4, "latency", COMMAND_BOX_4);
    if (!g) return;
    struct latency_line lines[2] = {format_line("first", &g->first_token), format_line("next", &g->next_token)};
    int widths[2] = {text_width(lines[0].p99, strlen(lines[0].p99)), text_width(lines[1].p99, strlen(lines[1].p99))};
    for (int i = 0; i < 2 && i < r.height; i++)
        draw_line(f, r, r.y + i, &lines[i], widths[0] > widths[1] ? widths[0] : widths[1]);
    struct view_history h = f->view->latency;
    if (r.height > 2)
        canvas_graph(f->canvas, (struct rect){r.x, r.y + 2, r.width, r.height - 2}, ROLE_LATENCY, h.values, h.count, 0,
                     true);
}
