// Flow: text on its way to being laid out, and what comes of it.
//
// A struct flow collects a paragraph (or a block of code) in pieces of one style each; flow_break says what of it goes
// on the next line. A struct lines holds rows of styled runs: the laid-out form that the transcript keeps and draws.
// Both grow and are never shrunk, so that laying out the same message again allocates nothing.
#ifndef CONFAB_UI_FLOW_H
#define CONFAB_UI_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

struct flow_piece {
    uint32_t end; // offset in the text at which it ends; it begins where the one before ends
    struct style style;
};

// A zeroed struct flow is empty and ready for use.
struct flow {
    char *text; // "\n" is a line break; tabs have become blanks, other control bytes are kept for the canvas to show
    size_t size, capacity;
    struct flow_piece *pieces;
    size_t n_pieces, pieces_capacity;
    int column; // characters since the last line break: where tabs stop from
};

void flow_free(struct flow *f);
void flow_clear(struct flow *f);
void flow_add(struct flow *f, struct style style, const char *text, size_t size);
void flow_add_text(struct flow *f, struct style style, const char *text); // NUL-terminated

// Gives the text from the end of the last piece up to `end` a style; flow_restyle first takes all styles away.
void flow_style(struct flow *f, struct style style, size_t end);
void flow_restyle(struct flow *f);

// Where a line of `columns` that begins at text[at] must end, at < size: *end is set to the end of what is shown on it,
// and the start of the next line is returned (the blanks or the newline between are swallowed). Breaks at blanks,
// around wide characters and after hyphens; a word longer than a line is cut between grapheme clusters. Always
// advances.
size_t flow_break(const char *text, size_t size, size_t at, int columns, size_t *end);

// ---- rows ----

struct lines_run {
    uint32_t start, size; // in the lines' text
    int column;
    struct style style;
};

struct lines_row {
    uint32_t first_run;
    int fill_from; // the columns from here on have the ground `fill`; −1: none
    uint8_t fill;
    uint8_t head;   // of a row of a table below its first one: how many rows its head has,
    uint32_t above; // and how far above the first of them is; 0: it is no such row
};

// A zeroed struct lines is empty and ready for use.
struct lines {
    char *text;
    size_t size, capacity;
    struct lines_run *runs;
    size_t n_runs, runs_capacity;
    struct lines_row *rows;
    size_t n_rows, rows_capacity;
};

struct lines_mark {
    size_t size, n_runs, n_rows;
};

void lines_free(struct lines *l);
struct lines_mark lines_mark(const struct lines *l);
void lines_cut(struct lines *l, struct lines_mark mark); // forgets all that came after the mark
void lines_row(struct lines *l);                         // begins a row
void lines_fill(struct lines *l, int from, enum theme_role ground);
// The rows from `first` on are a table, the first `head` of them its head.
void lines_table(struct lines *l, size_t first, size_t head);
// Adds a run to the last row; returns the column after it.
int lines_run(struct lines *l, int column, struct style style, const char *text, size_t size);
// Adds a run of `count` symbols, each a column wide.
int lines_repeat(struct lines *l, int column, struct style style, const char *symbol, int count);
// Adds f->text[from..to) with its styles to the last row; returns the column after it.
int lines_flow(struct lines *l, int column, const struct flow *f, size_t from, size_t to);
// Draws one row at (x, y), `columns` wide.
void lines_draw(const struct lines *l, size_t row, struct canvas *c, struct rect clip, int x, int y, int columns);

#endif
