// Memory: what of confab is resident and what is free beside it, and what the engine takes; where that is not the
// processor alone, a line a device with its layers. Where there is room a gauge shows the first of the two.
#include <stdio.h>
#include <string.h>

#include "engine/metrics.h"
#include "ui/pane.h"

#define FIGURES      6
#define OF_MACHINE   2  // of them, before the devices
#define LAYERS_LEAST 34 // columns that have room for the word
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

// "vulkan0 layers 0-15    1.2 GiB"
static void draw_part(struct view_frame *f, struct rect line, const struct part_metrics *p) {
    char label[48];
    snprintf(label, sizeof label, "%s %s%d-%d", p->device, line.width < LAYERS_LEAST ? "" : "layers ", p->first_layer,
             p->end_layer - 1);
    draw_figure(f, line, &(struct figure){label, p->weights + p->kv + p->buffers});
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    (void)kept;
    const struct view_memory *m = f->view->memory;
    const struct engine_metrics *e = f->view->metrics;
    struct rect r = view_pane(f, box, PANE_MEMORY, NULL);
    if (!m) return;
    const struct figure figures[FIGURES] = {{"resident", m->resident}, {"free", m->free},   {"repacked", m->repacked},
                                            {"mapped", m->mapped},     {"kv cache", m->kv}, {"buffers", m->buffers}};
    const int n_parts = e && metrics_on_devices(e->parts, e->n_parts) ? e->n_parts : 0;
    bool known = m->resident >= 0 && m->free >= 0;
    int columns = r.height < FIGURES + n_parts && r.width >= 2 * COLUMN_LEAST + GAP ? 2 : 1, y = r.y;
    if (known && r.height > FIGURES / columns + n_parts)
        canvas_gauge(f->canvas, r, r.x, y++, r.width, (double)m->resident / (double)(m->resident + m->free),
                     ROLE_GAUGE);
    int width = (r.width - GAP * (columns - 1)) / columns, parts_y = y + OF_MACHINE / columns;
    for (int i = 0; i < FIGURES; i++) {
        struct rect cell = {r.x + i % columns * (width + GAP), y + i / columns, width, 1};
        if (i >= OF_MACHINE) cell.y += n_parts;
        if (cell.y < r.y + r.height) draw_figure(f, cell, &figures[i]);
    }
    for (int i = 0; i < n_parts && parts_y + i < r.y + r.height; i++)
        draw_part(f, (struct rect){r.x, parts_y + i, r.width, 1}, &e->parts[i]);
}

const struct pane pane_memory = {.draw = draw};
