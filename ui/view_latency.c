// Latency: time to the first token and between tokens, as people feel them: the middle and the worst.
#include <string.h>

#include "ui/view.h"

// Columns of the widest value, so that the figures of both lines stand below each other.
#define VALUE_COLUMNS 7

static void latency_line(struct view_frame *f, struct rect r, int y, const char *label, const struct latency_figures *l) {
    char value[VIEW_NUMBER];
    const struct { const char *name; float seconds; } parts[] = {{"p50", l->p50}, {"p99", l->p99}};
    canvas_text(f->canvas, r, r.x, y, view_style(ROLE_TEXT), label, strlen(label));
    int spare = r.width - 6 - 2 * (4 + VALUE_COLUMNS), x = r.x + 6;
    for (int i = 0; i < 2; i++) {
        view_seconds(l->count ? (double)parts[i].seconds : 0, value);
        canvas_text(f->canvas, r, x, y, view_style(ROLE_DIM), parts[i].name, 3);
        int width = text_width(value, strlen(value));
        canvas_text(f->canvas, r, x + 4 + (VALUE_COLUMNS > width ? VALUE_COLUMNS - width : 0), y, view_style(ROLE_STRONG), value, strlen(value));
        x += 4 + VALUE_COLUMNS + (spare > 0 ? spare : 1);
    }
}

void view_latency(struct view_frame *f, struct rect box) {
    const struct engine_figures *g = f->view->figures;
    struct rect r = view_box(f, box, 4, "latency", COMMAND_BOX_4);
    if (!g) return;
    latency_line(f, r, r.y, "first", &g->first_token);
    if (r.height > 1) latency_line(f, r, r.y + 1, "next", &g->next_token);
    struct view_history h = f->view->latency;
    if (r.height > 2) canvas_graph(f->canvas, (struct rect){r.x, r.y + 2, r.width, r.height - 2}, ROLE_LATENCY, h.values, h.count, 0, true);
}
