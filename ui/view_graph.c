// The graphs in panes beside the conversation, with what of their scale fits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/view.h"

enum {
    SCALE_LEAST = 24, // columns from which on there is a scale,
    SPAN_LEAST = 5,   // and rows from which on there is a line that says how long it is
};
#define SAMPLES_A_SECOND 4

static float most_of(struct view_history h, int shown) {
    float most = 0;
    for (int i = h.count > shown ? h.count - shown : 0; i < h.count; i++)
        if (isfinite(h.values[i]) && h.values[i] > most) most = h.values[i];
    return most;
}

struct rect view_graph(struct view_frame *f, struct rect r, enum theme_role role, struct view_history h, int scale,
                       const char *format(double value, char out[VIEW_NUMBER])) {
    struct rect graph = r;
    const bool roomy = r.width >= SCALE_LEAST;
    const int samples = f->canvas->ascii ? 1 : 2, columns = roomy ? scale - 1 : 0; // samples: a column
    char text[VIEW_NUMBER];
    if (r.height <= 0) return graph;
    if (roomy && r.height > 1) graph.x += scale, graph.width -= scale;
    if (roomy && r.height >= SPAN_LEAST) graph.height--;
    const float most = most_of(h, graph.width * samples);
    canvas_graph(f->canvas, graph, role, h.values, h.count, most, true);
    if (most > 0 && r.height > 1) // otherwise over the oldest samples
        canvas_print(f->canvas, r, r.x, r.y, view_style(ROLE_DIM), "%*s", columns, format((double)most, text));
    if (graph.width == r.width || !h.count) return graph;
    canvas_print(f->canvas, r, r.x, graph.y + graph.height - 1, view_style(ROLE_DIM), "%*s", columns, "0");
    if (graph.height == r.height) return graph;
    const int width = snprintf(text, sizeof text, "last %d s of work", graph.width * samples / SAMPLES_A_SECOND);
    canvas_text(f->canvas, r, r.x + r.width - width, r.y + r.height - 1, view_style(ROLE_DIM), text, (size_t)width);
    return graph;
}
