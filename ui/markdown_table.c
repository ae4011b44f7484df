#include "ui/markdown_table.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

static const struct style style_line = {.role = ROLE_BORDER, .ground = ROLE_GROUND};

void markdown_table_free(struct markdown_table *t) {
    free(t->cells);
    free(t->rows);
    *t = (struct markdown_table){0};
}

void markdown_table_clear(struct markdown_table *t) { t->n_cells = t->n_rows = t->flow_size = 0; }

void markdown_table_begin_row(struct markdown_table *t) {
    if (t->n_rows == t->rows_capacity) {
        t->rows_capacity = t->rows_capacity ? t->rows_capacity * 2 : 16;
        t->rows = xrealloc(t->rows, t->rows_capacity * sizeof *t->rows);
    }
    t->rows[t->n_rows++] = t->n_cells;
}

void markdown_table_end_cell(struct markdown_table *t, size_t flow_size, enum table_align align) {
    if (t->n_cells == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 64;
        t->cells = xrealloc(t->cells, t->capacity * sizeof *t->cells);
    }
    t->cells[t->n_cells++] =
        (struct markdown_table_cell){.start = t->flow_size, .end = flow_size, .at = t->flow_size, .align = align};
    t->flow_size = flow_size;
}

static size_t row_cells(const struct markdown_table *t, size_t row) {
    size_t end = row + 1 < t->n_rows ? t->rows[row + 1] : t->n_cells;
    size_t n = end - t->rows[row];
    return n < TABLE_COLUMNS ? n : TABLE_COLUMNS;
}

// The widest line of a cell, and its longest word.
static void cell_widths(const struct flow *f, const struct markdown_table_cell *c, int *line, int *word) {
    *line = *word = 0;
    for (size_t at = c->start, end; at < c->end;) {
        size_t next = flow_break(f->text, c->end, at, 1 << 20, &end);
        int width = text_width(f->text + at, end - at);
        *line = width > *line ? width : *line;
        at = next;
    }
    for (size_t at = c->start; at < c->end;) {
        size_t end = at;
        while (end < c->end && f->text[end] != ' ' && f->text[end] != '\n') end++;
        int width = text_width(f->text + at, end - at);
        *word = width > *word ? width : *word;
        at = end + 1;
    }
}

// The largest share so that columns which want less leave the rest to the others, and all fit into the room.
static int fair_share(const int *wanted, int n, int room) {
    int low = 0, high = room;
    while (low < high) {
        int middle = (low + high + 1) / 2, sum = 0;
        for (int i = 0; i < n; i++) sum += wanted[i] < middle ? wanted[i] : middle;
        if (sum <= room) low = middle;
        else high = middle - 1;
    }
    return low;
}

static void measure_cells(const struct markdown_table *t, const struct flow *f, struct markdown_table_layout *y,
                          int *words) {
    for (size_t row = 0; row < t->n_rows; row++) {
        int n = (int)row_cells(t, row);
        y->n_columns = n > y->n_columns ? n : y->n_columns;
        for (int i = 0; i < n; i++) {
            int line, word;
            cell_widths(f, &t->cells[t->rows[row] + (size_t)i], &line, &word);
            y->columns[i] = line > y->columns[i] ? line : y->columns[i];
            words[i] = word > words[i] ? word : words[i];
        }
    }
}

// Whole words are kept where all of them fit; what is left over goes to the columns that want more.
static void shrink(struct markdown_table_layout *y, int *words, int room) {
    int least = 0, beyond[TABLE_COLUMNS];
    for (int i = 0; i < y->n_columns; i++) least += words[i];
    if (least > room) memset(words, 0, TABLE_COLUMNS * sizeof *words), least = 0;
    for (int i = 0; i < y->n_columns; i++) beyond[i] = y->columns[i] - words[i];
    int share = fair_share(beyond, y->n_columns, room - least);
    for (int i = 0; i < y->n_columns; i++) y->columns[i] = words[i] + (beyond[i] < share ? beyond[i] : share);
}

bool markdown_table_measure(const struct markdown_table *t, const struct flow *f, int columns,
                            struct markdown_table_layout *y) {
    int words[TABLE_COLUMNS] = {0}, total = 0;
    *y = (struct markdown_table_layout){0};
    measure_cells(t, f, y, words);
    int room = columns - 3 * (y->n_columns - 1);
    if (room < 2 * y->n_columns) return false;
    for (int i = 0; i < y->n_columns; i++) {
        if (words[i] < 2) words[i] = 2;
        if (y->columns[i] < 2) y->columns[i] = 2;
        total += y->columns[i];
    }
    y->wrapped = total > room;
    if (y->wrapped) shrink(y, words, room);
    return true;
}

// As it is copied: with a tab between cells.
static void add_text(struct markdown_table *t, const struct flow *f, size_t row, struct lines *l) {
    const size_t n = row_cells(t, row);
    for (size_t i = 0; i < n; i++) {
        struct markdown_table_cell *c = &t->cells[t->rows[row] + i];
        c->shown = lines_text(l, f->text + c->start, c->end - c->start);
        lines_text(l, i + 1 < n ? "\t" : "\n", 1);
    }
}

bool markdown_table_row(struct markdown_table *t, const struct markdown_table_layout *y, const struct flow *f,
                        size_t row, struct lines *l, int column, bool ascii) {
    bool more = false, begins = true;
    size_t n = row_cells(t, row);
    for (size_t i = 0; i < n; i++) begins &= t->cells[t->rows[row] + i].at == t->cells[t->rows[row] + i].start;
    if (begins) add_text(t, f, row, l);
    for (int i = 0; i < y->n_columns; i++) {
        if (i) lines_repeat(l, column + 1, style_line, ascii ? "|" : "│", 1), column += 3;
        struct markdown_table_cell *c = (size_t)i < n ? &t->cells[t->rows[row] + (size_t)i] : NULL;
        if (c && c->at < c->end) {
            size_t end, next = flow_break(f->text, c->end, c->at, y->columns[i], &end);
            int left = y->columns[i] - text_width(f->text + c->at, end - c->at);
            left = left < 0 || c->align == TABLE_LEFT ? 0 : c->align == TABLE_CENTRE ? left / 2 : left;
            lines_show(l, column + left, f, c->at, end, c->shown + c->at - c->start);
            c->at = next;
            more |= c->at < c->end;
        }
        column += y->columns[i];
    }
    return more;
}

void markdown_table_rule(const struct markdown_table_layout *y, struct lines *l, int column, bool ascii) {
    const char *line = ascii ? "-" : "─";
    for (int i = 0; i < y->n_columns; i++) {
        if (i) {
            lines_repeat(l, column, style_line, line, 1);
            lines_repeat(l, column + 1, style_line, ascii ? "+" : "┼", 1);
            column = lines_repeat(l, column + 2, style_line, line, 1);
        }
        column = lines_repeat(l, column, style_line, line, y->columns[i]);
    }
}
