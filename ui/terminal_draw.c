#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "ui/terminal_parts.h"

// ---- colours ----
//
// Encoded as kind << 24 | value: the terminal's own, one of its 16 or 256, or 0xRRGGBB.
enum colour_kind { COLOUR_OWN, COLOUR_INDEX, COLOUR_TRUE };

static int colour_distance(struct theme_colour c, int red, int green, int blue) {
    int r = c.red - red, g = c.green - green, b = c.blue - blue;
    return 3 * r * r + 6 * g * g + b * b; // about how much each channel adds to what is seen
}

// Of the first 16 only hue and lightness are certain (people change theirs), so these are what is matched: the nearest
// in distance would turn most soft colours grey. On a light ground what is dark stays so: cyan and grey are hard to
// read there.
static uint32_t colour_basic(struct theme_colour c, bool on_light) {
    int most = c.red > c.green ? c.red : c.green, least = c.red < c.green ? c.red : c.green;
    if (c.blue > most) most = c.blue;
    if (c.blue < least) least = c.blue;
    if (most - least < 48) {
        int light = (3 * c.red + 6 * c.green + c.blue) / 10;
        return light < (on_light ? 112 : 48) ? 0 : light < 160 ? 8 : light < 224 ? 7 : 15;
    }
    int part = least + (most - least) * (on_light ? 14 : 9) / 20;
    return (uint32_t)((c.red > part) + 2 * (c.green > part) + 4 * (c.blue > part) + (most >= 216 ? 8 : 0));
}

// 16–231: a cube of 6 levels a channel; 232–255: greys 8, 18 … 238.
static uint32_t colour_cube(struct theme_colour c) {
    static const uint8_t levels[6] = {0, 95, 135, 175, 215, 255};
    int near[3], channels[3] = {c.red, c.green, c.blue};
    for (int k = 0; k < 3; k++) {
        near[k] = 0;
        for (int i = 1; i < 6; i++)
            if (abs(levels[i] - channels[k]) < abs(levels[near[k]] - channels[k])) near[k] = i;
    }
    int mean = (c.red + c.green + c.blue) / 3, grey = mean > 238 ? 23 : mean < 3 ? 0 : (mean - 3) / 10;
    int value = 8 + 10 * grey;
    bool cube = colour_distance(c, levels[near[0]], levels[near[1]], levels[near[2]]) <=
                colour_distance(c, value, value, value);
    return (uint32_t)(cube ? 16 + 36 * near[0] + 6 * near[1] + near[2] : 232 + grey);
}

static uint32_t colour_encode(struct theme_colour c, int colours, bool on_light) {
    if (c.own || colours < 16) return COLOUR_OWN;
    if (colours < 256) return (uint32_t)COLOUR_INDEX << 24 | colour_basic(c, on_light);
    if (colours < 1 << 24) return (uint32_t)COLOUR_INDEX << 24 | colour_cube(c);
    return (uint32_t)COLOUR_TRUE << 24 | (uint32_t)c.red << 16 | (uint32_t)c.green << 8 | c.blue;
}

// What stands for a role that has no colour: on a terminal without colours, or in a theme that gives it none.
static const uint8_t role_attributes[ROLE_COUNT] = {
    [ROLE_STRONG] = CELL_BOLD,         [ROLE_ACCENT] = CELL_BOLD,
    [ROLE_BORDER_ACTIVE] = CELL_BOLD,  [ROLE_TITLE] = CELL_BOLD,
    [ROLE_USER] = CELL_BOLD,           [ROLE_MODEL] = CELL_BOLD,
    [ROLE_HEADING] = CELL_BOLD,        [ROLE_LINK] = CELL_UNDERLINE,
    [ROLE_WARN] = CELL_BOLD,           [ROLE_BAD] = CELL_BOLD,
    [ROLE_KV_CURRENT] = CELL_BOLD,     [ROLE_KV_SHARED] = CELL_UNDERLINE,
    [ROLE_KNOB_ACTIVE] = CELL_REVERSE,
};

