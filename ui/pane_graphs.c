// Graphs: throughput, latency, the KV cache, processors and power over time, above each other, with their scales, one
// axis of time and a cursor that reads all of them; below them totals. Where not all have room the others are a key
// away.
#include "ui/pane_graphs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/clamp.h"
#include "ui/keys.h"
#include "ui/pane.h"
#include "ui/pane_slow.h"

enum {
    SCALE = 8,    // columns left of the graphs
    LEAST = 4,    // rows of a graph with its figure
    MOST = 12,    // likewise
    FOOT = 2,     // the cursor's mark, the axis
    TALL = 12,    // rows from which on there is a line of totals
    WIDTH = 200,  // of the pane, at most
    COLUMNS = 256, // of a graph, at most
    WHY_LEAST = 60 // of a graph, from which on the cursor names the key that explains it
};

struct kept {
    double cursor;         // clock_seconds(); 0: it follows the end
    double paused;         // the time that is shown as now; 0: it goes on
    int level;             // of the timeline
    int first, shown;      // graphs in sight
    int64_t last, left;    // spans of the end, and of the first column, as it was last drawn
    struct timeline still; // that is shown while it is paused
    bool taken;            // it is there
};

enum unit { UNIT_RATE, UNIT_SECONDS, UNIT_SHARE, UNIT_COUNT, UNIT_WATTS };

static const struct {
    const char *label;
    enum theme_role role;
    enum unit unit;
} graphs[SERIES_COUNT] = {
    [SERIES_DECODE] = {"decode", ROLE_DECODE, UNIT_RATE},
    [SERIES_PREFILL] = {"prefill", ROLE_PREFILL, UNIT_RATE},
    [SERIES_LATENCY] = {"slowest token", ROLE_LATENCY, UNIT_SECONDS},
    [SERIES_KV] = {"kv cache", ROLE_KV_OWNED, UNIT_SHARE},
    [SERIES_RUNNING] = {"answers at once", ROLE_GAUGE, UNIT_COUNT},
    [SERIES_OWN] = {"processors, confab", ROLE_GAUGE, UNIT_SHARE},
    [SERIES_MACHINE] = {"processors, all programs", ROLE_GAUGE, UNIT_SHARE},
    [SERIES_POWER] = {"power", ROLE_GAUGE, UNIT_WATTS},
};

// Columns between the labels of the axis, so that their times are round.
static const int axis_columns[TIMELINE_LEVELS] = {20, 15, 18, 20, 24, 16};

static void opened(void *kept) {
    struct kept *k = kept;
    k->cursor = k->paused = 0;
    k->taken = false;
}

void graphs_open(struct screen *s, double seconds) {
    struct kept *k = screen_open_pane(s, PANE_GRAPHS);
    k->cursor = seconds;
}

// ---- keys ----

static int64_t cursor_of(const struct kept *k) {
    const int64_t at = k->cursor > 0 ? timeline_number(k->level, k->cursor) : k->last;
    const int64_t oldest = k->last - TIMELINE_SPANS + 1;
    return at < oldest ? oldest : at > k->last ? k->last : at;
}

static double middle_of(const struct kept *k, int64_t span) {
    return ((double)span + 0.5) * timeline_seconds[k->level];
}

// At the end it follows it.
static void go(struct kept *k, int64_t span) {
    k->cursor = span < k->last ? middle_of(k, span) : 0;
    k->cursor = k->cursor > 0 ? middle_of(k, cursor_of(k)) : 0;
}

static void zoom(struct kept *k, int step) { k->level = clamp(k->level + step, 0, TIMELINE_LEVELS - 1); }
static void scroll(struct kept *k, int step) { k->first = clamp(k->first + step, 0, SERIES_COUNT - k->shown); }

static void pause(struct kept *k) {
    k->paused = k->paused > 0 ? 0 : clock_seconds();
    k->taken = false;
}

static void typed(struct kept *k, const struct key *key) {
    for (size_t i = 0; i < key->size; i++) {
        const char c = key->text[i];
        if (c == '+' || c == '=') zoom(k, -1);
        else if (c == '-') zoom(k, 1);
        else if (c == ' ') pause(k);
    }
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    struct kept *p = kept;
    if (screen_bound(s, k) == COMMAND_SLOW) {
        screen_close_pane(s, PANE_GRAPHS);
        slow_open_at(s, p->cursor > 0 ? middle_of(p, cursor_of(p)) : 0, timeline_seconds[p->level]);
        return true;
    }
    if (k->modifiers & ~KEY_SHIFT) return false;
    switch (k->code) {
    case KEY_TEXT: typed(p, k); return true;
    case KEY_LEFT: go(p, cursor_of(p) - 1); return true;
    case KEY_RIGHT: go(p, cursor_of(p) + 1); return true;
    case KEY_PAGE_UP: go(p, cursor_of(p) - axis_columns[p->level]); return true;
    case KEY_PAGE_DOWN: go(p, cursor_of(p) + axis_columns[p->level]); return true;
    case KEY_HOME: go(p, p->last - TIMELINE_SPANS); return true;
    case KEY_END: go(p, p->last); return true;
    case KEY_UP: scroll(p, -1); return true;
    case KEY_DOWN: scroll(p, 1); return true;
    default: return false;
    }
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    struct kept *k = kept;
    (void)s;
    if (h->kind == HIT_ROW) go(k, k->left + h->x);
}

