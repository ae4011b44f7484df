// Which rows of the transcript are in sight: the position of every chat, and what is to come into sight.
#include "ui/transcript_state.h"

#include "engine/base/panic.h"

struct position *transcript_position(struct transcript *t, uint64_t chat) {
    for (int i = 0; i < t->n_positions; i++)
        if (t->positions[i].chat == chat) return &t->positions[i];
    t->positions = xrealloc(t->positions, (size_t)(t->n_positions + 1) * sizeof *t->positions);
    t->positions[t->n_positions] = (struct position){.chat = chat, .follow = true};
    return &t->positions[t->n_positions++];
}

void transcript_forget_positions(struct transcript *t, const struct screen_view *v) {
    if (t->n_positions <= v->n_chats) return;
    int kept = 0;
    for (int i = 0; i < t->n_positions; i++) {
        bool there = false;
        for (int c = 0; c < v->n_chats && !there; c++) there = v->chats[c].id == t->positions[i].chat;
        if (there) t->positions[kept++] = t->positions[i];
    }
    t->n_positions = kept;
}

static struct place moved(struct drawing *p, struct place at, int lines) {
    at.line += lines;
    while (at.line < 0 && at.message > 0) at.line += transcript_height(p, --at.message);
    if (at.line < 0) at.line = 0;
    while (at.message + 1 < p->view->n_messages && at.line >= transcript_height(p, at.message))
        at.line -= transcript_height(p, at.message++);
    return at;
}

static bool place_before(struct place a, struct place b) {
    return a.message != b.message ? a.message < b.message : a.line < b.line;
}

// The place at the top of the pane when the end is at its bottom.
static struct place bottom_place(struct drawing *p) {
    int last = p->view->n_messages - 1;
    return moved(p, (struct place){last, 0}, transcript_height(p, last) - p->area.height);
}

static struct place kept_place(struct drawing *p, struct position *at, struct place bottom) {
    for (int i = 0; !at->follow && i < p->view->n_messages; i++) {
        if (p->view->messages[i].id != at->message) continue;
        bool rewrapped = at->width != p->area.width;
        int now = transcript_height(p, i);
        int line = rewrapped && at->height > 0 ? at->line * now / at->height : at->line;
        return (struct place){i, line < now ? line : now - 1};
    }
    at->follow = true;
    return bottom;
}

// The message whose thinking was opened, when it is complete: one that still streams is read at its end.
static int revealed_message(const struct drawing *p) {
    const struct screen_view *v = p->view;
    for (int i = 0; p->t->reveal && i < v->n_messages; i++)
        if (v->messages[i].id == p->t->reveal) return v->messages[i].streaming ? -1 : i;
    return -1;
}

// With rows of a message, all of them or the first ones where there are too many.
static struct place with_rows(struct drawing *p, struct place head, int rows, struct place place) {
    if (place_before(head, place)) return head;
    struct place end = moved(p, head, rows - p->area.height);
    if (!place_before(place, end)) return place;
    return place_before(head, end) ? head : end;
}

static struct place with_message(struct drawing *p, int message, struct place place) {
    return with_rows(p, (struct place){message, 0}, transcript_height(p, message), place);
}

// With the block chosen in the selected message, where it is another one; the first one has the heading with it.
static struct place with_block(struct drawing *p, struct place place) {
    struct block_cursor *b = &p->t->block;
    if (!p->t->selected || !b->at) return place;
    const int message = p->t->selected_at;
    const struct view_message *m = &p->view->messages[message];
    const struct entry *e = transcript_entry(p, message);
    const int before = transcript_rows_before(p->t, e, m);
    b->moved |= b->width != p->area.width || b->height != p->area.height;
    b->height = p->area.height;
    block_cursor_place(b, m, transcript_lines(e), p->area.width, p->f->canvas->ascii);
    if (!b->moved || e->by_token) return place;
    const int first = collapse_in_sight(&e->parts, b->first), extra = first ? 0 : before;
    const int rows = collapse_in_sight(&e->parts, b->first + b->rows) - first;
    return with_rows(p, (struct place){message, before + first - extra}, rows + extra, place);
}

