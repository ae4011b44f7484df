#include "ui/lines.h"

#include <stdlib.h>
#include <string.h>

void lines_free(struct lines *l) {
    free(l->text);
    free(l->signs);
    free(l->runs);
    free(l->rows);
    *l = (struct lines){0};
}

struct lines_mark lines_mark(const struct lines *l) {
    return (struct lines_mark){l->size, l->signs_size, l->n_runs, l->n_rows};
}

void lines_cut(struct lines *l, struct lines_mark mark) {
    l->size = mark.size, l->signs_size = mark.signs_size, l->n_runs = mark.n_runs, l->n_rows = mark.n_rows;
}

// ---- making them ----

void lines_row(struct lines *l) {
    l->rows = flow_grown(l->rows, l->n_rows, 1, &l->rows_capacity, sizeof *l->rows);
    l->rows[l->n_rows++] =
        (struct lines_row){.first_run = (uint32_t)l->n_runs, .start = (uint32_t)l->size, .fill_from = -1};
}

void lines_fill(struct lines *l, int from, enum theme_role ground) {
    l->rows[l->n_rows - 1].fill_from = from;
    l->rows[l->n_rows - 1].fill = (uint8_t)ground;
}

void lines_table(struct lines *l, size_t first, size_t head) {
    for (size_t row = first + 1; row < l->n_rows; row++) {
        l->rows[row].above = (uint32_t)(row - first);
        l->rows[row].head = (uint8_t)(head < UINT8_MAX ? head : UINT8_MAX);
    }
}

static void add_run(struct lines *l, struct lines_run run) {
    l->runs = flow_grown(l->runs, l->n_runs, 1, &l->runs_capacity, sizeof *l->runs);
    l->runs[l->n_runs++] = run;
}

size_t lines_text(struct lines *l, const char *text, size_t size) {
    const size_t at = l->size;
    l->text = flow_grown(l->text, l->size, size, &l->capacity, 1);
    if (size) memcpy(l->text + at, text, size);
    l->size += size;
    return at;
}

int lines_run(struct lines *l, int column, struct style style, const char *text, size_t size) {
    if (size == 0) return column;
    add_run(l, (struct lines_run){(uint32_t)lines_text(l, text, size), (uint32_t)size, column, style, 0});
    return column + text_width(text, size);
}

int lines_sign(struct lines *l, int column, struct style style, const char *text, size_t size) {
    if (size == 0) return column;
    l->signs = flow_grown(l->signs, l->signs_size, size, &l->signs_capacity, 1);
    memcpy(l->signs + l->signs_size, text, size);
    add_run(l, (struct lines_run){(uint32_t)l->signs_size, (uint32_t)size, column, style, 1});
    l->signs_size += size;
    return column + text_width(text, size);
}

int lines_repeat(struct lines *l, int column, struct style style, const char *sign, int count) {
    const size_t size = strlen(sign);
    if (count <= 0) return column;
    lines_sign(l, column, style, sign, size);
    l->signs = flow_grown(l->signs, l->signs_size, size * (size_t)count, &l->signs_capacity, 1);
    for (int i = 1; i < count; i++, l->signs_size += size) memcpy(l->signs + l->signs_size, sign, size);
    l->runs[l->n_runs - 1].size = (uint32_t)(size * (size_t)count);
    return column + count;
}