// True when it is another one than before.
static bool renderer_theme(struct renderer *r, const struct theme *theme) {
    if (r->themed && memcmp(&r->theme, theme, sizeof *theme) == 0) return false;
    r->theme = *theme;
    r->themed = true;
    struct theme_colour ground = theme->colours[ROLE_GROUND];
    bool on_light = !ground.own && 3 * ground.red + 6 * ground.green + ground.blue > 10 * 128;
    for (int role = 0; role < ROLE_COUNT; role++) {
        r->palette[role][0] = colour_encode(theme->colours[role], r->colours, on_light);
        for (int i = 0; i < THEME_STEPS; i++)
            r->palette[role][1 + i] = colour_encode(theme->gradients[role][i], r->colours, on_light);
    }
    return true;
}

// Nothing that could act on the terminal gets through here, whatever was put into a cell.
static uint32_t code_safe(uint32_t code, bool unicode) {
    bool hidden = utf8_is_hidden(code);
    if (!unicode) return hidden || code > 0x7e ? '?' : code;
    return hidden ? UTF8_REPLACEMENT : code;
}

static struct shown_cell cell_resolve(const struct renderer *r, const struct cell *c) {
    struct shown_cell s = {.width = c->width, .attributes = c->attributes, .known = true};
    uint8_t role = c->role < ROLE_COUNT ? c->role : ROLE_TEXT;
    uint8_t ground = c->ground && c->ground < ROLE_COUNT ? c->ground : ROLE_GROUND;
    s.fore = r->palette[role][c->shade <= THEME_STEPS ? c->shade : THEME_STEPS];
    s.back = r->palette[ground][0];
    if (s.fore == COLOUR_OWN) s.attributes |= role_attributes[role];
    if (s.back == COLOUR_OWN && ground == ROLE_SELECTED_GROUND) s.attributes |= CELL_REVERSE;
    if (c->width == 0) return s;
    for (int i = 0; i < CELL_CODES && c->codes[i] && (r->unicode || i == 0); i++)
        s.codes[i] = code_safe(c->codes[i], r->unicode);
    return s;
}

static bool cell_same(const struct shown_cell *a, const struct shown_cell *b) {
    return a->known && b->known && a->fore == b->fore && a->back == b->back && a->attributes == b->attributes &&
           a->width == b->width && memcmp(a->codes, b->codes, sizeof a->codes) == 0;
}

// ---- the frame's bytes ----

static void put_bytes(struct renderer *r, const char *bytes, size_t size) {
    if (r->size + size > r->capacity) {
        r->capacity = 2 * (r->size + size) + 4096;
        r->out = xrealloc(r->out, r->capacity);
    }
    memcpy(r->out + r->size, bytes, size);
    r->size += size;
}

static void put_text(struct renderer *r, const char *text) { put_bytes(r, text, strlen(text)); }

static void put_move(struct renderer *r, int x, int y) {
    char text[32];
    if (r->x == x && r->y == y) return;
    int ahead = r->x >= 0 && r->y == y && x > r->x ? x - r->x : 0;
    if (ahead == 1) put_text(r, "\033[C");
    else if (ahead) put_bytes(r, text, (size_t)snprintf(text, sizeof text, "\033[%dC", ahead));
    else put_bytes(r, text, (size_t)snprintf(text, sizeof text, "\033[%d;%dH", y + 1, x + 1));
    r->x = x, r->y = y;
}

static void put_colour(struct renderer *r, uint32_t colour, bool back) {
    char text[32];
    unsigned value = colour & 0xffffff, base = back ? 40 : 30;
    int n;
    switch (colour >> 24) {
    case COLOUR_TRUE:
        n = snprintf(text, sizeof text, "%u;2;%u;%u;%u;", base + 8, value >> 16, value >> 8 & 255, value & 255);
        break;
    case COLOUR_INDEX:
        if (value >= 16) n = snprintf(text, sizeof text, "%u;5;%u;", base + 8, value);
        else n = snprintf(text, sizeof text, "%u;", value < 8 ? base + value : base + 52 + value);
        break;
    default: n = snprintf(text, sizeof text, "%u;", base + 9);
    }
    put_bytes(r, text, (size_t)n);
}

static const struct {
    uint8_t attribute;
    const char *on, *off;
} sgr[] = {{CELL_BOLD, "1;", "22;"},
           {CELL_ITALIC, "3;", "23;"},
           {CELL_UNDERLINE, "4;", "24;"},
           {CELL_REVERSE, "7;", "27;"},
           {CELL_STRIKE, "9;", "29;"}};

