// Memory: what of confab is resident and what is free beside it, and what the engine takes. Where there is room a gauge
// shows the first of the two.
#include <string.h>

#include "ui/pane.h"

#define FIGURES      6
#define COLUMN_LEAST 16 // of a figure, when two stand beside each other
#define GAP          2

struct figure {
    const char *label;
    int64_t bytes;
};

static void draw_figure(struct view_frame *f, struct rect cell, const struct figure *figure) {
    char text[VIEW_NUMBER] = "-";
    if (figure->bytes >= 0) view_bytes((double)figure->bytes, text);
    canvas_text(f->canvas, cell, cell.x, cell.y, view_style(ROLE_DIM), figure->label, strlen(figure->label));
    canvas_text(f->canvas, cell, cell.x + cell.width - (int)strlen(text), cell.y, view_style(ROLE_TEXT), text,
                strlen(text));
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    (void)kept;
    const struct view_memory *m = f->view->memory;
    struct rect r = view_pane(f, box, PANE_MEMORY, NULL);
    if (!m) return;
    const struct figure figures[FIGURES] = {{"resident", m->resident}, {"free", m->free},   {"repacked", m->repacked},
                                            {"mapped", m->mapped},     {"kv cache", m->kv}, {"buffers", m->buffers}};
    bool known = m->resident >= 0 && m->free >= 0;
    int columns = r.height < FIGURES && r.width >= 2 * COLUMN_LEAST + GAP ? 2 : 1, y = r.y;
    if (known && r.height > FIGURES / columns)
        canvas_gauge(f->canvas, r, r.x, y++, r.width, (double)m->resident / (double)(m->resident + m->free),
                     ROLE_GAUGE);
    int width = (r.width - GAP * (columns - 1)) / columns;
    for (int i = 0; i < FIGURES; i++) {
        struct rect cell = {r.x + i % columns * (width + GAP), y + i / columns, width, 1};
        if (cell.y < r.y + r.height) draw_figure(f, cell, &figures[i]);
    }
}

const struct pane pane_memory = {.draw = draw};
