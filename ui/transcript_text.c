// The text cursor of the transcript: keys and the mouse move it over the text of all messages, from where it is
// anchored text is selected, and copied as it is meant: lines.h. Keys may come faster than draws; what they lead to is
// found in the layout of the next one.
//
// The text of a message lies in two parts, the thinking, where that is open, and the rest. Where the cursor is does not
// depend on the width.
#include "ui/transcript_state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

// ---- parts ----

static int part_count(const struct drawing *p) { return 2 * p->view->n_messages; }

// NULL: there is no text in it.
static const struct lines *part_lines(struct drawing *p, int part) {
    const struct view_message *m = &p->view->messages[part / 2];
    const struct entry *e = transcript_entry(p, part / 2);
    const bool thinking = part % 2 == 0, open = !e->by_token && transcript_is_open(p->t, m);
    const struct lines *l = thinking ? &e->thoughts.lines : transcript_lines(e);
    return !m->waiting && l->size && (!thinking || open) ? l : NULL;
}

// The next part that has text in this direction; −1: none has.
static int part_beside(struct drawing *p, int part, int direction) {
    do part += direction;
    while (part >= 0 && part < part_count(p) && !part_lines(p, part));
    return part < part_count(p) ? part : -1;
}

static const struct collapse_parts *hidden_in(const struct drawing *p, int part) {
    static const struct collapse_parts none;
    return part % 2 ? &p->t->entries[part / 2].parts : &none;
}

// Rows that a cursor can be in.
static bool is_stop(const struct drawing *p, int part, const struct lines *l, int row) {
    size_t from, to;
    return lines_shown(l, row, &from, &to) && collapse_hides(hidden_in(p, part), row) < 0;
}

// ---- places ----

static struct text_place place_of(struct drawing *p, const struct text_spot *s) {
    const struct screen_view *v = p->view;
    int message = 0;
    while (message < v->n_messages && v->messages[message].id != s->message) message++;
    if (!s->message || message == v->n_messages) return (struct text_place){-1, 0};
    struct text_place at = {2 * message + !s->thinking, s->at};
    const struct lines *l = part_lines(p, at.part);
    if (l && at.at >= l->size) at.at = l->size - 1; // it has changed
    if (l) return at;
    const int after = part_beside(p, at.part, 1);
    return (struct text_place){after >= 0 ? after : part_beside(p, at.part, -1), 0};
}

static struct text_spot spot_of(const struct drawing *p, struct text_place at) {
    if (at.part < 0) return (struct text_spot){0};
    return (struct text_spot){p->view->messages[at.part / 2].id, at.part % 2 == 0, at.at};
}

static bool place_less(struct text_place a, struct text_place b) {
    return a.part != b.part ? a.part < b.part : a.at < b.at;
}

// From here on a letter that is shown.
static size_t shown_from(const struct lines *l, size_t at, enum text_step step) {
    while (at != TEXT_BEYOND && !lines_shows(l, at)) at = text_motion(l->text, l->size, at, step);
    return at;
}

static struct text_place settled(struct drawing *p, struct text_place at, bool forward) {
    const struct lines *l = part_lines(p, at.part);
    const size_t from = at.at < l->size ? at.at : l->size - 1;
    at.at = shown_from(l, from, forward ? TEXT_RIGHT : TEXT_LEFT);
    if (at.at == TEXT_BEYOND) at.at = shown_from(l, from, forward ? TEXT_LEFT : TEXT_RIGHT);
    if (at.at == TEXT_BEYOND) at.at = 0;
    return at;
}

// ---- what is selected ----

// From the first of both to behind the last; whole lines: without the last newline.
static struct text_range range_of(struct drawing *p, struct text_place a, struct text_place b, bool lines) {
    struct text_range r = place_less(b, a) ? (struct text_range){b, a} : (struct text_range){a, b};
    const struct lines *low = part_lines(p, r.low.part), *high = part_lines(p, r.high.part);
    if (lines) r.low.at = text_motion_line(low->text, r.low.at);
    if (lines) r.high.at = text_motion_line_end(high->text, high->size, r.high.at);
    else r.high.at = text_motion_next(high->text, high->size, r.high.at);
    return r;
}

