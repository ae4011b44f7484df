// Tables of an answer: cells are ranges of one flow; columns are measured, shrunk when the table is too wide, and the
// cells wrapped. Called by markdown_block.c only.
#ifndef CONFAB_UI_MARKDOWN_TABLE_H
#define CONFAB_UI_MARKDOWN_TABLE_H

#include "ui/flow.h"

#define TABLE_COLUMNS 64

enum table_align { TABLE_LEFT, TABLE_CENTRE, TABLE_RIGHT };

struct table_cell {
    size_t start, end; // in the flow
    size_t at;         // where its next line begins while the row is drawn
    enum table_align align;
};

// A zeroed struct table is empty and ready for use.
struct table {
    struct table_cell *cells; // row by row
    size_t n_cells, capacity;
    size_t *rows; // the first cell of each row
    size_t n_rows, rows_capacity;
    size_t flow_size; // where the next cell begins
};

struct table_layout {
    int n_columns, columns[TABLE_COLUMNS];
    bool wrapped; // some cell takes several lines
};

void table_free(struct table *t);
void table_clear(struct table *t);
void table_begin_row(struct table *t);
void table_end_cell(struct table *t, size_t flow_size, enum table_align align);

// False when there are too many columns for the width to show anything useful.
bool table_measure(const struct table *t, const struct flow *f, int columns, struct table_layout *y);
// Adds the next line of a table's row to the last row of `lines`; false when that was its last.
bool table_row(struct table *t, const struct table_layout *y, const struct flow *f, size_t row, struct lines *l,
               int column, bool ascii);
void table_rule(const struct table_layout *y, struct lines *l, int column, bool ascii);

#endif
