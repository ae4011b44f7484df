// Lines: what was laid out, as the transcript keeps and draws it: rows of runs, each of one style.
//
// Beside them stands the text as it is copied: each run shows a piece of it, or a sign that only the screen has (a
// border, a bar, a rule). A line that is wrapped is whole in it, behind each line is its newline, behind each cell of a
// table a tab. Both grow and are never shrunk, so that laying out the same message again allocates nothing.
#ifndef CONFAB_UI_LINES_H
#define CONFAB_UI_LINES_H

#include "ui/flow.h"

struct lines_run {
    uint32_t start, size; // in the text, or in the signs
    int column;
    struct style style;
    int sign; // 1: it is a sign
};

struct lines_row {
    uint32_t first_run;
    uint32_t start; // in the text: where the row began; of an empty line there is its newline
    int fill_from;  // the columns from here on have the ground `fill`; −1: none
    uint8_t fill;
    uint8_t head;   // of a row of a table below its first one: how many rows its head has,
    uint32_t above; // and how far above the first of them is; 0: it is no such row
};

// A zeroed struct lines is empty and ready for use.
struct lines {
    char *text, *signs;
    size_t size, capacity, signs_size, signs_capacity;
    struct lines_run *runs;
    size_t n_runs, runs_capacity;
    struct lines_row *rows;
    size_t n_rows, rows_capacity;
};

struct lines_mark {
    size_t size, signs_size, n_runs, n_rows;
};

void lines_free(struct lines *l);
struct lines_mark lines_mark(const struct lines *l);
void lines_cut(struct lines *l, struct lines_mark mark); // forgets all that came after the mark

// ---- making them ----

void lines_row(struct lines *l); // begins a row
void lines_fill(struct lines *l, int from, enum theme_role ground);
// The rows from `first` on are a table, the first `head` of them its head.
void lines_table(struct lines *l, size_t first, size_t head);
// Adds to the last row; each returns the column behind it.
int lines_run(struct lines *l, int column, struct style style, const char *text, size_t size);
int lines_sign(struct lines *l, int column, struct style style, const char *text, size_t size);
int lines_repeat(struct lines *l, int column, struct style style, const char *sign, int count); // each a column wide
// f->text[from..to) with its styles. lines_show: where that stands in the text already, at `at`.
int lines_flow(struct lines *l, int column, const struct flow *f, size_t from, size_t to);
int lines_show(struct lines *l, int column, const struct flow *f, size_t from, size_t to, size_t at);
// Adds text that no row shows; returns where it begins.
size_t lines_text(struct lines *l, const char *text, size_t size);
// What flow_break swallowed behind a row: f->text[from..to) where the line goes on, otherwise its newline. limit: where
// the flow ends.
void lines_end(struct lines *l, const struct flow *f, size_t from, size_t to, size_t limit);

// ---- drawing ----

// Draws one row at (x, y), `columns` wide.
void lines_draw(const struct lines *l, size_t row, struct canvas *c, struct rect clip, int x, int y, int columns);
// Draws what a row shows of text[from..to) once more, in one style.
void lines_draw_range(const struct lines *l, int row, size_t from, size_t to, struct style style, struct canvas *c,
                      struct rect clip, int x, int y);

int lines_row_end(const struct lines *l, int row); // the column behind all that is drawn in it

// ---- between rows and the text ----

// The part of the text that a row shows, from the first byte to behind the last; of an empty line its newline. False:
// it has nothing but signs.
bool lines_shown(const struct lines *l, int row, size_t *from, size_t *to);
size_t lines_at(const struct lines *l, int row, int column); // the cluster there, or the nearest one in the row
bool lines_shows(const struct lines *l, size_t at);          // otherwise it is between what rows show
int lines_column(const struct lines *l, int row, size_t at); // where the row shows it, or its text begins
int lines_row_of(const struct lines *l, size_t at);          // the row that shows it, or the last one before it

#endif
