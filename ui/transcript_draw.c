// The transcript drawn row by row, and what can be clicked in it.
#include "ui/transcript_state.h"

#include <stdio.h>
#include <string.h>

#include "ui/clamp.h"
#include "ui/keys.h"

#define PROGRESS_COLUMNS 20

static void draw_heading(struct drawing *p, int y, int index) {
    const struct view_message *m = &p->view->messages[index];
    bool user = m->role == VIEW_USER;
    struct rect a = p->area;
    char text[48] = "";
    if (m->n_versions > 1)
        snprintf(text, sizeof text, p->f->canvas->ascii ? "<%d/%d>" : "‹%d/%d›", m->version, m->n_versions);
    int width = text_width(text, strlen(text)), x = a.x + a.width - width;
    struct rect room = {a.x, y, width ? x - a.x - 1 : a.width, 1};
    struct style title = view_bold(user ? ROLE_USER : ROLE_MODEL), more = view_style(ROLE_DIM);
    struct style named = view_style(ROLE_ACCENT);
    if (m->id == p->t->selected) title = more = named = view_chosen(p->f, (struct rect){a.x, y, a.width, 1});
    frame_hit(p->f, (struct rect){a.x, y, a.width, 1}, HIT_MESSAGE, index);
    room = rect_after(room, canvas_cut(p->f->canvas, room, title, view_author(p->view, m->role, m->author)) + 2);
    if (m->edited) room = rect_after(room, canvas_cut(p->f->canvas, room, more, "(being edited)") + 2);
    if (m->use) room = rect_after(room, canvas_print(p->f->canvas, room, room.x, y, more, "(%s)", m->use) + 2);
    if (m->name) room = rect_after(room, canvas_cut(p->f->canvas, room, named, m->name) + 2);
    if (m->model) canvas_cut(p->f->canvas, room, more, m->model);
    if (m->n_versions <= 1) return;
    canvas_text(p->f->canvas, a, x, y, more, text, strlen(text));
    frame_hit(p->f, (struct rect){x, y, width / 2, 1}, HIT_VERSION_PREVIOUS, index);
    frame_hit(p->f, (struct rect){x + width / 2, y, width - width / 2, 1}, HIT_VERSION_NEXT, index);
}

// Before the first token: what the engine is doing, so that slow and stuck can be told apart.
static void draw_progress(struct drawing *p, const struct view_message *m, int y) {
    const struct view_loading *loading = p->view->loading;
    struct rect a = p->area;
    if (m->state == REQUEST_PREFILLING && m->prefill_total > 0) {
        char done[VIEW_NUMBER], total[VIEW_NUMBER];
        int x = a.x + canvas_print(p->f->canvas, a, a.x, y, view_style(ROLE_DIM), "reading %s of %s tokens ",
                                   view_number(m->prefill_done, done), view_number(m->prefill_total, total));
        if (x + PROGRESS_COLUMNS <= a.x + a.width)
            canvas_gauge(p->f->canvas, a, x, y, PROGRESS_COLUMNS, (double)m->prefill_done / m->prefill_total,
                         ROLE_PREFILL);
    } else {
        const char *text = m->state == REQUEST_PENDING ? "waiting for a place in the batch" : "about to answer";
        if (m->parked) text = loading ? loading->text : "waiting for a model to be loaded";
        canvas_cut(p->f->canvas, (struct rect){a.x, y, a.width, 1}, view_style(ROLE_DIM), text);
    }
}

static void draw_cursor(struct drawing *p, int x, int y) {
    int last = p->area.x + p->area.width - 1;
    canvas_symbol(p->f->canvas, p->area, x < last ? x : last, y, view_style(ROLE_ACCENT), "▌", '_');
}

// Its parts that do not fit, from the last on, are left out: half a figure would be another one.
static void draw_parts(struct drawing *p, struct rect line, struct style style, const char *text) {
    size_t size = strlen(text);
    while (text_width(text, size) > line.width) {
        const char *comma = memrchr(text, ',', size);
        if (!comma) break;
        size = (size_t)(comma - text);
    }
    canvas_text(p->f->canvas, line, line.x, line.y, style, text, size);
}

// One line, so that the answer before it stays in sight.
static void draw_waiting(struct drawing *p, int y, const struct view_message *m) {
    struct rect line = {p->area.x, y, p->area.width, 1};
    char words[VIEW_WORDS];
    canvas_symbol(p->f->canvas, line, line.x, y, view_style(ROLE_DIM), "◌", '.');
    line = rect_after(line, 2);
    line = rect_after(line, canvas_cut(p->f->canvas, line, view_style(ROLE_ACCENT), "waits: "));
    canvas_cut(p->f->canvas, line, view_style(ROLE_DIM), view_words(m->text, m->size, words));
    frame_hit(p->f, (struct rect){p->area.x, y, p->area.width, 1}, HIT_WAITING, m->waiting - 1);
}

