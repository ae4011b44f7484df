// Where the time goes: the share of each stage as a bar, what each reads and computes a second beside what the machine
// can do, and the roofline. In a low pane the bar stays, in a narrow one the share of each stage.
#include "ui/pane_time.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS   9  // of the mark, a blank and "project"
#define LABEL_COLUMNS  8  // of "compute "
#define LEGEND_COLUMNS 30 // from so many on it has room for the sign of percent
#define COLUMN_GAP     4  // at most, between the columns of the table
#define TABLE_HEIGHT   (1 + TIME_PARTS)
#define ROOF_HEIGHT    8
#define TABLE_LEAST    7 // rows of the pane from which on it has a table

// What the bar tells apart. Looking tokens up takes next to no time and counts as other.
enum time_part { PART_PROJECT, PART_ATTEND, PART_FEED, PART_LOGITS, PART_SAMPLE, PART_OTHER, TIME_PARTS };

static const struct {
    const char *name;
    enum backend_stage stage; // STAGE_COUNT: none
    enum theme_role role;
    const char *shape; // where colours cannot tell them apart
    char ascii;
} parts[TIME_PARTS] = {
    [PART_PROJECT] = {"project", STAGE_PROJECT, ROLE_STAGE_PROJECT, "▒", 'p'},
    [PART_ATTEND] = {"attend", STAGE_ATTEND, ROLE_STAGE_ATTEND, "░", 'a'},
    [PART_FEED] = {"feed", STAGE_FEED, ROLE_STAGE_FEED, "█", 'f'},
    [PART_LOGITS] = {"logits", STAGE_LOGITS, ROLE_STAGE_LOGITS, "▓", 'l'},
    [PART_SAMPLE] = {"sample", STAGE_SAMPLE, ROLE_STAGE_SAMPLE, "▚", 's'},
    [PART_OTHER] = {"other", STAGE_COUNT, ROLE_STAGE_OTHER, "·", 'o'},
};

struct time_picture {
    const struct view_time *time;
    struct stage_work all, works[TIME_PARTS];
    struct style label, value; // dimmed when that second is over
};

static struct stage_work sum_of(struct stage_work a, struct stage_work b) {
    return (struct stage_work){a.seconds + b.seconds, a.bytes + b.bytes, a.operations + b.operations};
}

static struct time_picture picture_of(const struct view_time *t) {
    struct time_picture p = {.time = t,
                             .all = sum_of(t->decode, t->prefill),
                             .label = view_style(ROLE_DIM),
                             .value = view_style(t->busy ? ROLE_TEXT : ROLE_DIM)};
    double rest = p.all.seconds;
    for (int i = 0; i < PART_OTHER; i++) {
        p.works[i] = t->stages[parts[i].stage];
        rest -= p.works[i].seconds;
    }
    p.works[PART_OTHER].seconds = isnan(rest) ? NAN : fmax(rest, 0);
    return p;
}

// Or nothing is known of it.
static bool nothing_ran(const struct time_picture *p) { return !(p->all.seconds > 0); }

static double share_of(const struct time_picture *p, int part) {
    return p->all.seconds > 0 && p->works[part].seconds > 0 ? p->works[part].seconds / p->all.seconds : 0;
}

