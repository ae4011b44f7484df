#include "ui/block_cursor.h"

#include "ui/clamp.h"
#include "ui/collapse.h"
#include "ui/message_blocks.h"
#include "ui/view.h"

void block_cursor_free(struct block_cursor *c) {
    markdown_free(&c->beginning);
    flow_free(&c->flow);
}

void block_cursor_set(struct block_cursor *c, int at) {
    c->at = at;
    c->moved = at;
    c->count = 0;
}

bool block_cursor_step(struct block_cursor *c, int step) {
    const int next = c->at + step;
    if (next < 1 || (c->count && next > c->count)) return false;
    c->at = next;
    c->moved = true;
    return true;
}

// ---- rows ----

// That a beginning of the message takes when it is laid out by itself.
static int rows_of(struct block_cursor *c, const struct view_message *m, size_t size, int width, bool ascii) {
    if (m->role == VIEW_MODEL) {
        if (!size) return 0;
        markdown_layout(&c->beginning, m->text, m->size,
                        (struct markdown_options){.width = width, .ascii = ascii, .until = size});
        return (int)c->beginning.lines.n_rows;
    }
    int rows = 0;
    flow_clear(&c->flow);
    flow_add(&c->flow, view_style(ROLE_TEXT), m->text, size);
    for (size_t at = 0, end; at < c->flow.size; rows++) at = flow_break(c->flow.text, c->flow.size, at, width, &end);
    return rows;
}

static bool is_blank(const struct lines *l, int row) {
    const size_t end = (size_t)row + 1 < l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
    return l->rows[row].first_run == end && l->rows[row].fill_from < 0;
}

// In a list the rows before a block may be fewer where it ends earlier; the code before it says by how many.
static void find_rows(struct block_cursor *c, const struct view_message *m, const struct lines *l, bool ascii) {
    struct message_block b = {0};
    struct code_rows s = {0};
    c->code = 0;
    int n = 0, codes = 0, from = 0, off = 0;
    while (n < c->at && message_block_next(m->text, m->size, b.end, &b)) {
        const bool code = b.kind == BLOCK_CODE && m->role == VIEW_MODEL, chosen = ++n == c->at;
        if (!code && !chosen) continue;
        s = (struct code_rows){rows_of(c, m, b.start, c->width, ascii) + off, 0};
        s.end = rows_of(c, m, b.end, c->width, ascii) + off;
        c->code = code ? ++codes : 0;
        const struct code_rows drawn = code ? collapse_code(l, from) : (struct code_rows){0};
        if (code) from = drawn.end ? drawn.end : (int)l->n_rows;
        if (drawn.end) off += drawn.end - s.end, s = drawn;
    }
    // Definitions show where they end up: footnotes at the end of the message, behind all that was written.
    const bool hidden = s.first == s.end && m->role == VIEW_MODEL;
    if (hidden) s.first = rows_of(c, m, m->size, c->width, ascii), s.end = (int)l->n_rows;
    s.first = clamp(s.first, 0, (int)l->n_rows), s.end = clamp(s.end, s.first, (int)l->n_rows);
    while (s.first + 1 < s.end && is_blank(l, s.first)) s.first++;
    c->first = s.first, c->rows = s.end - s.first;
}

void block_cursor_place(struct block_cursor *c, const struct view_message *m, const struct lines *layout, int width,
                        bool ascii) {
    if (c->message == m->id && c->revision == m->revision && c->width == width && c->placed == c->at) return;
    struct message_block b = {0};
    c->count = 0;
    while (message_block_next(m->text, m->size, b.end, &b)) c->count++;
    c->at = c->at < c->count ? c->at : c->count;
    c->message = m->id, c->revision = m->revision, c->width = width, c->placed = c->at;
    find_rows(c, m, layout, ascii);
}
