#include <math.h>

#include "ui/canvas.h"
#include "ui/clamp.h"

// One column of a graph: the levels of its two samples, and where the taller one stands in the role's gradient.
struct column {
    int left, right;
    double share;
};

static double graph_share(float value, double high) {
    if (!(value > 0) || !(high > 0)) return 0;
    return value < high ? value / high : 1;
}

// Every sample that exists has at least one level, so that the axis is seen; no sample, or NaN, has none.
static int graph_levels(const float *values, int count, int i, double high, int levels, double *share) {
    if (i < 0 || i >= count || isnan(values[i])) return 0;
    double s = graph_share(values[i], high);
    if (s > *share) *share = s;
    int n = (int)lround(s * levels);
    return n < 1 ? 1 : n;
}

static uint32_t braille_code(int left, int right) {
    static const uint8_t left_dots[] = {0x00, 0x40, 0x44, 0x46, 0x47}, right_dots[] = {0x00, 0x80, 0xa0, 0xb0, 0xb8};
    return 0x2800u + left_dots[left] + right_dots[right];
}

struct graph {
    int levels;  // a row
    int samples; // a column
    uint32_t (*code)(int left, int right);
};

static uint32_t block_code(int left, int right) { return (void)right, left ? 0x2580u + (uint32_t)left : ' '; }
static uint32_t ascii_code(int left, int right) { return (void)right, (uint32_t) " .:#"[left]; }

static const struct graph graph_braille = {4, 2, braille_code}, graph_block = {8, 1, block_code},
                          graph_ascii = {3, 1, ascii_code};

static struct column graph_column(const struct graph *g, int rows, const float *values, int count, int last,
                                  double high) {
    struct column k = {0};
    int levels = g->levels * rows;
    if (g->samples == 2) k.left = graph_levels(values, count, last - 1, high, levels, &k.share);
    *(g->samples == 2 ? &k.right : &k.left) = graph_levels(values, count, last, high, levels, &k.share);
    return k;
}

void canvas_graph(struct canvas *c, struct rect area, enum theme_role role, const float *values, int count, float high,
                  bool braille) {
    const struct graph *g = c->ascii ? &graph_ascii : braille ? &graph_braille : &graph_block;
    double top = high;
    for (int i = 0; high <= 0 && i < count; i++)
        if (isfinite(values[i]) && values[i] > top) top = values[i];
    for (int x = 0; x < area.width; x++) {
        int last = count - 1 - (area.width - 1 - x) * g->samples;
        struct column k = graph_column(g, area.height, values, count, last, top);
        for (int row = 0; row < area.height; row++) { // from the bottom
            int left = clamp(k.left - row * g->levels, 0, g->levels),
                right = clamp(k.right - row * g->levels, 0, g->levels);
            if (!left && !right) break;
            double height = (row + 1.0) / area.height;
            struct style s = {.role = (uint8_t)role, .shade = (uint8_t)(1 + lround(100 * fmin(k.share, height)))};
            canvas_fill(c, (struct rect){area.x + x, area.y + area.height - 1 - row, 1, 1}, s, g->code(left, right));
        }
    }
}

void canvas_gauge(struct canvas *c, struct rect clip, int x, int y, int width, double share, enum theme_role role) {
    double s = share > 0 ? fmin(share, 1) : 0;
    int full = (int)lround(s * width);
    if (s > 0 && full == 0) full = 1; // something is not nothing, and not all is not all
    if (s < 1 && full == width) full = width - 1;
    for (int i = 0; i < width; i++) {
        struct style on = {.role = (uint8_t)role, .shade = (uint8_t)(1 + 100 * i / (width > 1 ? width - 1 : 1))};
        if (i < full) canvas_symbol(c, clip, x + i, y, on, "▓", '#');
        else canvas_symbol(c, clip, x + i, y, (struct style){.role = ROLE_KV_FREE}, "░", '-');
    }
}
