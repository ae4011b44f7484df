// The roofline. Left of where the roof bends memory is the limit, right of it computing is.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/pane_time.h"

#define LEFT_LOG2    (-1) // operations a byte at the left end
#define RIGHT_LOG2   12
#define ABOVE_LOG2   0.7 // of the roof
#define BELOW_LOG2   2.5 // of the roof's left end
#define GUTTER       5   // columns of "100G "
#define NAME_COLUMNS 8   // of " compute" and "memory  "
#define NAMES_ROWS   5   // from so many on the two limits are named
#define BRAILLE      0x2800u

struct plot {
    struct rect area;
    double bottom, top;        // log2 of operations a second
    double memory, operations; // log2 of the limits
};

static double roof_at(const struct plot *p, double x) { return fmin(p->memory + x, p->operations); }

static double log2_at(const struct plot *p, double column) { // of operations a byte
    return LEFT_LOG2 + column / p->area.width * (RIGHT_LOG2 - LEFT_LOG2);
}

static double row_of(const struct plot *p, double y) { // from above
    return (p->top - y) / (p->top - p->bottom) * p->area.height;
}

// ---- the roof ----

static const uint8_t braille_bits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

// The dots of a column of dots that the roof goes through, from above: from its height at the right edge, which the
// next column begins with, to that at the left one.
struct dots {
    int from, to;
};

static struct dots roof_dots(const struct plot *p, int column) {
    int left = (int)(4 * row_of(p, roof_at(p, log2_at(p, column / 2.0))));
    int right = (int)(4 * row_of(p, roof_at(p, log2_at(p, (column + 1) / 2.0))));
    return (struct dots){right < left ? right + 1 : left, left};
}

static uint32_t roof_bits(struct dots dots, int row, const uint8_t bits[4]) {
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        if (4 * row + i >= dots.from && 4 * row + i <= dots.to) out |= bits[i];
    return out;
}

static void draw_roof(struct view_frame *f, const struct plot *p) {
    for (int column = 0; column < p->area.width; column++) {
        struct dots left = roof_dots(p, 2 * column), right = roof_dots(p, 2 * column + 1);
        uint32_t ascii = p->memory + log2_at(p, column) < p->operations ? '/' : '-';
        for (int row = right.from / 4; row <= left.to / 4 && row < p->area.height; row++) {
            uint32_t bits = roof_bits(left, row, braille_bits[0]) | roof_bits(right, row, braille_bits[1]);
            struct rect cell = {p->area.x + column, p->area.y + row, 1, 1};
            if (bits) canvas_fill(f->canvas, cell, view_style(ROLE_ROOF), f->canvas->ascii ? ascii : BRAILLE + bits);
        }
    }
}

// "memory" at the left of its slope, about half way up, "compute" over its end, where no point hides it.
static void draw_names(struct view_frame *f, const struct plot *p) {
    double bend = (p->operations - p->memory - LEFT_LOG2) / (RIGHT_LOG2 - LEFT_LOG2) * p->area.width;
    int column = bend < 2 * NAME_COLUMNS ? NAME_COLUMNS : (int)(bend / 2);
    if (p->area.height < NAMES_ROWS || column > bend || bend + NAME_COLUMNS > p->area.width) return;
    int slope = (int)row_of(p, roof_at(p, log2_at(p, column))), flat = (int)row_of(p, p->operations);
    canvas_print(f->canvas, p->area, p->area.x + column - NAME_COLUMNS, p->area.y + slope, view_style(ROLE_ROOF),
                 "memory");
    canvas_print(f->canvas, p->area, p->area.x + p->area.width - NAME_COLUMNS, p->area.y + (flat > 0 ? flat - 1 : 1),
                 view_style(ROLE_ROOF), "compute");
}

// ---- axes ----

// "4", "1k" of powers of two with a step of 1024; "100G" of powers of ten with a step of 1000.
static const char *count_text(double value, double step, char out[16]) {
    static const char units[] = " kMGTP";
    int unit = 0;
    for (; value >= step && units[unit + 1]; unit++) value /= step;
    snprintf(out, 16, unit ? "%.0f%c" : "%.0f", value, units[unit]);
    return out;
}

