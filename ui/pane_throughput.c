// Throughput: tokens a second of decoding and prefill, now and at the peak, how full the batch is, and what drafts
// bring.
#include <stdio.h>
#include <string.h>

#include "ui/pane.h"

#define SCALE_COLUMNS 6 // "9999" or "10.0k", and a blank

static void rate_text(double per_second, char out[VIEW_NUMBER + 8]) {
    view_rate(per_second, out);
    if (metric_known(per_second)) strcat(out, " tok/s");
}

static void decode_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char peak[VIEW_NUMBER], text[VIEW_NUMBER + 8];
    rate_text((double)g->decode_now, text);
    int x = r.x + view_figure(f, r, r.x, y, "decode", g->decode_now > 0 ? ROLE_STRONG : ROLE_TEXT, text);
    if (g->decode_peak != 0)
        view_figure_right(f, r, x + 2, y, "peak", ROLE_TEXT, view_rate((double)g->decode_peak, peak));
}

static void prefill_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char text[VIEW_NUMBER + 8];
    rate_text((double)g->prefill_now, text);
    int x = r.x + view_figure(f, r, r.x, y, "prefill", g->prefill_now > 0 ? ROLE_STRONG : ROLE_TEXT, text);
    view_figure_right(f, r, x + 2, y, "queue", g->queue > 0 ? ROLE_WARN : ROLE_TEXT, view_number(g->queue, text));
}

static void batch_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char text[VIEW_NUMBER];
    int x = r.x + view_figure(f, r, r.x, y, "running", ROLE_TEXT, view_number(g->running, text));
    view_figure_right(f, r, x + 2, y, "rows", ROLE_TEXT, view_number(g->running ? g->batch_rows : 0, text));
}

static void drafts_line(struct view_frame *f, struct rect r, int y, const struct engine_metrics *g) {
    char text[VIEW_NUMBER] = "-";
    if (metric_known((double)g->acceptance)) snprintf(text, sizeof text, "%.0f %%", 100 * (double)g->acceptance);
    int x = r.x + view_figure(f, r, r.x, y, "accepted", ROLE_TEXT, text);
    view_figure_right(f, r, x + 2, y, "tok/step", ROLE_TEXT, view_rate((double)g->step_tokens, text));
}

static void graph(struct view_frame *f, struct rect r, int y, int height, enum theme_role role, struct view_history h) {
    view_graph(f, (struct rect){r.x, y, r.width, height}, role, h, SCALE_COLUMNS, view_rate);
}

static void draw(struct view_frame *f, struct rect box, void *kept) {
    (void)kept;
    const struct engine_metrics *g = f->view->metrics;
    struct rect r = view_pane(f, box, PANE_THROUGHPUT, NULL);
    if (!g) {
        canvas_print(f->canvas, r, r.x, r.y, view_style(ROLE_DIM),
                     f->view->loading ? "loading the model" : "no model is loaded");
        return;
    }
    int lines = r.height >= 4 ? 3 : r.height >= 2 ? 2 : 1; // of metrics; the rest is graphs
    const bool drafts = r.height >= 7 && g->drafted_tokens > 0;
    int free = r.height - lines - drafts, second = lines == 3 && free >= 6 ? free / 3 : 0;
    int y = r.y;
    decode_line(f, r, y++, g);
    graph(f, r, y, free - second, ROLE_DECODE, f->view->decode);
    y += free - second;
    if (lines > 1) prefill_line(f, r, y++, g);
    graph(f, r, y, second, ROLE_PREFILL, f->view->prefill);
    y += second;
    frame_hit(f, r, HIT_ROW, 0);
    if (lines > 2) batch_line(f, r, y++, g);
    if (drafts) drafts_line(f, r, y, g);
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    (void)kept, (void)h;
    screen_run(s, COMMAND_GRAPHS);
}

const struct pane pane_throughput = {.draw = draw, .click = click};
