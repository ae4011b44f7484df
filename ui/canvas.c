#include "ui/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void canvas_open(struct canvas *c, int width, int height) {
    *c = (struct canvas){0};
    canvas_resize(c, width, height);
}

void canvas_close(struct canvas *c) {
    free(c->cells);
    *c = (struct canvas){0};
}

void canvas_resize(struct canvas *c, int width, int height) {
    c->width = width > 0 ? width : 0;
    c->height = height > 0 ? height : 0;
    free(c->cells);
    c->cells = xcalloc((size_t)c->width * (size_t)c->height + 1, sizeof *c->cells);
    canvas_clear(c);
}

static struct cell cell_blank(struct style s) {
    return (struct cell){.codes = {' '},
                         .role = s.role,
                         .ground = s.ground ? s.ground : ROLE_GROUND,
                         .attributes = s.attributes,
                         .shade = s.shade,
                         .width = 1};
}

void canvas_clear(struct canvas *c) {
    struct cell blank = cell_blank((struct style){.role = ROLE_TEXT});
    size_t row = (size_t)c->width * sizeof *c->cells;
    for (int x = 0; x < c->width && c->height; x++) c->cells[x] = blank;
    for (int y = 1; y < c->height; y++) memcpy(c->cells + y * c->width, c->cells, row);
}

static struct cell *canvas_at(const struct canvas *c, int x, int y) { return &c->cells[y * c->width + x]; }

static struct rect rect_cut(struct rect r, const struct canvas *c) {
    int right = r.x + r.width, bottom = r.y + r.height;
    if (r.x < 0) r.x = 0;
    if (r.y < 0) r.y = 0;
    if (right > c->width) right = c->width;
    if (bottom > c->height) bottom = c->height;
    r.width = right > r.x ? right - r.x : 0;
    r.height = bottom > r.y ? bottom - r.y : 0;
    return r;
}

static void cell_empty(struct cell *cell) {
    memset(cell->codes, 0, sizeof cell->codes);
    cell->codes[0] = ' ';
    cell->width = 1;
}

// Puts a cell where it is known to fit; what is left of a wide cell that it half covers becomes blank.
static void canvas_put(struct canvas *c, int x, int y, struct cell cell) {
    struct cell *at = canvas_at(c, x, y);
    if (at->width == 0 && x > 0) cell_empty(at - 1);
    int last = x + cell.width - 1;
    if (canvas_at(c, last, y)->width == 2 && last + 1 < c->width) cell_empty(canvas_at(c, last + 1, y));
    *at = cell;
    if (cell.width < 2) return;
    memset(cell.codes, 0, sizeof cell.codes);
    cell.width = 0;
    at[1] = cell;
}

static int canvas_glyph(struct canvas *c, struct rect clip, int x, int y, struct style s, const uint32_t *codes,
                        int width) {
    struct cell cell = cell_blank(s);
    int right = clip.x + clip.width;
    bool halved = x < clip.x || x + width > right;
    for (int i = 0; halved && i < width; i++)
        if (x + i >= clip.x && x + i < right) canvas_put(c, x + i, y, cell);
    if (halved) return width;
    memcpy(cell.codes, codes, sizeof cell.codes);
    cell.width = (uint8_t)width;
    if (c->ascii && codes[0] >= 0x2400 && codes[0] < 0x2440) cell.codes[0] = '?';
    canvas_put(c, x, y, cell);
    return width;
}

int canvas_text(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *text, size_t size) {
    clip = rect_cut(clip, c);
    int start = x;
    if (y < clip.y || y >= clip.y + clip.height) return 0;
    for (size_t at = 0; at < size && text[at] != '\n' && x < clip.x + clip.width;) {
        uint32_t codes[CELL_CODES];
        int width;
        at += text_glyph(text + at, size - at, codes, &width);
        if (width) x += canvas_glyph(c, clip, x, y, s, codes, width);
    }
    return x - start;
}