static double rate_of(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

static double ratio_of(double rate, double most) { return most > 0 ? rate / most : 0; }

static bool comes_from_caches(const struct view_time *t, const struct stage_work *w) {
    return ratio_of(rate_of(w->bytes, w->seconds), t->most_bytes) > t->cache_share;
}

double time_limit_share(const struct view_time *t, const struct stage_work *w, enum time_limit *limit) {
    double memory = ratio_of(rate_of(w->bytes, w->seconds), t->most_bytes);
    double compute = ratio_of(rate_of(w->operations, w->seconds), t->most_operations);
    *limit = memory < compute ? LIMIT_COMPUTE : comes_from_caches(t, w) ? LIMIT_CACHE : LIMIT_MEMORY;
    return *limit == LIMIT_CACHE ? 0 : fmin(fmax(memory, compute), 1);
}

static const char *const limit_names[] = {
    [LIMIT_COMPUTE] = "compute", [LIMIT_MEMORY] = "memory", [LIMIT_CACHE] = "cache"};

// ---- the bar and its legend ----

static void draw_mark(struct view_frame *f, struct rect r, int x, int y, int part) {
    canvas_symbol(f->canvas, r, x, y, view_style(parts[part].role), f->without_colours ? parts[part].shape : "█",
                  parts[part].ascii);
}

static void draw_bar(struct view_frame *f, struct rect r, int y, const struct time_picture *p) {
    double until = 0;
    for (int x = 0; nothing_ran(p) && x < r.width; x++)
        canvas_symbol(f->canvas, r, r.x + x, y, view_style(ROLE_KV_FREE), "░", '-');
    for (int i = 0, x = 0; i < TIME_PARTS && !nothing_ran(p); i++) {
        until += share_of(p, i);
        int end = i == PART_OTHER ? r.width : (int)lround(until * r.width);
        for (; x < end && x < r.width; x++) draw_mark(f, r, r.x + x, y, i);
    }
}

// "█feed 61%", in ASCII "feed 61%", where there is little room without the sign.
struct legend {
    bool mark;
    const char *percent;
};

static int legend_width(const struct legend *l, uint32_t shown) {
    int width = -1;
    for (int i = 0; i < TIME_PARTS; i++)
        if (shown >> i & 1) width += l->mark + (int)strlen(parts[i].name) + 3 + (int)strlen(l->percent) + 1;
    return width;
}

// The largest parts that fit, in their order.
static void draw_legend(struct view_frame *f, struct rect r, int y, const struct time_picture *p) {
    const struct legend l = {.mark = !f->canvas->ascii, .percent = r.width < LEGEND_COLUMNS ? "" : "%"};
    uint32_t shown = (1u << TIME_PARTS) - 1;
    while (shown && legend_width(&l, shown) > r.width) {
        int least = -1;
        for (int i = 0; i < TIME_PARTS; i++)
            if (shown >> i & 1 && (least < 0 || p->works[i].seconds <= p->works[least].seconds)) least = i;
        shown &= ~(1u << least);
    }
    for (int i = 0, x = r.x; i < TIME_PARTS; i++) {
        if (!(shown >> i & 1)) continue;
        if (l.mark) draw_mark(f, r, x++, y, i);
        x += canvas_print(f->canvas, r, x, y, p->label, "%s", parts[i].name);
        if (!metric_known(p->works[i].seconds))
            x += canvas_print(f->canvas, r, x, y, p->value, "  -%*s", (int)strlen(l.percent), "") + 1;
        else x += canvas_print(f->canvas, r, x, y, p->value, " %2.0f%s", 100 * share_of(p, i), l.percent) + 1;
    }
}

// ---- memory and compute, all stages together ----

// "41.2", "0.21"; decimals: of a value below 10, one less from there on.
static const char *figure_text(double value, int decimals, char out[16]) {
    if (!(value > 0)) snprintf(out, 16, "-");
    else snprintf(out, 16, "%.*f", value < 9.995 ? decimals : value < 99.95 ? 1 : 0, value);
    return out;
}

struct time_line {
    const char *label, *unit;
    int decimals;
    double rate, most; // in that unit; most 0: not known
};

// "memory  41.2 of 52.0 GB/s   79%", shortened until it fits; in a narrow pane a gauge stands for the metrics.
static void draw_line(struct view_frame *f, struct rect r, int y, const struct time_picture *p,
                      const struct time_line *l, bool binds) {
    char rate[16], most[16], text[64], share[16] = "";
    figure_text(l->rate, l->decimals, rate), figure_text(l->most, l->decimals, most);
    if (l->most > 0 && l->rate > 0) snprintf(share, sizeof share, "%3.0f%%", 100 * l->rate / l->most);
    int x = r.x + LABEL_COLUMNS, right = r.x + r.width - (int)strlen(share), room = right - x - (share[0] > ' ');
    int size = l->most > 0 ? snprintf(text, sizeof text, "%s of %s %s", rate, most, l->unit) : 0;
    if (!size || size > room) size = snprintf(text, sizeof text, "%s %s", rate, l->unit);
    struct style value = binds && p->time->busy ? view_style(ROLE_STRONG) : p->value;
    canvas_print(f->canvas, r, r.x, y, p->label, "%s", l->label);
    if (size <= room || !share[0]) canvas_print(f->canvas, r, x, y, value, "%s", text);
    else canvas_gauge(f->canvas, r, x, y, room, l->rate / l->most, p->time->busy ? ROLE_GAUGE : ROLE_DIM);
    canvas_print(f->canvas, r, right, y, value, "%s", share);
}

// What was done is no more than can be done.
static double most_of(double most, double rate) { return most > 0 ? fmax(most, rate) : 0; }

// `n` lines; of one, the limit that is nearer.
static void draw_lines(struct view_frame *f, struct rect r, int y, int n, const struct time_picture *p) {
    enum time_limit limit;
    time_limit_share(p->time, &p->all, &limit);
    const bool by_memory = limit != LIMIT_COMPUTE, cached = comes_from_caches(p->time, &p->all);
    const double bytes = rate_of(p->all.bytes, p->all.seconds), operations = rate_of(p->all.operations, p->all.seconds);
    const struct time_line lines[2] = {
        {limit_names[cached ? LIMIT_CACHE : LIMIT_MEMORY], "GB/s", 1, bytes / 1e9,
         cached ? 0 : most_of(p->time->most_bytes, bytes) / 1e9},
        {"compute", "TOP/s", 2, operations / 1e12, most_of(p->time->most_operations, operations) / 1e12}};
    for (int i = 0; i < 2; i++)
        if (n == 2 || by_memory == (i == 0)) draw_line(f, r, y++, p, &lines[i], by_memory == (i == 0));
}

// ---- the table ----

// X(enumerator, heading, columns), in the order in which they stand
#define TIME_COLUMNS(X)                                                                                                \
    X(COLUMN_TIME, "time", 4)                                                                                          \
    X(COLUMN_READ, "GB/s", 4)                                                                                          \
    X(COLUMN_COMPUTE, "TOP/s", 5)                                                                                      \
    X(COLUMN_LIMIT, "limit", 5)                                                                                        \
    X(COLUMN_NAME, "", 7)
enum time_column {
#define X(id, heading, width) id,
    TIME_COLUMNS(X)
#undef X
        COLUMNS
};
static const struct {
    const char *heading;
    int width;
} columns[COLUMNS] = {
#define X(id, heading, width) [id] = {heading, width},
    TIME_COLUMNS(X)
#undef X
};

struct time_table {
    uint32_t shown;
    int gap, left; // columns between them, and before the first
};

// In a narrow pane the columns go from the least important on.
static struct time_table table_for(int width, bool limits) {
    static const enum time_column order[] = {COLUMN_TIME, COLUMN_READ, COLUMN_LIMIT, COLUMN_NAME, COLUMN_COMPUTE};
    struct time_table t = {0};
    int used = NAME_COLUMNS, n = 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (!limits && (order[i] == COLUMN_LIMIT || order[i] == COLUMN_NAME)) continue;
        if (used + 1 + columns[order[i]].width > width) break;
        used += 1 + columns[order[i]].width;
        t.shown |= 1u << order[i];
        n++;
    }
    int spare = n ? (width - used) / n : 0;
    t.gap = 1 + (spare < COLUMN_GAP - 1 ? spare : COLUMN_GAP - 1);
    t.left = width - used - n * (t.gap - 1);
    return t;
}