static void wheel(void *kept, int step) { zoom(kept, step); }

// ---- figures ----

static const char *value_text(enum unit unit, float value, char out[VIEW_NUMBER]) {
    if (!metric_known((double)value)) snprintf(out, VIEW_NUMBER, "-");
    else if (unit == UNIT_RATE) view_rate((double)value, out);
    else if (unit == UNIT_SECONDS) view_seconds((double)value, out);
    else if (unit == UNIT_SHARE) snprintf(out, VIEW_NUMBER, "%.0f%%", 100 * (double)value);
    else if (unit == UNIT_WATTS) snprintf(out, VIEW_NUMBER, "%.0f W", (double)value);
    else view_number(lroundf(value), out);
    return out;
}

// "30 s", "2 min 5 s", "3 h 20 min"
static const char *time_text(double seconds, char out[VIEW_NUMBER]) {
    const long s = lround(seconds), minutes = s / 60, hours = s / 3600;
    if (seconds < 10) snprintf(out, VIEW_NUMBER, "%g s", seconds);
    else if (s < 60) snprintf(out, VIEW_NUMBER, "%ld s", s);
    else if (s < 3600 && s % 60) snprintf(out, VIEW_NUMBER, "%ld min %ld s", minutes, s % 60);
    else if (s < 3600) snprintf(out, VIEW_NUMBER, "%ld min", minutes);
    else if (minutes % 60) snprintf(out, VIEW_NUMBER, "%ld h %ld min", hours, minutes % 60);
    else snprintf(out, VIEW_NUMBER, "%ld h", hours);
    return out;
}

// ---- drawing ----

// Behind a value, what else is to say of it.
static const char *addition(const struct timeline *t, const struct kept *k, enum timeline_series series, float value,
                            char out[VIEW_NUMBER]) {
    const float decode = timeline_value(t, k->level, cursor_of(k), SERIES_DECODE);
    *out = 0;
    if (graphs[series].unit == UNIT_RATE && value >= 0) return " tok/s";
    if (series == SERIES_POWER && value >= 0 && decode > 0)
        snprintf(out, VIEW_NUMBER, ", %.2g J a token", (double)(value / decode));
    return out;
}

// Right-aligned in the columns of the scale.
static void draw_scale(struct view_frame *f, struct rect r, int y, const char *text) {
    canvas_print(f->canvas, r, r.x, y, view_style(ROLE_DIM), "%*s", SCALE - 1, text);
}

// Its name and what the cursor reads, and below the graph itself.
static void draw_graph(struct view_frame *f, struct rect r, const struct kept *k, const struct timeline *t,
                       enum timeline_series series) {
    float values[COLUMNS], most = 0;
    char text[VIEW_NUMBER], more[VIEW_NUMBER];
    struct rect graph = {r.x + SCALE, r.y + 1, r.width - SCALE, r.height - 1};
    for (int i = 0; i < graph.width; i++) {
        values[i] = timeline_value(t, k->level, k->left + i, series);
        if (values[i] > most) most = values[i];
    }
    if (graphs[series].unit == UNIT_SHARE) most = 1;
    const float at = timeline_value(t, k->level, cursor_of(k), series);
    const int x = graph.x + canvas_print(f->canvas, r, graph.x, r.y, view_style(ROLE_DIM), "%s ", graphs[series].label);
    canvas_print(f->canvas, r, x, r.y, view_style(ROLE_STRONG), "%s%s", value_text(graphs[series].unit, at, text),
                 addition(t, k, series, at, more));
    if (most > 0) draw_scale(f, r, graph.y, value_text(graphs[series].unit, most, text));
    draw_scale(f, r, graph.y + graph.height - 1, "0");
    canvas_graph(f->canvas, graph, graphs[series].role, values, graph.width, most, false);
    frame_hit(f, graph, HIT_ROW, 0);
}

