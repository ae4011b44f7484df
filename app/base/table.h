// Table: rows of text in aligned columns, and labelled facts, for standard output. Where the terminal is too narrow
// columns are left out, the least important first; what is not written to a terminal is never cut. Colours only on a
// terminal, and not with NO_COLOR.
#ifndef CONFAB_APP_TABLE_H
#define CONFAB_APP_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS 14
#define TABLE_INDENT  2 // blanks before facts, and before rows of tables that are indented

struct table_column {
    const char *title;
    bool right;  // aligned
    int dropped; // the column with the highest number goes first; 0: it stays, and is cut
};

enum table_style { TABLE_PLAIN, TABLE_DIM };

struct table {
    const struct table_column *columns; // borrowed
    int n_columns, n_rows, capacity;
    int indent; // blanks before each row
    struct table_row {
        enum table_style style;
        char *cells[TABLE_COLUMNS];
    } *rows;
};

void table_open(struct table *t, const struct table_column *columns, int n_columns);
void table_close(struct table *t);
void table_add(struct table *t, enum table_style style, int n_cells, const char *const *cells); // copied
void table_print(const struct table *t, FILE *out);

// "label      text", the text wrapped where the terminal ends, with an indent of its own. label "": more of the one before.
void fact_print(FILE *out, const char *label, const char *text);
void fact_printf(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
void heading_print(FILE *out, const char *text);

// Of a stream: its columns, 0 when it is no terminal ($COLUMNS counts when the kernel does not know); whether colours are
// wanted there.
int output_width(FILE *out);
bool output_colours(FILE *out);

#endif