static void cell_text(const struct time_picture *p, int part, enum time_column column, char out[16]) {
    const struct stage_work *w = &p->works[part];
    enum time_limit limit;
    double share = time_limit_share(p->time, w, &limit);
    bool works = w->seconds > 0 && w->bytes > 0;
    switch (column) {
    case COLUMN_TIME:
        snprintf(out, 16, nothing_ran(p) || !metric_known(w->seconds) ? "-" : "%.0f%%", 100 * share_of(p, part));
        break;
    case COLUMN_READ: figure_text(rate_of(w->bytes, w->seconds) / 1e9, 1, out); break;
    case COLUMN_COMPUTE: figure_text(rate_of(w->operations, w->seconds) / 1e12, 2, out); break;
    case COLUMN_LIMIT:
        if (works && limit == LIMIT_CACHE) snprintf(out, 16, "%s", limit_names[limit]); // nobody knows of how much
        else snprintf(out, 16, works ? "%.0f%%" : "-", 100 * share);
        break;
    case COLUMN_NAME: snprintf(out, 16, "%s", works && limit != LIMIT_CACHE ? limit_names[limit] : ""); break;
    default: break;
    }
}

// `part` < 0: the headings.
static void draw_row(struct view_frame *f, struct rect r, int y, const struct time_table *t,
                     const struct time_picture *p, int part) {
    char text[16];
    int x = r.x + NAME_COLUMNS + t->left;
    if (part >= 0) {
        draw_mark(f, r, r.x, y, part);
        canvas_print(f->canvas, r, r.x + 2, y, p->value, "%s", parts[part].name);
    }
    for (int c = 0; c < COLUMNS; c++) {
        if (!(t->shown >> c & 1)) continue;
        if (part < 0) snprintf(text, sizeof text, "%s", columns[c].heading);
        else cell_text(p, part, (enum time_column)c, text);
        int left = c == COLUMN_NAME ? 1 : t->gap + columns[c].width - (int)strlen(text);
        canvas_print(f->canvas, r, x + left, y, part < 0 || c == COLUMN_NAME ? p->label : p->value, "%s", text);
        x += t->gap + columns[c].width;
    }
}