// "▲ 12 s ago"; at the end the axis says it.
static void draw_cursor(struct view_frame *f, struct rect line, const struct kept *k) {
    char ago[VIEW_NUMBER], text[VIEW_NUMBER + KEY_NAME + 16];
    const int64_t back = k->last - cursor_of(k);
    const int x = line.x + (int)(cursor_of(k) - k->left), right = line.x + line.width;
    canvas_symbol(f->canvas, line, x, line.y, view_bold(ROLE_ACCENT), "▲", '^');
    f->cursor_x = x, f->cursor_y = line.y;
    if (!back) return;
    const char *why = keys_name(COMMAND_SLOW);
    int width = snprintf(text, sizeof text, "%s ago", time_text((double)back * timeline_seconds[k->level], ago));
    if (*why && line.width >= WHY_LEAST) width += snprintf(text + width, sizeof text - (size_t)width, ", %s: why", why);
    canvas_print(f->canvas, line, x + 2 + width <= right ? x + 2 : x - 1 - width, line.y, view_style(ROLE_TEXT), "%s",
                 text);
}

// The times end where they are.
static void draw_axis(struct view_frame *f, struct rect line, const struct kept *k) {
    char text[VIEW_NUMBER];
    for (int i = 0; i < line.width; i++) {
        const int64_t back = k->last - k->left - i;
        if (back < 0 || back % axis_columns[k->level]) continue;
        if (back) time_text((double)back * timeline_seconds[k->level], text);
        else snprintf(text, sizeof text, "now");
        const int width = (int)strlen(text) + (back > 0);
        if (width <= i + 1)
            canvas_print(f->canvas, line, line.x + i + 1 - width, line.y, view_style(ROLE_DIM), "%s%s", back ? "-" : "",
                         text);
    }
}

// As many as fit.
static void draw_totals(struct view_frame *f, struct rect line) {
    const struct view_totals *t = &f->view->totals;
    char read[VIEW_NUMBER], share[VIEW_NUMBER] = "-", written[VIEW_NUMBER], preemptions[VIEW_NUMBER],
                            failures[VIEW_NUMBER];
    if (t->read > 0 && t->reused >= 0)
        snprintf(share, sizeof share, "%.0f%%", 100 * (double)t->reused / (double)t->read);
    const char *const totals[][2] = {{"in all: tokens read", view_number(t->read, read)},
                                     {"cached", share},
                                     {"written", view_number(t->written, written)},
                                     {"pre-emptions", view_number(t->preemptions, preemptions)},
                                     {"failures", view_number(t->failures, failures)}};
    for (size_t i = 0, x = 0; i < sizeof totals / sizeof *totals; i++) {
        if (x + strlen(totals[i][0]) + 1 + strlen(totals[i][1]) > (size_t)line.width) return;
        x += 2 + (size_t)view_figure(f, line, line.x + (int)x, line.y, totals[i][0], ROLE_TEXT, totals[i][1]);
    }
}

static void find_places(struct kept *k, int columns) {
    k->last = timeline_number(k->level, k->paused > 0 ? k->paused : clock_seconds());
    k->left = k->last + 1 - columns;
    if (cursor_of(k) < k->left) k->left = cursor_of(k);
}

static const char *note_of(const struct kept *k, int width) {
    if (k->paused > 0) return width >= 60 ? "paused, Space goes on" : "paused";
    return width >= 60 ? "Up and Down scroll, + and - zoom, Space pauses" : "+ - zoom";
}

static void draw(struct view_frame *f, struct rect area, void *kept) {
    struct kept *k = kept;
    const int most = SERIES_COUNT * MOST + FOOT + 3;
    struct rect box = view_over(f, area, (struct view_size){WIDTH, most, most}, PANE_GRAPHS, note_of(k, area.width));
    struct rect r = view_over_inside(box);
    const bool totals = r.height >= TALL;
    const int columns = r.width - SCALE, rows = r.height - FOOT - totals;
    if (!f->view->timeline || columns < 1 || columns > COLUMNS || rows < 2) return;
    if (k->paused > 0 && !k->taken) k->still = *f->view->timeline, k->taken = true;
    find_places(k, columns);
    k->shown = clamp(rows / LEAST, 1, SERIES_COUNT);
    scroll(k, 0);
    int y = r.y;
    for (int i = 0; i < k->shown; i++) {
        const int height = (r.y + rows - y) / (k->shown - i);
        draw_graph(f, (struct rect){r.x, y, r.width, height}, k, k->taken ? &k->still : f->view->timeline,
                   (enum timeline_series)(k->first + i));
        y += height;
    }
    draw_cursor(f, (struct rect){r.x + SCALE, y, columns, 1}, k);
    draw_axis(f, (struct rect){r.x + SCALE, y + 1, columns, 1}, k);
    if (totals) draw_totals(f, (struct rect){r.x, y + 2, r.width, 1});
}

const struct pane pane_graphs = {
    .keeps = sizeof(struct kept), .opened = opened, .draw = draw, .key = key, .click = click, .wheel = wheel};
