#include "ui/collapse.h"

#include <stdlib.h>

#include "engine/base/panic.h"

void collapse_free(struct collapse *c) { free(c->toggled); }

static int find(const struct collapse *c, uint64_t message, int code) {
    for (int i = 0; i < c->n_toggled; i++)
        if (c->toggled[i].message == message && c->toggled[i].code == code) return i;
    return -1;
}

void collapse_toggle(struct collapse *c, uint64_t message, int code) {
    const int at = find(c, message, code);
    c->version++;
    if (at >= 0) {
        c->toggled[at] = c->toggled[--c->n_toggled];
        return;
    }
    c->toggled = xrealloc(c->toggled, (size_t)(c->n_toggled + 1) * sizeof *c->toggled);
    c->toggled[c->n_toggled++] = (struct collapse_toggle){message, code};
}

// ---- code in a layout ----

static bool is_code(const struct lines *l, int row) {
    return l->rows[row].fill_from >= 0 && l->rows[row].fill == ROLE_CODE_GROUND;
}

struct code_rows collapse_code(const struct lines *l, int from) {
    const int rows = (int)l->n_rows;
    while (from < rows && !is_code(l, from)) from++;
    int end = from;
    while (end < rows && is_code(l, end)) end++;
    return end > from ? (struct code_rows){from, end} : (struct code_rows){0};
}

// ---- parts of a message ----

// By itself only what is complete: where an answer is being read as it comes, it stays.
static void add(const struct collapse *c, const struct view_message *m, struct code_rows rows, int code, int least,
                struct collapse_parts *out) {
    const int height = rows.end - rows.first;
    const bool by_itself = c->longest && height > c->longest && !m->streaming && (code || m->role == VIEW_USER);
    const bool closed = by_itself != (find(c, m->id, code) >= 0);
    if (out->n == COLLAPSE_PARTS || height <= COLLAPSE_HEAD + 1 || (!closed && height < least)) return;
    out->at[out->n++] = (struct collapse_part){rows.first, rows.first + COLLAPSE_HEAD, rows.end, code, closed};
}

void collapse_find(const struct collapse *c, const struct view_message *m, const struct lines *l,
                   struct collapse_parts *out) {
    *out = (struct collapse_parts){0};
    if (m->role == VIEW_NOTICE) return;
    add(c, m, (struct code_rows){0, (int)l->n_rows}, 0, m->role == VIEW_USER ? COLLAPSE_LONG : 1 << 30, out);
    if (m->role == VIEW_USER || (out->n && out->at[0].closed)) return;
    struct code_rows rows = {0};
    for (int code = 1; (rows = collapse_code(l, rows.end)).end; code++) add(c, m, rows, code, COLLAPSE_LONG, out);
}

int collapse_rows(const struct collapse_parts *p, int rows) {
    for (int i = 0; i < p->n; i++)
        if (p->at[i].closed) rows -= p->at[i].end - p->at[i].hidden - 1;
    return rows;
}

int collapse_row(const struct collapse_parts *p, int row, int *part) {
    *part = -1;
    for (int i = 0; i < p->n && p->at[i].hidden <= row; i++) {
        if (!p->at[i].closed) continue;
        if (p->at[i].hidden == row) *part = i;
        else row += p->at[i].end - p->at[i].hidden - 1;
    }
    return row;
}

int collapse_hides(const struct collapse_parts *p, int row) {
    for (int i = 0; i < p->n; i++)
        if (p->at[i].closed && row >= p->at[i].hidden && row < p->at[i].end) return i;
    return -1;
}

int collapse_in_sight(const struct collapse_parts *p, int row) {
    int hidden = 0;
    for (int i = 0; i < p->n && p->at[i].hidden <= row; i++) {
        if (!p->at[i].closed) continue;
        const int end = row < p->at[i].end ? row + 1 : p->at[i].end;
        hidden += end - p->at[i].hidden - 1;
    }
    return row - hidden;
}