static void draw_table(struct view_frame *f, struct rect r, int y, bool heading, const struct time_picture *p) {
    struct time_table t = table_for(r.width, p->time->most_bytes > 0);
    if (heading) draw_row(f, r, y++, &t, p, -1);
    for (int i = 0; i < TIME_PARTS; i++) draw_row(f, r, y++, &t, p, i);
}

// ---- the pane ----

// From above: bar, table or legend, the two lines, roofline.
static void draw(struct view_frame *f, struct rect box, void *kept) {
    (void)kept;
    const struct view_time *t = f->view->time;
    bool over = t && !t->busy && t->decode.seconds + t->prefill.seconds > 0;
    struct rect r = view_pane(f, box, PANE_TIME, over ? "where the time went" : "where the time goes");
    if (!t) return;
    struct time_picture p = picture_of(t);
    bool roof = r.height >= TABLE_HEIGHT + 3 + ROOF_HEIGHT;
    int y = r.y, left = r.height - 1, spare = roof ? 0 : r.height - TABLE_HEIGHT - 3; // rows for blanks
    draw_bar(f, r, y++, &p);
    if (r.height >= TABLE_LEAST) {
        bool heading = left > TIME_PARTS;
        if (spare > 2) draw_bar(f, r, y++, &p), left--;
        if (spare > 1) y++, left--;
        draw_table(f, r, y, heading, &p);
        y += TIME_PARTS + heading, left -= TIME_PARTS + heading;
    } else if (left > 0) {
        draw_legend(f, r, y++, &p);
        left--;
    }
    if (spare > 0) y++, left--;
    int lines = left < 2 ? left : 2;
    draw_lines(f, r, y, lines, &p);
    y += lines, left -= lines;
    if (roof) view_roofline(f, (struct rect){r.x, y, r.width, left}, t);
}

const struct pane pane_time = {.draw = draw};
