// Table: prints rows of text in aligned columns, and labelled facts. If the terminal is too narrow, columns are
// dropped, the least important first; output to anything but a terminal is never cut. Colours only on a terminal, and
// not with NO_COLOR.
#ifndef CONFAB_APP_TABLE_H
#define CONFAB_APP_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS 14
#define TABLE_INDENT  2 // spaces before facts, and before the rows of indented tables

struct table_column {
    const char *title;
    bool right;  // align right
    int dropped; // the column with the highest number is dropped first; 0: never
};

enum table_style { TABLE_PLAIN, TABLE_DIM };

struct table {
    const struct table_column *columns; // borrowed
    int n_columns, n_rows, capacity;
    int indent; // spaces before each row
    struct table_row {
        enum table_style style;
        char *cells[TABLE_COLUMNS];
    } *rows;
};

void table_open(struct table *t, const struct table_column *columns, int n_columns);
void table_close(struct table *t);
void table_add(struct table *t, enum table_style style, int n_cells, const char *const *cells); // copied
void table_print(const struct table *t, FILE *out);

// Prints "label      text", the text wrapped and indented. label "": continues the fact before.
void fact_print(FILE *out, const char *label, const char *text);
void fact_printf(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
void heading_print(FILE *out, const char *text);

int output_width(FILE *out); // columns of the terminal ($COLUMNS if the kernel does not know); 0: not a terminal

#endif
