// Latency: time to the first token and between tokens, as people feel them: the middle and the worst. The graph is of
// the slowest token of each quarter of a second.
#include <string.h>

#include "ui/pane.h"
#include "ui/pane_slow.h"

#define LABEL_COLUMNS 6
#define NAME_COLUMNS  4
#define VALUE_COLUMNS 6 // "210 ms": no value is longer; so that the metrics of both lines stand below each other

struct kept {
    int width, each;  // columns of the graph as it was last drawn, and samples in one
    uint64_t samples; // there were by then
};

struct latency_line {
    const char *label;
    char p50[VIEW_NUMBER], p99[VIEW_NUMBER];
};

static struct latency_line format_line(const char *label, const struct latency_metrics *l) {
    struct latency_line line = {.label = label};
    view_seconds(l->count ? (double)l->p50 : 0, line.p50);
    view_seconds(l->count ? (double)l->p99 : 0, line.p99);
    return line;
}

// A value ending before column `right`; returns where the one to its left may end.
static int draw_value(struct view_frame *f, struct rect r, int right, int y, bool named, const char *name,
                      const char *value) {
    int width = text_width(value, strlen(value)), left = right - VALUE_COLUMNS;
    canvas_text(f->canvas, r, right - width, y, view_style(ROLE_STRONG), value, strlen(value));
    if (!named) return left - 1;
    canvas_text(f->canvas, r, left - NAME_COLUMNS, y, view_style(ROLE_DIM), name, strlen(name));
    return left - NAME_COLUMNS - 2;
}

// Where the names do not fit they stand in the title.
static bool names_fit(struct rect r) { return r.width >= LABEL_COLUMNS + 2 * (NAME_COLUMNS + VALUE_COLUMNS) + 2; }

static void draw_line(struct view_frame *f, struct rect r, int y, const struct latency_line *line) {
    canvas_text(f->canvas, r, r.x, y, view_style(ROLE_TEXT), line->label, strlen(line->label));
    int left = draw_value(f, r, r.x + r.width, y, names_fit(r), "p99", line->p99);
    draw_value(f, r, left, y, names_fit(r), "p50", line->p50);
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    struct kept *k = kept;
    const struct engine_metrics *g = f->view->metrics;
    bool names = names_fit(view_inside(box));
    struct rect r = view_pane(f, box, PANE_LATENCY, names ? NULL : "latency p50 p99");
    if (!g) return;
    struct latency_line lines[2] = {format_line("first", &g->first_token), format_line("next", &g->next_token)};
    for (int i = 0; i < 2 && i < r.height; i++) draw_line(f, r, r.y + i, &lines[i]);
    struct view_history h = f->view->latency;
    if (r.height <= 2) return;
    const struct rect graph = view_graph(f, (struct rect){r.x, r.y + 2, r.width, r.height - 2}, ROLE_LATENCY, h,
                                         VALUE_COLUMNS + 1, view_seconds);
    *k = (struct kept){graph.width, f->canvas->ascii ? 1 : 2, f->view->samples};
    frame_hit(f, graph, HIT_ROW, 0);
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    const struct kept *k = kept;
    const uint64_t back = (uint64_t)((k->width - 1 - h->x) * k->each);
    slow_open(s, back < k->samples ? k->samples - back : 1);
}

const struct pane pane_latency = {.keeps = sizeof(struct kept), .draw = draw, .click = click};
