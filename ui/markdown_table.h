// Tables of an answer: cells are ranges of one flow; columns are measured, shrunk when the table is too wide, and the
// cells wrapped. Called by markdown_block.c only.
#ifndef CONFAB_UI_MARKDOWN_TABLE_H
#define CONFAB_UI_MARKDOWN_TABLE_H

#include "ui/lines.h"

#define TABLE_COLUMNS 64

enum table_align { TABLE_LEFT, TABLE_CENTRE, TABLE_RIGHT };

struct markdown_table_cell {
    size_t start, end; // in the flow
    size_t at;         // where its next line begins while the row is drawn
    size_t shown;      // where it begins in the text of the lines
    enum table_align align;
};

// A zeroed struct markdown_table is empty and ready for use.
struct markdown_table {
    struct markdown_table_cell *cells; // row by row
    size_t n_cells, capacity;
    size_t *rows; // the first cell of each row
    size_t n_rows, rows_capacity;
    size_t flow_size; // where the next cell begins
};

struct markdown_table_layout {
    int n_columns, columns[TABLE_COLUMNS];
    bool wrapped; // some cell takes several lines
};

void markdown_table_free(struct markdown_table *t);
void markdown_table_clear(struct markdown_table *t);
void markdown_table_begin_row(struct markdown_table *t);
void markdown_table_end_cell(struct markdown_table *t, size_t flow_size, enum table_align align);

// False when there are too many columns for the width to show anything useful.
bool markdown_table_measure(const struct markdown_table *t, const struct flow *f, int columns,
                            struct markdown_table_layout *y);
// Adds the next line of a table's row to the last row of `lines`; false when that was its last.
bool markdown_table_row(struct markdown_table *t, const struct markdown_table_layout *y, const struct flow *f,
                        size_t row, struct lines *l, int column, bool ascii);
void markdown_table_rule(const struct markdown_table_layout *y, struct lines *l, int column, bool ascii);

#endif