int canvas_print(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0) return 0;
    return canvas_text(c, clip, x, y, s, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void canvas_symbol(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *symbol, char ascii) {
    if (c->ascii) canvas_text(c, clip, x, y, s, &ascii, 1);
    else canvas_text(c, clip, x, y, s, symbol, strlen(symbol));
}

int canvas_cut(struct canvas *c, struct rect line, struct style s, const char *text) {
    size_t size = strcspn(text, "\n");
    if (line.width <= 0) return 0;
    if (text_width(text, size) <= line.width) return canvas_text(c, line, line.x, line.y, s, text, size);
    int used = canvas_text(c, line, line.x, line.y, s, text, text_fit(text, size, line.width - 1, NULL));
    canvas_symbol(c, line, line.x + used, line.y, s, "…", '~');
    return used + 1;
}

void canvas_fill(struct canvas *c, struct rect area, struct style s, uint32_t code) {
    area = rect_cut(area, c);
    struct cell cell = cell_blank(s);
    cell.codes[0] = code;
    for (int y = area.y; y < area.y + area.height; y++)
        for (int x = area.x; x < area.x + area.width; x++) canvas_put(c, x, y, cell);
}

void canvas_underline(struct canvas *c, struct rect area) {
    area = rect_cut(area, c);
    for (int y = area.y; y < area.y + area.height; y++)
        for (int x = area.x; x < area.x + area.width; x++) canvas_at(c, x, y)->attributes |= CELL_UNDERLINE;
}

struct rect rect_inside(struct rect box) {
    struct rect r = {box.x + 1, box.y + 1, box.width - 2, box.height - 2};
    if (r.width < 0) r.width = 0;
    if (r.height < 0) r.height = 0;
    return r;
}

struct rect rect_after(struct rect line, int columns) {
    line.x += columns, line.width -= columns;
    return line;
}

bool rect_holds(struct rect r, int x, int y) { return x >= r.x && x < r.x + r.width && y >= r.y && y < r.y + r.height; }

static void box_frame(struct canvas *c, struct rect a, struct style s) {
    int right = a.x + a.width - 1, bottom = a.y + a.height - 1;
    for (int x = a.x + 1; x < right; x++) {
        canvas_symbol(c, a, x, a.y, s, "─", '-');
        canvas_symbol(c, a, x, bottom, s, "─", '-');
    }
    for (int y = a.y + 1; y < bottom; y++) {
        canvas_symbol(c, a, a.x, y, s, "│", '|');
        canvas_symbol(c, a, right, y, s, "│", '|');
    }
    canvas_symbol(c, a, a.x, a.y, s, "╭", '+');
    canvas_symbol(c, a, right, a.y, s, "╮", '+');
    canvas_symbol(c, a, a.x, bottom, s, "╰", '+');
    canvas_symbol(c, a, right, bottom, s, "╯", '+');
}

void canvas_box(struct canvas *c, struct rect area, int digit, const char *title, const char *note,
                enum theme_role border) {
    static const char *const raised[] = {"", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    if (area.width < 2 || area.height < 2) return;
    struct style edge = {.role = (uint8_t)border}, name = {.role = ROLE_TITLE, .attributes = CELL_BOLD};
    box_frame(c, area, edge);
    int x = area.x + 2, end = area.x + area.width - 2; // a piece of border stays beside each corner
    if (digit > 0 && digit < 10 && x < end)
        canvas_symbol(c, area, x++, area.y, (struct style){.role = ROLE_ACCENT, .attributes = CELL_BOLD}, raised[digit],
                      (char)('0' + digit));
    if (title) x += canvas_cut(c, (struct rect){x, area.y, end - x, 1}, name, title);
    if (!note) return;
    int width = text_width(note, strlen(note));
    if (x + 1 + width > end) return;
    canvas_text(c, area, end - width, area.y, (struct style){.role = ROLE_DIM}, note, strlen(note));
}