static void put_pen(struct renderer *r, const struct shown_cell *c) {
    bool all = !r->pen_known;
    uint8_t changed = all ? 0xff : r->attributes ^ c->attributes;
    if (!changed && r->fore == c->fore && r->back == c->back) return;
    put_text(r, "\033[");
    if (all) put_text(r, "0;");
    for (size_t i = 0; i < sizeof sgr / sizeof *sgr; i++) {
        if (!(changed & sgr[i].attribute)) continue;
        if (c->attributes & sgr[i].attribute) put_text(r, sgr[i].on);
        else if (!all) put_text(r, sgr[i].off);
    }
    if (all ? c->fore != COLOUR_OWN : r->fore != c->fore) put_colour(r, c->fore, false);
    if (all ? c->back != COLOUR_OWN : r->back != c->back) put_colour(r, c->back, true);
    r->out[r->size - 1] = 'm'; // in place of the last ';'
    r->fore = c->fore, r->back = c->back, r->attributes = c->attributes;
    r->pen_known = true;
}

// ---- clusters whose width terminals disagree about ----

struct range {
    uint32_t first, last;
};

static bool code_in(uint32_t code, const struct range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

// Everyone agrees about these, as long as nothing combines with them.
static bool cell_certain(const struct shown_cell *c) {
    static const struct range narrow[] = {{0x20, 0x7e},     {0xa1, 0xa8},     {0xaa, 0xac},     {0xaf, 0x2ff},
                                          {0x370, 0x482},   {0x48a, 0x52f},   {0x1e00, 0x1fff}, {0x2010, 0x2027},
                                          {0x2030, 0x203b}, {0x20a0, 0x20bf}, {0x2190, 0x2193}, {0x2200, 0x22ff},
                                          {0x2400, 0x2426}, {0x2500, 0x25a9}, {0x2800, 0x28ff}},
                              wide[] = {{0x3041, 0x3096},
                                        {0x30a0, 0x30ff},
                                        {0x3400, 0x4dbf},
                                        {0x4e00, 0x9fff},
                                        {0xac00, 0xd7a3}};
    if (c->codes[1]) return false;
    return c->width == 2 ? code_in(c->codes[0], wide, sizeof wide / sizeof *wide)
                         : code_in(c->codes[0], narrow, sizeof narrow / sizeof *narrow);
}

// The most columns a terminal may take that knows nothing of clusters.
static int cell_widest(const struct shown_cell *c) {
    int width = 0;
    for (int i = 0; i < CELL_CODES && c->codes[i]; i++) {
        char bytes[4];
        uint32_t alone[CELL_CODES];
        int w;
        text_glyph(bytes, utf8_encode(c->codes[i], bytes), alone, &w);
        if (alone[1]) w--; // a mark: measured alone it sits on a blank
        if (w == 0) continue;
        bool doubtful = c->codes[i] >= 0x2300 && c->codes[i] < 0xfe00; // symbols, private use: one column or two
        width += c->codes[i] >= 0x10000 || doubtful ? 2 : w;
    }
    return width < c->width ? c->width : width;
}

static void put_codes(struct renderer *r, const struct shown_cell *c, int count) {
    for (int i = 0; i < count && c->codes[i]; i++) {
        char bytes[4];
        put_bytes(r, bytes, utf8_encode(c->codes[i], bytes));
    }
    for (int i = 1; !r->unicode && i < c->width; i++) put_text(r, " ");
}

// Blank columns first, in case the terminal thinks it narrower; after it, the columns it may have spilled into are
// drawn again, and the cursor is put where it belongs.
static void put_doubtful(struct renderer *r, const struct shown_cell *c, int x, int y) {
    int widest = cell_widest(c), room = r->width - x;
    for (int i = 0; i < c->width; i++) put_text(r, " ");
    r->x = -1;
    put_move(r, x, y);
    put_codes(r, c, widest <= room ? CELL_CODES : 1);
    for (int i = c->width; i < widest && i < room; i++) r->shown[y * r->width + x + i].known = false;
    r->x = -1;
}

static void put_cell(struct renderer *r, const struct shown_cell *c, int x, int y) {
    put_move(r, x, y);
    put_pen(r, c);
    if (r->unicode && !cell_certain(c)) {
        put_doubtful(r, c, x, y);
    } else {
        put_codes(r, c, CELL_CODES);
        r->x += c->width;
        if (r->x >= r->width) r->x = -1; // waiting to wrap, or not: terminals differ
    }
}

static void frame_row(struct renderer *r, const struct canvas *c, int y) {
    for (int x = 0; x < r->width; x++) {
        struct shown_cell *shown = &r->shown[y * r->width + x];
        const struct cell *cell = &c->cells[y * r->width + x];
        struct shown_cell want = cell_resolve(r, cell), right = {.known = true};
        bool wide = want.width == 2 && x + 1 < r->width;
        if (wide) right = cell_resolve(r, cell + 1);
        if (want.width != 1 && !wide) { // half of a wide cell that lost its other half
            memset(want.codes, 0, sizeof want.codes);
            want.codes[0] = ' ';
            want.width = 1;
        }
        bool same = cell_same(shown, &want) && (!wide || cell_same(shown + 1, &right));
        if (!same) {
            put_cell(r, &want, x, y);
            *shown = want;
            if (wide) shown[1] = right;
        }
        x += wide;
    }
}

// Draws the rows that are not what they were. Between frames every cell is known: what a doubtful one spills into lies
// to its right and is drawn in the same pass.
static void frame_rows(struct renderer *r, const struct canvas *c, bool all) {
    size_t size = (size_t)r->width * sizeof *r->drawn;
    for (int y = 0; y < r->height; y++) {
        const struct cell *row = c->cells + y * r->width;
        struct cell *before = r->drawn + y * r->width;
        if (!all && memcmp(before, row, size) == 0) continue;
        frame_row(r, c, y);
        memcpy(before, row, size);
    }
}

// ---- frames ----

void renderer_open(struct renderer *r, int colours, bool unicode) {
    *r = (struct renderer){.colours = colours, .unicode = unicode, .x = -1};
}

void renderer_close(struct renderer *r) {
    free(r->shown);
    free(r->drawn);
    free(r->out);
    *r = (struct renderer){0};
}

void renderer_forget(struct renderer *r) {
    free(r->shown);
    r->shown = NULL;
    r->width = r->height = 0;
}

static void frame_begin(struct renderer *r, const struct canvas *c) {
    put_text(r, "\033[?2026h");
    if (r->shown && r->width == c->width && r->height == c->height) {
        if (r->cursor_visible) put_text(r, "\033[?25l");
    } else {
        size_t n_cells = (size_t)c->width * (size_t)c->height + 1;
        free(r->shown);
        free(r->drawn);
        r->shown = xcalloc(n_cells, sizeof *r->shown);
        r->drawn = xcalloc(n_cells, sizeof *r->drawn);
        r->width = c->width, r->height = c->height;
        r->x = -1;
        r->pen_known = false;
        put_text(r, "\033[?25l\033[0m\033[2J");
    }
    r->cursor_visible = false;
}

void renderer_frame(struct renderer *r, const struct canvas *c, const struct theme *theme, int cursor_x, int cursor_y) {
    bool fresh = !r->shown || r->width != c->width || r->height != c->height;
    bool visible = cursor_x >= 0 && cursor_x < c->width && cursor_y >= 0 && cursor_y < c->height;
    bool was_visible = r->cursor_visible && !fresh;
    r->size = 0;
    bool all = renderer_theme(r, theme) || fresh;
    frame_begin(r, c);
    size_t head = r->size;
    frame_rows(r, c, all);
    bool drawn = fresh || r->size > head;
    bool moved = visible != was_visible || (visible && (cursor_x != r->cursor_x || cursor_y != r->cursor_y));
    r->cursor_visible = visible;
    r->cursor_x = cursor_x, r->cursor_y = cursor_y;
    if (!drawn && !moved) {
        r->size = 0;
        return;
    }
    if (visible) {
        put_move(r, cursor_x, cursor_y);
        put_text(r, "\033[?25h");
    }
    put_text(r, "\033[?2026l");
}