// "… 41 more rows" in place of them.
static void draw_more(struct drawing *p, int y, const struct collapse_part *part) {
    const struct rect line = {p->area.x, y, p->area.width, 1};
    char text[48];
    snprintf(text, sizeof text, "%s %d more rows", p->f->canvas->ascii ? "..." : "…", part->end - part->hidden);
    canvas_cut(p->f->canvas, rect_after(line, part->code != 0), view_style(ROLE_ACCENT), text);
}

// Where a part begins that can be collapsed, a mark in the blank column before it.
static void draw_parts_at(struct drawing *p, int y, const struct entry *e, int index, int row, int more) {
    const struct rect column = {p->area.x - 1, y, 1, 1}, line = {p->area.x, y, p->area.width, 1};
    for (int i = 0; i < e->parts.n; i++) {
        const struct collapse_part *part = &e->parts.at[i];
        const bool begins = part->first == row && i != more && column.x >= 0;
        if (begins)
            canvas_symbol(p->f->canvas, column, column.x, y, view_style(ROLE_DIM), part->closed ? "▸" : "▾",
                          part->closed ? '>' : 'v');
        if (begins || i == more)
            frame_hit(p->f, begins ? column : line, HIT_COLLAPSE, index * COLLAPSE_PARTS + i);
    }
}

static void draw_text_row(struct drawing *p, int y, const struct entry *e, int index, int row) {
    const struct view_message *m = &p->view->messages[index];
    struct rect a = p->area;
    const struct lines *l = transcript_lines(e);
    int more;
    row = collapse_row(&e->parts, row, &more);
    draw_parts_at(p, y, e, index, row, more);
    if (more >= 0) {
        draw_more(p, y, &e->parts.at[more]);
        return;
    }
    if (m->waiting) {
        draw_waiting(p, y, m);
        return;
    }
    if (l->n_rows == 0) {
        const char *nothing = m->thinking_size ? "(no answer came)" : "(nothing was said)";
        if (m->streaming) draw_progress(p, m, y);
        else canvas_text(p->f->canvas, a, a.x, y, view_style(ROLE_DIM), nothing, strlen(nothing));
        return;
    }
    const bool last = row + 1 == (int)l->n_rows; // with the end of the answer
    lines_draw(l, (size_t)row, p->f->canvas, a, a.x, y, a.width);
    message_search_draw(&p->t->search, l, row, m->id, p->f->canvas, a, a.x, y);
    transcript_text_draw(p, y, index, false, l, row, a.x);
    if (e->by_token && m->id == p->t->cursor.message)
        frame_hit(p->f, (struct rect){a.x, y, clamp(lines_row_end(l, row) + last, 0, a.width), 1}, HIT_TOKEN, row);
    if (m->streaming && last) draw_cursor(p, a.x + lines_row_end(l, row), y);
}

static void draw_thinking_hint(struct drawing *p, int x, int y) {
    char hint[2 * KEY_NAME];
    int width = snprintf(hint, sizeof hint, "   %s opens it", keys_name(COMMAND_THINKING));
    if (!*keys_name(COMMAND_THINKING) || x + width > p->area.x + p->area.width) return;
    canvas_text(p->f->canvas, p->area, x, y, view_style(ROLE_DIM), hint, (size_t)width);
}

// Row 0 says that there is thinking, the others are it.
static void draw_thinking_row(struct drawing *p, int y, const struct entry *e, int index, int row) {
    const struct view_message *m = &p->view->messages[index];
    struct canvas *c = p->f->canvas;
    struct rect a = p->area;
    struct style style = view_style(ROLE_THINKING);
    const struct lines *l = &e->thoughts.lines;
    bool open = transcript_is_open(p->t, m);
    if (row == 0) {
        char label[THOUGHTS_LABEL];
        thoughts_label(transcript_thinks(m), c->ascii, m->thinking_tokens, m->thinking_seconds, label);
        canvas_symbol(c, a, a.x, y, style, open ? "▾" : "▸", open ? 'v' : '>');
        draw_parts(p, (struct rect){a.x + THOUGHTS_INDENT, y, a.width - THOUGHTS_INDENT, 1}, style, label);
        if (transcript_thinks(m) && !open)
            draw_thinking_hint(p, a.x + THOUGHTS_INDENT + text_width(label, strlen(label)), y);
        frame_hit(p->f, (struct rect){a.x, y, a.width, 1}, HIT_THINKING, index);
        return;
    }
    if (row > (int)l->n_rows) return;
    canvas_symbol(c, a, a.x, y, style, "│", '|');
    lines_draw(l, (size_t)row - 1, c, a, a.x + THOUGHTS_INDENT, y, a.width - THOUGHTS_INDENT);
    transcript_text_draw(p, y, index, true, l, row - 1, a.x + THOUGHTS_INDENT);
    if (transcript_thinks(m) && row == (int)l->n_rows)
        draw_cursor(p, a.x + THOUGHTS_INDENT + lines_row_end(l, row - 1), y);
}