// The part of it that lies in this one.
static void range_in(const struct text_range *r, int part, size_t size, size_t *from, size_t *to) {
    *from = part < r->low.part ? size : part == r->low.part ? r->low.at : 0;
    *to = part > r->high.part ? 0 : part == r->high.part ? r->high.at : size;
    if (*to > size) *to = size;
}

// An empty line comes between the texts of two parts.
static void copy(struct drawing *p, struct text_place a, struct text_place b, bool lines) {
    struct text_cursor *c = &p->t->text;
    const struct text_range r = range_of(p, a, b, lines);
    free(c->copied);
    FILE *f = open_memstream(&c->copied, &c->copied_size);
    for (int part = r.low.part; part >= 0 && part <= r.high.part; part = part_beside(p, part, 1)) {
        const struct lines *l = part_lines(p, part);
        size_t from, to;
        range_in(&r, part, l->size, &from, &to);
        if (part > r.low.part) fputc('\n', f);
        if (from < to) fwrite(l->text + from, 1, to - from, f);
    }
    fclose(f);
    while (c->copied_size && c->copied[c->copied_size - 1] == '\n') c->copied_size--;
}

// ---- steps ----

static void by_row(struct drawing *p, struct text_place *at, int direction) {
    struct text_cursor *c = &p->t->text;
    const struct lines *l = part_lines(p, at->part);
    int row = lines_row_of(l, at->at);
    if (c->column < 0) c->column = lines_column(l, row, at->at);
    for (int part = at->part; part >= 0; part = part_beside(p, part, direction)) {
        l = part_lines(p, part);
        row = part == at->part ? row + direction : direction > 0 ? 0 : (int)l->n_rows - 1;
        while (row >= 0 && row < (int)l->n_rows && !is_stop(p, part, l, row)) row += direction;
        if (row < 0 || row >= (int)l->n_rows) continue;
        *at = (struct text_place){part, lines_at(l, row, c->column)};
        return;
    }
}

// A page takes what is in sight with it.
static void by_rows(struct drawing *p, struct text_place *at, enum text_step step) {
    const int height = p->area.height, page = height > 2 ? height - 2 : 1;
    const int direction = step == TEXT_UP || step == TEXT_HALF_UP || step == TEXT_PAGE_UP ? -1 : 1;
    const bool one = step == TEXT_UP || step == TEXT_DOWN, half = step == TEXT_HALF_UP || step == TEXT_HALF_DOWN;
    const int rows = one ? 1 : half ? (page + 1) / 2 : page;
    for (int i = 0; i < rows; i++) by_row(p, at, direction);
    if (!one) p->t->pending_lines += direction * rows;
}

static void by_text(struct drawing *p, struct text_place *at, enum text_step step) {
    const bool back = step <= TEXT_BLOCK_BACK;
    const struct lines *l = part_lines(p, at->part);
    size_t next = text_motion(l->text, l->size, at->at, step);
    p->t->text.column = step == TEXT_LINE_END ? INT_MAX : -1;
    if (next == TEXT_BEYOND) {
        const int part = part_beside(p, at->part, back ? -1 : 1);
        if (part < 0) return;
        l = part_lines(p, at->part = part);
        next = back ? text_motion(l->text, l->size, l->size, step) : 0;
        if (next == TEXT_BEYOND) next = 0;
        const size_t first = settled(p, (struct text_place){part, 0}, true).at;
        if (step == TEXT_WORD_END) next = text_motion_word_end(l->text, l->size, first);
    }
    at->at = next;
    *at = settled(p, *at, !back && step != TEXT_LINE_END);
}

static void to_end(struct drawing *p, struct text_place *at, bool last) {
    const int part = part_beside(p, last ? part_count(p) : -1, last ? -1 : 1);
    if (part < 0) return;
    at->part = part;
    at->at = last ? part_lines(p, part)->size - 1 : 0;
    *at = settled(p, *at, !last);
}

