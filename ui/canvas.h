// Canvas: the grid of cells that views draw into, by role. It knows nothing of a terminal: terminal.c turns the
// difference between two canvases into bytes.
//
// All text that enters is hostile: canvas_text decodes it, draws grapheme clusters at their width, and turns controls,
// C1, bidi overrides and invalid bytes into visible marks. No byte of it is ever forwarded.
#ifndef CONFAB_UI_CANVAS_H
#define CONFAB_UI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/theme.h"

struct rect {
    int x, y, width, height;
};

enum cell_attribute { CELL_BOLD = 1, CELL_ITALIC = 2, CELL_UNDERLINE = 4, CELL_REVERSE = 8, CELL_STRIKE = 16 };

#define CELL_CODES 8 // code points of a grapheme cluster that are kept: a family of four has seven
struct cell {
    uint32_t codes[CELL_CODES]; // codes[0] = 0: the right half of a wide cell to the left; unused ones are 0
    uint8_t role;               // enum theme_role of the foreground
    uint8_t ground;             // enum theme_role of the background; 0 is drawn as ROLE_GROUND
    uint8_t attributes;
    uint8_t shade;              // 0: the role's colour; 1–101: step of the role's gradient
    uint8_t width;              // 1 or 2; 0 for the right half
};

struct canvas {
    int width, height;
    struct cell *cells; // [height][width]
    bool ascii;         // draw symbols in plain ASCII
};

struct style {
    uint8_t role, ground, attributes, shade;
};

void canvas_open(struct canvas *c, int width, int height);
void canvas_close(struct canvas *c);
void canvas_resize(struct canvas *c, int width, int height); // content is cleared
void canvas_clear(struct canvas *c);

// Draws text from (x, y) inside clip, cut at clip's edges (a wide cluster that would be halved becomes a blank).
// Returns the columns advanced. Newlines end the drawing.
int canvas_text(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *text, size_t size);
int canvas_print(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
// Text from the beginning of a line: where it does not fit it ends in "…". Returns the columns advanced.
int canvas_cut(struct canvas *c, struct rect line, struct style s, const char *text);
// One symbol; `ascii` is drawn instead in ASCII mode.
void canvas_symbol(struct canvas *c, struct rect clip, int x, int y, struct style s, const char *symbol, char ascii);
void canvas_fill(struct canvas *c, struct rect area, struct style s, uint32_t code);
void canvas_underline(struct canvas *c, struct rect area); // what was drawn there
// A box with rounded corners: title in the top border after a raised digit (1–9, 0: none), note at the right end, both
// may be NULL.
void canvas_box(struct canvas *c, struct rect area, int digit, const char *title, const char *note,
                enum theme_role border);
struct rect rect_inside(struct rect box); // less the border
struct rect rect_after(struct rect line, int columns); // what is left of it behind them
bool rect_holds(struct rect r, int x, int y);

// ---- text measures (utf8proc) ----
// What is drawn is what is measured. A newline has width 0; a tab is one blank (who lays out lines expands it); any
// other control is one column. Marks: C0 and DEL their control picture (U+2400 …), C1, bidi overrides and the like
// U+2426, invalid bytes U+FFFD; '?' in ASCII mode.
//
// The next grapheme cluster of text[0..size): returns its bytes (≥ 1), *width its columns (0–2; controls 1 or 2 as
// drawn).
size_t text_cluster(const char *text, size_t size, int *width);
// The same, and the code points that a cell holds of it.
size_t text_glyph(const char *text, size_t size, uint32_t codes[CELL_CODES], int *width);
int text_width(const char *text, size_t size);
// Bytes of the longest prefix that fits into `columns`.
size_t text_fit(const char *text, size_t size, int columns, int *width);

// ---- graphs ----
// `values` [count], oldest first, drawn right-aligned into area, two samples a column and four levels a row in Braille
// (blocks where `braille` is false, '#' in ASCII), shaded by height along role's gradient. high ≤ 0: the largest value.
// NaN: nothing is drawn.
void canvas_graph(struct canvas *c, struct rect area, enum theme_role role, const float *values, int count, float high,
                  bool braille);
// A horizontal gauge of `width` columns, share 0–1.
void canvas_gauge(struct canvas *c, struct rect clip, int x, int y, int width, double share, enum theme_role role);

#endif