// While a message is selected, what arrives behind it does not move it.
static bool may_follow(const struct drawing *p) {
    const struct token_cursor *c = &p->t->cursor;
    if (c->message) return c->token == TOKEN_LAST;
    if (p->t->block.at || p->t->text.on) return false;
    return !p->t->selected || p->t->selected_at + 1 == p->view->n_messages;
}

// The message that the composer has the text of, once.
static int newly_edited(struct drawing *p) {
    const struct screen_view *v = p->view;
    int edited = -1;
    for (int i = 0; v->editing && i < v->n_messages; i++)
        if (v->messages[i].edited) edited = i;
    uint64_t id = edited >= 0 ? v->messages[edited].id : 0, before = p->t->edited;
    p->t->edited = id;
    return id != before ? edited : -1;
}

// With the row of the token cursor, where that has moved or the room is another.
static struct place with_token(struct drawing *p, struct place place) {
    struct token_cursor *c = &p->t->cursor;
    const int message = transcript_find_shown(p->t, c->message);
    c->moved |= c->width != p->area.width || c->height != p->area.height;
    c->width = p->area.width, c->height = p->area.height;
    if (message < 0 || !c->moved) return place;
    const int row = transcript_entry(p, message)->tokens.marked_row;
    struct place marked = {message, transcript_heading_rows(&p->view->messages[message]) + (row > 0 ? row : 0)};
    if (place_before(marked, place)) return row > 0 ? marked : (struct place){message, 0};
    struct place first = moved(p, marked, 1 - p->area.height);
    return place_before(place, first) ? first : place;
}

// With the row of the match gone to: in the middle, where it was not in sight.
static struct place with_match(struct drawing *p, struct position *at, struct place place) {
    struct message_search *s = &p->t->search;
    int message = p->view->n_messages - 1;
    while (message >= 0 && p->view->messages[message].id != s->message) message--;
    if (!s->needle.count || message < 0) return place;
    const struct view_message *m = &p->view->messages[message];
    const struct entry *e = transcript_entry(p, message);
    s->place = message_search_place(s, transcript_lines(e));
    if (!s->moved) return place;
    const int found = lines_row_of(transcript_lines(e), s->place), hides = collapse_hides(&e->parts, found);
    if (hides >= 0) { // it is to be seen
        collapse_toggle(&p->t->collapse, m->id, e->parts.at[hides].code);
        e = transcript_entry(p, message);
    }
    const int row = transcript_rows_before(p->t, e, m) + collapse_in_sight(&e->parts, found);
    const struct place match = {message, row}, end = moved(p, place, p->area.height);
    const struct place begin = moved(p, place, transcript_head_rows(p, place));
    s->moved = at->follow = false;
    return !place_before(match, begin) && place_before(match, end) ? place : moved(p, match, -p->area.height / 2);
}

// With the row of the text cursor; the first ones have the heading with them.
static struct place with_text(struct drawing *p, struct place place) {
    const struct text_cursor *c = &p->t->text;
    if (!c->moved || c->part < 0) return place;
    const struct place line = transcript_text_line(p);
    const struct place head = {line.message, line.line > 2 ? line.line : 0};
    return with_rows(p, head, line.line - head.line + 1, place);
}

struct place transcript_scrolled(struct drawing *p, struct position *at, bool *ends) {
    struct transcript *t = p->t;
    if (t->text.holds) at->follow = false;
    struct place bottom = bottom_place(p), place = kept_place(p, at, bottom);
    int page = p->area.height > 2 ? p->area.height - 2 : 1;
    if (t->pending_top) place = (struct place){0, 0}, at->follow = false;
    if (t->pending_bottom) at->follow = true;
    int lines = t->pending_lines + t->pending_pages * page;
    if (lines) place = moved(p, at->follow ? bottom : place, lines), at->follow = false;
    int revealed = revealed_message(p);
    if (revealed >= 0) place = (struct place){revealed, 0}, at->follow = false;
    if (at->follow) place = bottom;
    if (t->selected && t->show_selected) place = with_message(p, t->selected_at, place);
    place = with_block(p, place);
    place = with_token(p, place);
    place = with_match(p, at, place);
    place = with_text(p, place);
    int edited = newly_edited(p);
    if (edited >= 0) place = with_message(p, edited, place);
    *ends = !place_before(place, bottom);
    at->follow = *ends && may_follow(p);
    return *ends ? bottom : place;
}