static void draw_axes(struct view_frame *f, struct rect r, const struct plot *p) {
    static const char in_full[] = "operations a second, by operations a byte";
    char text[16];
    canvas_print(f->canvas, r, r.x, r.y, view_style(ROLE_DIM), "%s",
                 r.width >= (int)sizeof in_full ? in_full : "operations/s, by op/byte");
    int last = -1, right = 0;
    for (int exponent = 15; exponent >= 6; exponent--) { // decades of operations a second
        double row = row_of(p, exponent * log2(10));
        if (row < 0 || row >= p->area.height || (int)row <= last) continue;
        last = (int)row;
        canvas_print(f->canvas, r, r.x, p->area.y + last, view_style(ROLE_DIM), "%4s",
                     count_text(pow(10, exponent), 1000, text));
    }
    int y = r.y + r.height - 1;
    for (int k = 0; k <= RIGHT_LOG2; k += 2) {
        int column = (int)((k - LEFT_LOG2) * (double)p->area.width / (RIGHT_LOG2 - LEFT_LOG2));
        count_text(exp2(k), 1024, text);
        if (column < right || column + (int)strlen(text) > p->area.width) continue;
        canvas_print(f->canvas, r, p->area.x + column, y, view_style(ROLE_DIM), "%s", text);
        right = column + (int)strlen(text) + 1;
    }
}

// ---- what there is under it ----

struct mark {
    const char *name, *symbol;
    char ascii;
    enum theme_role role;
};

static void draw_point(struct view_frame *f, const struct plot *p, const struct stage_work *w, const struct mark *m) {
    if (!(w->seconds > 0 && w->bytes > 0 && w->operations > 0)) return;
    double x = (log2(w->operations / w->bytes) - LEFT_LOG2) / (RIGHT_LOG2 - LEFT_LOG2) * p->area.width;
    double y = row_of(p, log2(w->operations / w->seconds));
    int column = clamp((int)floor(x), 0, p->area.width - 1), row = clamp((int)floor(y), 0, p->area.height - 1);
    canvas_symbol(f->canvas, p->area, p->area.x + column, p->area.y + row, view_style(m->role), m->symbol, m->ascii);
}

static const struct {
    enum backend_stage stage;
    struct mark mark;
} stage_marks[] = {{STAGE_PROJECT, {"", "•", 'p', ROLE_STAGE_PROJECT}},
                   {STAGE_ATTEND, {"", "•", 'a', ROLE_STAGE_ATTEND}},
                   {STAGE_FEED, {"", "•", 'f', ROLE_STAGE_FEED}},
                   {STAGE_LOGITS, {"", "•", 'l', ROLE_STAGE_LOGITS}}};

static const struct mark decode_mark = {"decode", "●", 'D', ROLE_STRONG},
                         prefill_mark = {"prefill", "◆", 'P', ROLE_STRONG};

// "● decode 79%", "● decode cache" at the right under the roof, lowest row first. Returns the rows it took.
static int draw_key(struct view_frame *f, const struct plot *p, int from_below, const struct stage_work *w,
                    const struct mark *m, const struct view_time *t) {
    char text[32];
    enum time_limit limit;
    if (!(w->seconds > 0)) return 0;
    double share = time_limit_share(t, w, &limit);
    int width = limit == LIMIT_CACHE ? snprintf(text, sizeof text, " %s cache", m->name)
                                     : snprintf(text, sizeof text, " %s %3.0f%%", m->name, 100 * share);
    int x = p->area.x + p->area.width - width - 1, y = p->area.y + p->area.height - 1 - from_below;
    canvas_symbol(f->canvas, p->area, x, y, view_style(t->busy ? m->role : ROLE_DIM), m->symbol, m->ascii);
    canvas_print(f->canvas, p->area, x + 1, y, view_style(t->busy ? ROLE_TEXT : ROLE_DIM), "%s", text);
    return 1;
}

void view_roofline(struct view_frame *f, struct rect r, const struct view_time *t) {
    struct plot p = {.area = {r.x + GUTTER, r.y + 1, r.width - GUTTER, r.height - 2}};
    if (p.area.width < 2 || p.area.height < 2) return;
    if (!(t->most_bytes > 0 && t->most_operations > 0)) {
        canvas_cut(f->canvas, (struct rect){r.x, r.y, r.width, 1}, view_style(ROLE_DIM), "limits: measured when idle");
        return;
    }
    p.memory = log2(t->most_bytes);
    p.operations = log2(t->most_operations);
    p.top = p.operations + ABOVE_LOG2;
    p.bottom = fmin(p.memory, p.operations) + LEFT_LOG2 - BELOW_LOG2;
    draw_axes(f, r, &p);
    draw_roof(f, &p);
    draw_names(f, &p);
    for (size_t i = 0; i < sizeof stage_marks / sizeof *stage_marks; i++)
        draw_point(f, &p, &t->stages[stage_marks[i].stage], &stage_marks[i].mark);
    draw_point(f, &p, &t->decode, &decode_mark);
    draw_point(f, &p, &t->prefill, &prefill_mark);
    int keys = draw_key(f, &p, 0, &t->prefill, &prefill_mark, t);
    draw_key(f, &p, keys, &t->decode, &decode_mark, t);
}