// In the blank column before it; on the screen there is one at all but the least widths.
static void draw_mark(struct drawing *p, int y) {
    struct rect column = {p->area.x - 1, y, 1, 1};
    if (column.x >= 0) canvas_symbol(p->f->canvas, column, column.x, y, view_bold(ROLE_ACCENT), "▌", '>');
}

// The rows of the block chosen in it, otherwise all of it.
static bool is_marked(const struct drawing *p, const struct entry *e, const struct view_message *m, int text_row) {
    const struct block_cursor *b = &p->t->block;
    int more;
    if (m->id != p->t->selected) return m->edited;
    if (!b->at || e->by_token) return true;
    const int row = text_row < 0 ? text_row : collapse_row(&e->parts, text_row, &more);
    return row >= b->first && row < b->first + b->rows;
}

static void draw_line(struct drawing *p, int y, struct place at) {
    const struct view_message *m = &p->view->messages[at.message];
    struct entry *e = transcript_entry(p, at.message);
    int thinking = transcript_thinking_rows(p->t, e, m), text = transcript_text_rows(e, m);
    int row = at.line - transcript_heading_rows(m);
    if (thinking) p->t->thinking_in_sight = m->id;
    p->t->last_in_sight = at.message;
    const bool marked = is_marked(p, e, m, row - thinking);
    if (marked && row < thinking + text + (m->note != NULL)) draw_mark(p, y);
    if (row < 0) draw_heading(p, y, at.message);
    else if (row < thinking) draw_thinking_row(p, y, e, at.message, row);
    else if ((row -= thinking) < text) draw_text_row(p, y, e, at.message, row);
    else if (m->note && row == text)
        draw_parts(p, (struct rect){p->area.x, y, p->area.width, 1}, view_style(ROLE_DIM), m->note);
}

// ---- the head of a table ----

#define HEAD_MOST 2 // rows: as many as two pages have in common, so that no row is hidden on both

struct table_head {
    struct entry *entry;
    uint64_t message;
    int first, rows; // of the layout; rows 0: none is to be shown
};

// Of the table that goes on at the top of the pane and fills it so far that rows of it are left below its head. The
// text cursor goes to every row, so none is covered then.
static struct table_head table_head(struct drawing *p, struct place top) {
    if (p->t->text.on) return (struct table_head){0};
    const struct view_message *m = &p->view->messages[top.message];
    struct entry *e = transcript_entry(p, top.message);
    const struct lines *l = transcript_lines(e);
    int more, line = top.line - transcript_rows_before(p->t, e, m);
    if (line < 0 || line >= transcript_text_rows(e, m)) return (struct table_head){0};
    const int row = collapse_row(&e->parts, line, &more);
    if (more >= 0 || row >= (int)l->n_rows || !l->rows[row].above) return (struct table_head){0};
    const struct lines_row *r = &l->rows[row];
    const int rows = r->head < HEAD_MOST ? r->head : HEAD_MOST;
    const bool left = row + rows < (int)l->n_rows && l->rows[row + rows].above == r->above + (uint32_t)rows;
    return (struct table_head){e, m->id, row - (int)r->above, left && p->area.height > 2 * rows ? rows : 0};
}

int transcript_head_rows(struct drawing *p, struct place top) { return table_head(p, top).rows; }

static void draw_table_head(struct drawing *p, struct place top) {
    const struct table_head head = table_head(p, top);
    const struct rect a = p->area;
    for (int i = 0; i < head.rows; i++) {
        const struct lines *l = transcript_lines(head.entry);
        canvas_fill(p->f->canvas, (struct rect){a.x, a.y + i, a.width, 1}, view_style(ROLE_TEXT), ' ');
        lines_draw(l, (size_t)(head.first + i), p->f->canvas, a, a.x, a.y + i, a.width);
        message_search_draw(&p->t->search, l, head.first + i, head.message, p->f->canvas, a, a.x, a.y + i);
    }
    if (head.rows) canvas_underline(p->f->canvas, (struct rect){a.x, a.y + head.rows - 1, a.width, 1});
}

void transcript_draw_from(struct drawing *p, struct place top) {
    struct place at = top;
    for (int y = p->area.y; y < p->area.y + p->area.height; y++) {
        draw_line(p, y, at);
        if (++at.line < transcript_height(p, at.message)) continue;
        at = (struct place){at.message + 1, 0};
        if (at.message == p->view->n_messages) break;
    }
    draw_table_head(p, top);
}