// The piece that holds the byte at `at`.
static size_t piece_at(const struct flow *f, size_t at) {
    size_t low = 0, high = f->n_pieces;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->pieces[middle].end <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

int lines_show(struct lines *l, int column, const struct flow *f, size_t from, size_t to, size_t at) {
    for (size_t i = piece_at(f, from); from < to && i < f->n_pieces; i++) {
        const size_t stop = f->pieces[i].end < to ? f->pieces[i].end : to, size = stop - from;
        if (!size) continue;
        add_run(l, (struct lines_run){(uint32_t)at, (uint32_t)size, column, f->pieces[i].style, 0});
        column += text_width(f->text + from, size);
        from = stop, at += size;
    }
    return column;
}

int lines_flow(struct lines *l, int column, const struct flow *f, size_t from, size_t to) {
    return lines_show(l, column, f, from, to, lines_text(l, f->text + from, to - from));
}

void lines_end(struct lines *l, const struct flow *f, size_t from, size_t to, size_t limit) {
    const bool ends = to >= limit || (to > from && f->text[to - 1] == '\n');
    if (ends) lines_text(l, "\n", 1);
    else lines_text(l, f->text + from, to - from);
}

// ---- drawing ----

static size_t end_of(const struct lines *l, size_t row) {
    return row + 1 < l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
}

static const char *text_of(const struct lines *l, const struct lines_run *run) {
    return (run->sign ? l->signs : l->text) + run->start;
}

int lines_row_end(const struct lines *l, int row) {
    const struct lines_row *r = &l->rows[row];
    const size_t end = end_of(l, (size_t)row);
    if (r->first_run == end) return r->fill_from > 0 ? r->fill_from : 0;
    const struct lines_run *last = &l->runs[end - 1];
    return last->column + text_width(text_of(l, last), last->size);
}

void lines_draw(const struct lines *l, size_t row, struct canvas *c, struct rect clip, int x, int y, int columns) {
    const struct lines_row *r = &l->rows[row];
    if (r->fill_from >= 0 && r->fill_from < columns) {
        struct style ground = {.role = ROLE_TEXT, .ground = r->fill};
        struct rect area = {x + r->fill_from, y, columns - r->fill_from, 1};
        if (area.x + area.width > clip.x + clip.width) area.width = clip.x + clip.width - area.x;
        if (y >= clip.y && y < clip.y + clip.height && area.width > 0) canvas_fill(c, area, ground, ' ');
    }
    for (size_t i = r->first_run; i < end_of(l, row); i++) {
        const struct lines_run *run = &l->runs[i];
        canvas_text(c, clip, x + run->column, y, run->style, text_of(l, run), run->size);
    }
}

void lines_draw_range(const struct lines *l, int row, size_t from, size_t to, struct style style, struct canvas *c,
                      struct rect clip, int x, int y) {
    for (size_t i = l->rows[row].first_run; i < end_of(l, (size_t)row); i++) {
        const struct lines_run *run = &l->runs[i];
        const size_t end = run->start + run->size;
        const size_t first = from > run->start ? from : run->start, last = to < end ? to : end;
        if (run->sign || first >= last) continue;
        const int column = run->column + text_width(l->text + run->start, first - run->start);
        canvas_text(c, clip, x + column, y, style, l->text + first, last - first);
    }
}

// ---- between rows and the text ----

bool lines_shown(const struct lines *l, int row, size_t *from, size_t *to) {
    bool any = false;
    *from = l->rows[row].start, *to = row + 1 < (int)l->n_rows ? l->rows[row + 1].start : l->size;
    for (size_t i = l->rows[row].first_run; i < end_of(l, (size_t)row); i++) {
        const struct lines_run *run = &l->runs[i];
        if (run->sign) continue;
        if (!any) *from = run->start;
        *to = run->start + run->size;
        any = true;
    }
    return any || (*to > *from && l->text[*from] == '\n');
}

size_t lines_at(const struct lines *l, int row, int column) {
    size_t at = l->rows[row].start;
    bool any = false;
    for (size_t i = l->rows[row].first_run; i < end_of(l, (size_t)row); i++) {
        const struct lines_run *run = &l->runs[i];
        if (run->sign || (any && run->column > column)) continue;
        any = true;
        const char *text = l->text + run->start;
        size_t fit = column > run->column ? text_fit(text, run->size, column - run->column, NULL) : 0;
        int width;
        if (fit == run->size) { // beyond it: its last cluster
            size_t next = 0;
            for (fit = 0; next < run->size; next += text_cluster(text + next, run->size - next, &width)) fit = next;
        }
        at = run->start + fit;
    }
    return at;
}

static const struct lines_run *run_at(const struct lines *l, int row, size_t at) {
    for (size_t i = l->rows[row].first_run; i < end_of(l, (size_t)row); i++) {
        const struct lines_run *run = &l->runs[i];
        if (!run->sign && at >= run->start && at < run->start + run->size) return run;
    }
    return NULL;
}

// An empty line shows its newline.
static bool shows(const struct lines *l, int row, size_t at) {
    size_t from, to;
    return run_at(l, row, at) || (lines_shown(l, row, &from, &to) && at == from && l->text[at] == '\n');
}

bool lines_shows(const struct lines *l, size_t at) { return at < l->size && shows(l, lines_row_of(l, at), at); }

int lines_column(const struct lines *l, int row, size_t at) {
    const struct lines_run *run = run_at(l, row, at);
    const int margin = l->rows[row].fill_from + 1; // of code; without any 0
    return run ? run->column + text_width(l->text + run->start, at - run->start) : margin;
}

int lines_row_of(const struct lines *l, size_t at) {
    int row = 0;
    size_t best = 0;
    for (int i = 0; i < (int)l->n_rows; i++) {
        size_t from, to;
        if (!lines_shown(l, i, &from, &to) || from > at) continue;
        if (shows(l, i, at)) return i;
        if (from >= best) row = i, best = from;
    }
    return row;
}
