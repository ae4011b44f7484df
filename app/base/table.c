#include "app/base/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "ui/canvas.h"
#include "ui/flow.h"

#define GAP           2 // spaces between columns
#define LABEL_COLUMNS 11
#define LEAST_TEXT    20 // columns left for the text of a fact

int output_width(FILE *out) {
    struct winsize size;
    if (!isatty(fileno(out))) return 0;
    if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int width = columns ? atoi(columns) : 0;
    return width > 0 ? width : 80;
}

static bool output_colours(FILE *out) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb");
}

void table_open(struct table *t, const struct table_column *columns, int n_columns) {
    *t = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_close(struct table *t) {
    for (int r = 0; r < t->n_rows; r++)
        for (int c = 0; c < t->n_columns; c++) free(t->rows[r].cells[c]);
    free(t->rows);
}

void table_add(struct table *t, enum table_style style, int n_cells, const char *const *cells) {
    if (t->n_rows == t->capacity) {
        t->capacity = 2 * t->capacity + 16;
        t->rows = xrealloc(t->rows, (size_t)t->capacity * sizeof *t->rows);
    }
    struct table_row *row = &t->rows[t->n_rows++];
    *row = (struct table_row){.style = style};
    for (int c = 0; c < n_cells; c++) row->cells[c] = xstrdup(cells[c]);
}

static int width_of(const char *text) { return text_width(text, strlen(text)); }

static int widest(const struct table *t, int column) {
    int most = width_of(t->columns[column].title);
    for (int r = 0; r < t->n_rows; r++) {
        int width = width_of(t->rows[r].cells[column]);
        if (width > most) most = width;
    }
    return most;
}

// Drops columns (width 0), then narrows the first, until a row fits.
static void fit(const struct table *t, int widths[TABLE_COLUMNS], int room) {
    int all = -GAP;
    for (int c = 0; c < t->n_columns; c++) all += (widths[c] = widest(t, c)) + GAP;
    while (room && all > room) {
        int drop = 0;
        for (int c = 1; c < t->n_columns; c++)
            if (widths[c] && (!drop || t->columns[c].dropped > t->columns[drop].dropped)) drop = c;
        bool last = !drop || t->columns[drop].dropped == 1;
        if (last) break;
        all -= widths[drop] + GAP;
        widths[drop] = 0;
    }
    if (room && all > room) widths[0] = widths[0] - (all - room) > 8 ? widths[0] - (all - room) : 8;
}

static void print_cell(FILE *out, const char *text, int width, bool right, bool fill) {
    size_t size = strlen(text);
    int used = width_of(text);
    bool cut = used > width;
    if (cut) size = text_fit(text, size, width - 1, &used), used++;
    if (right) fprintf(out, "%*s", width - used, "");
    fprintf(out, "%.*s%s", (int)size, text, cut ? "…" : "");
    if (!right && fill) fprintf(out, "%*s", width - used, "");
}

static void print_row(const struct table *t, FILE *out, const int *widths, char *const *cells, const char *colour) {
    int last = 0;
    for (int c = 0; c < t->n_columns; c++)
        if (widths[c]) last = c;
    fprintf(out, "%*s%s", t->indent, "", colour);
    for (int c = 0; c <= last; c++) {
        if (!widths[c]) continue;
        print_cell(out, cells[c], widths[c], t->columns[c].right, c < last);
        if (c < last) fprintf(out, "%*s", GAP, "");
    }
    fputs(*colour ? "\033[0m\n" : "\n", out);
}

void table_print(const struct table *t, FILE *out) {
    static const char *const colours[] = {[TABLE_PLAIN] = "", [TABLE_DIM] = "\033[2m"};
    int widths[TABLE_COLUMNS];
    bool colour = output_colours(out);
    char *titles[TABLE_COLUMNS];
    for (int c = 0; c < t->n_columns; c++) titles[c] = (char *)t->columns[c].title;
    int width = output_width(out);
    fit(t, widths, width > t->indent ? width - t->indent : width);
    print_row(t, out, widths, titles, colour ? "\033[1m" : "");
    for (int r = 0; r < t->n_rows; r++)
        print_row(t, out, widths, t->rows[r].cells, colour ? colours[t->rows[r].style] : "");
}

// ---- facts ----

void heading_print(FILE *out, const char *text) {
    bool colour = output_colours(out);
    fprintf(out, "%s%s%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

void fact_print(FILE *out, const char *label, const char *text) {
    bool colour = output_colours(out);
    int width = output_width(out), room = width - TABLE_INDENT - LABEL_COLUMNS;
    size_t size = strlen(text);
    if (width && room < LEAST_TEXT) room = LEAST_TEXT;
    fprintf(out, "%*s%s%-*s%s", TABLE_INDENT, "", colour ? "\033[2m" : "", LABEL_COLUMNS, label,
            colour ? "\033[0m" : "");
    for (size_t at = 0, end, next; at < size; at = next) {
        next = end = size;
        if (width) next = flow_break(text, size, at, room, &end);
        fprintf(out, "%.*s\n", (int)(end - at), text + at);
        if (next < size) fprintf(out, "%*s", TABLE_INDENT + LABEL_COLUMNS, "");
    }
    if (!size) fputc('\n', out);
}

void fact_printf(FILE *out, const char *label, const char *format, ...) {
    va_list args;
    char *text;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) panic("out of memory");
    va_end(args);
    fact_print(out, label, text);
    free(text);
}