static struct text_place match_place(struct drawing *p) {
    const struct message_search *s = &p->t->search;
    const struct text_spot spot = {s->message, false, 0};
    struct text_place at = place_of(p, &spot);
    if (at.part < 0) return at;
    at.at = message_search_place(s, part_lines(p, at.part));
    return settled(p, at, true);
}

// The search goes on from the cursor.
static struct text_place to_match(struct drawing *p, struct text_place at, int direction) {
    struct message_search *s = &p->t->search;
    const size_t from = direction > 0 ? at.at + 1 : at.at;
    if (!s->needle.count) return at;
    const int before = at.part % 2 ? message_search_before(s, part_lines(p, at.part), from) : 0;
    s->message = p->view->messages[at.part / 2].id;
    s->match = direction > 0 ? before - 1 : before;
    s->step = direction;
    message_search_update(s, p->view, at.part / 2);
    return s->moved ? match_place(p) : at;
}

static int block_row(const struct drawing *p, const struct lines *l) {
    const int row = p->t->block.at ? p->t->block.first : 0;
    return row < (int)l->n_rows ? row : 0;
}

// In the selected message, otherwise in the last row in sight.
static struct text_place beginning(struct drawing *p) {
    const struct transcript *t = p->t;
    const struct text_cursor *c = &t->text;
    if (t->search.message) return match_place(p);
    if (t->selected) {
        const struct text_spot spot = {t->selected, false, 0};
        struct text_place at = place_of(p, &spot);
        if (at.part >= 0) at.at = lines_at(part_lines(p, at.part), block_row(p, part_lines(p, at.part)), 0);
        return at.part < 0 ? at : settled(p, at, true);
    }
    for (int i = c->n_rows - 1; i >= 0; i--) {
        const struct text_spot spot = {c->rows[i].message, c->rows[i].thinking, c->rows[i].at};
        if (spot.message) return place_of(p, &spot);
    }
    struct text_place at = {-1, 0};
    to_end(p, &at, true);
    return at;
}

static void take_step(struct drawing *p, struct text_place *at, enum text_step step) {
    struct text_cursor *c = &p->t->text;
    const struct text_place anchor = place_of(p, &c->anchor);
    if (step == TEXT_BEGIN || at->part < 0) *at = beginning(p);
    if (at->part < 0) return;
    if (step <= TEXT_LINE_END) by_text(p, at, step);
    else if (step <= TEXT_PAGE_DOWN) by_rows(p, at, step);
    else if (step <= TEXT_BOTTOM) to_end(p, at, step == TEXT_BOTTOM);
    else if (step <= TEXT_MATCH_BELOW) *at = to_match(p, *at, step == TEXT_MATCH_BELOW ? 1 : -1);
    else if (step == TEXT_ANCHOR || anchor.part < 0) c->anchor = spot_of(p, *at);
    else if (step == TEXT_OTHER_END) c->anchor = spot_of(p, *at), *at = anchor;
    else if (step == TEXT_COPY || step == TEXT_COPY_LINES) copy(p, anchor, *at, step == TEXT_COPY_LINES);
    if (step > TEXT_PAGE_DOWN) c->column = -1;
}

void transcript_text_apply(struct drawing *p) {
    struct text_cursor *c = &p->t->text;
    c->x = c->y = c->part = -1;
    c->range = (struct text_range){{INT_MAX, 0}, {-1, 0}};
    if (!c->on) return;
    struct text_place at = place_of(p, &c->at);
    if (p->t->search.moved) at = match_place(p);
    if (at.part < 0) at = beginning(p);
    for (int i = 0; i < c->n_steps; i++) take_step(p, &at, c->steps[i]);
    c->moved |= c->n_steps || c->width != p->area.width || c->height != p->area.height;
    c->width = p->area.width, c->height = p->area.height;
    c->n_steps = 0;
    if (at.part < 0) return;
    at = settled(p, at, true);
    c->at = spot_of(p, at);
    const struct lines *l = part_lines(p, at.part);
    c->part = at.part, c->row = lines_row_of(l, at.at), c->row_column = lines_column(l, c->row, at.at);
    const int hides = collapse_hides(hidden_in(p, at.part), c->row);
    if (hides >= 0) collapse_toggle(&p->t->collapse, c->at.message, hidden_in(p, at.part)->at[hides].code);
    const struct text_place anchor = place_of(p, &c->anchor);
    if (anchor.part < 0) c->kind = TEXT_NONE;
    if (c->kind) c->range = range_of(p, anchor, at, c->kind == TEXT_LINES);
}

struct place transcript_text_line(struct drawing *p) {
    const struct text_cursor *c = &p->t->text;
    const int message = c->part / 2;
    const struct view_message *m = &p->view->messages[message];
    const struct entry *e = transcript_entry(p, message);
    if (c->part % 2 == 0) return (struct place){message, transcript_heading_rows(m) + 1 + c->row};
    return (struct place){message, transcript_rows_before(p->t, e, m) + collapse_in_sight(&e->parts, c->row)};
}

// ---- drawing ----

void transcript_text_begin_rows(struct drawing *p) {
    struct text_cursor *c = &p->t->text;
    if (p->area.height > c->rows_room) {
        c->rows_room = p->area.height;
        c->rows = xrealloc(c->rows, (size_t)c->rows_room * sizeof *c->rows);
    }
    c->n_rows = p->area.height;
    c->top = p->area.y;
    memset(c->rows, 0, (size_t)c->n_rows * sizeof *c->rows);
}

void transcript_text_draw(struct drawing *p, int y, int message, bool thinking, const struct lines *l, int row, int x) {
    struct text_cursor *c = &p->t->text;
    const struct style selected = {ROLE_SELECTED, ROLE_SELECTED_GROUND, 0, 0};
    const int part = 2 * message + !thinking;
    size_t from, to, first, last;
    if (!lines_shown(l, row, &first, &last)) return;
    c->rows[y - c->top] = (struct text_row){p->view->messages[message].id, thinking, row, x, first};
    range_in(&c->range, part, l->size, &from, &to);
    lines_draw_range(l, row, from, to, selected, p->f->canvas, p->area, x, y);
    if (l->text[first] == '\n' && from <= first && first < to)
        canvas_text(p->f->canvas, p->area, x + lines_column(l, row, first), y, selected, " ", 1);
    if (c->on && part == c->part && row == c->row) c->x = x + c->row_column, c->y = y;
}

// ---- what is asked of it ----

bool transcript_text_begin(struct transcript *t) {
    if (!t->n_shown) return false;
    if (!t->text.on) transcript_text_step(t, TEXT_BEGIN);
    t->text.on = true;
    return true;
}

void transcript_text_end(struct transcript *t) {
    t->text.on = false;
    t->text.kind = TEXT_NONE;
    t->text.n_steps = 0;
    t->text.at = t->text.anchor = (struct text_spot){0};
}

void transcript_text_step(struct transcript *t, enum text_step step) {
    if (t->text.n_steps < TEXT_STEPS) t->text.steps[t->text.n_steps++] = step;
}

void transcript_text_select(struct transcript *t, enum text_kind kind) {
    if (!t->text.kind) transcript_text_step(t, TEXT_ANCHOR);
    t->text.kind = kind == t->text.kind ? TEXT_NONE : kind;
}

enum text_kind transcript_text_kind(const struct transcript *t) { return t->text.kind; }

void transcript_text_copy(struct transcript *t, bool quote) {
    t->text.quotes = quote;
    if (!t->text.kind) transcript_text_step(t, TEXT_ANCHOR);
    transcript_text_step(t, t->text.kind == TEXT_LETTERS ? TEXT_COPY : TEXT_COPY_LINES);
    t->text.kind = TEXT_NONE;
}

char *transcript_text_copied(struct transcript *t, size_t *size, bool *quote) {
    char *text = t->text.copied;
    *quote = t->text.quotes;
    *size = t->text.copied_size;
    t->text.copied = NULL;
    return text;
}

uint64_t transcript_text_message(const struct transcript *t) { return t->text.at.message; }

bool transcript_text_cursor(const struct transcript *t, int *x, int *y) {
    *x = t->text.x, *y = t->text.y;
    return t->text.on && t->text.x >= 0;
}
