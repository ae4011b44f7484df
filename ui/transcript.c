#include "ui/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/block_cursor.h"
#include "ui/clamp.h"
#include "ui/collapse.h"
#include "ui/keys.h"
#include "ui/markdown.h"
#include "ui/message_search.h"
#include "ui/thoughts.h"

#define PROGRESS_COLUMNS 20
#define NAME             200 // bytes of a branch's name that are kept

// The layout of the message at the same index. Heights: a heading line, the thinking (a line, and its rows when it is
// open), the rows, a note, a blank line between messages.
struct entry {
    uint64_t id;
    uint32_t revision;
    enum view_role role;
    int version, width;
    bool ascii, streaming, valid;
    struct markdown layout;
    bool by_token;
    int n_drawn;
    struct token_layout tokens;
    struct token_layout_options options; // that it was made with
    struct thoughts thoughts;
    struct collapse_parts parts; // that can be collapsed
    uint32_t parts_version;      // of t->collapse, as of which
};

struct position {
    uint64_t chat, message;
    int line, height; // of the message at the top of the pane: its first line in sight, and its height then
    int width;        // of the pane then
    bool follow;
    uint64_t seen_message; // what the end was when it was last in sight
    size_t seen_size;
};

struct transcript {
    struct entry *entries;
    int n_entries;
    struct position *positions;
    int n_positions;
    uint64_t *open; // ids of the messages whose thinking is open
    int n_open;
    uint64_t thinking_in_sight; // the last message in sight that has some; 0: none
    uint64_t reveal;            // the message whose thinking is to be in sight at the next draw; 0: none
    uint64_t *shown;            // of the last draw: the ids of the messages, 0 of a notice
    int n_shown, shown_room, last_in_sight;
    uint64_t selected; // 0: none
    int selected_at;   // its place among those shown
    char selected_name[NAME];
    struct block_cursor block; // of the selected message
    struct collapse collapse;
    bool collapses; // or expands what is selected, at the next draw
    uint64_t edited; // of the last draw; 0: none
    struct token_cursor cursor;
    enum token_colouring colouring;
    int *shown_tokens;  // of those shown: how many are known
    bool show_selected; // it is to come into sight at the next draw
    struct message_search search;
    struct flow flow;
    int pending_lines, pending_pages;
    bool pending_top, pending_bottom;
    unsigned long layouts;
};

// What one draw works on.
struct drawing {
    struct transcript *t;
    struct view_frame *f;
    const struct screen_view *view;
    struct rect area;
};

struct place {
    int message, line;
};

struct transcript *transcript_open(void) {
    return xcalloc(1, sizeof(struct transcript));
}

void transcript_close(struct transcript *t) {
    if (!t) return;
    for (int i = 0; i < t->n_entries; i++) {
        markdown_free(&t->entries[i].layout);
        thoughts_free(&t->entries[i].thoughts);
        token_layout_free(&t->entries[i].tokens);
    }
    free(t->entries);
    free(t->positions);
    free(t->open);
    free(t->shown);
    free(t->shown_tokens);
    flow_free(&t->flow);
    block_cursor_free(&t->block);
    collapse_free(&t->collapse);
    message_search_free(&t->search);
    free(t);
}

void transcript_scroll(struct transcript *t, int lines) { t->pending_lines += lines; }
void transcript_pages(struct transcript *t, int pages) { t->pending_pages += pages; }
void transcript_top(struct transcript *t) { t->pending_top = true; }
void transcript_bottom(struct transcript *t) { t->pending_bottom = true; }

// ---- thinking, open or folded ----

static int find_open(const struct transcript *t, uint64_t id) {
    for (int i = 0; i < t->n_open; i++)
        if (t->open[i] == id) return i;
    return -1;
}

static void toggle_thinking(struct transcript *t, uint64_t id) {
    int at = find_open(t, id);
    if (at >= 0) {
        t->open[at] = t->open[--t->n_open];
        return;
    }
    t->open = xrealloc(t->open, (size_t)(t->n_open + 1) * sizeof *t->open);
    t->open[t->n_open++] = id;
    t->reveal = id;
}

bool transcript_open_thinking(struct transcript *t) {
    if (t->thinking_in_sight) toggle_thinking(t, t->thinking_in_sight);
    return t->thinking_in_sight;
}

void transcript_click_thinking(struct transcript *t, int message) {
    if (message >= 0 && message < t->n_entries) toggle_thinking(t, t->entries[message].id);
}

// ---- the selected message ----

static int find_shown(const struct transcript *t, uint64_t id) {
    for (int i = 0; id && i < t->n_shown; i++)
        if (t->shown[i] == id) return i;
    return -1;
}

void transcript_select(struct transcript *t, uint64_t id) {
    t->show_selected = id && id != t->selected;
    if (id != t->selected) block_cursor_set(&t->block, 0);
    t->selected = id;
}

bool transcript_select_step(struct transcript *t, int step) {
    int at = find_shown(t, t->selected);
    if (at < 0 && step > 0) return false;
    int next = at < 0 ? t->last_in_sight : at + step;
    while (next >= 0 && next < t->n_shown && !t->shown[next]) next += step;
    if (next < 0 || next >= t->n_shown) return false;
    t->show_selected = at >= 0; // the first one is in sight
    t->selected = t->shown[next];
    t->selected_at = next;
    block_cursor_set(&t->block, 0);
    return true;
}

void transcript_block_begin(struct transcript *t, bool last) { block_cursor_set(&t->block, last ? BLOCK_LAST : 1); }
void transcript_block_end(struct transcript *t) { block_cursor_set(&t->block, 0); }
int transcript_block(const struct transcript *t) { return t->block.at; }

bool transcript_block_step(struct transcript *t, int step) {
    if (block_cursor_step(&t->block, step)) return true;
    const uint64_t before = t->selected;
    const int at = t->block.at;
    if (transcript_select_step(t, step)) {
        transcript_block_begin(t, step < 0);
        return true;
    }
    t->selected = before;
    t->block.at = at;
    return false;
}

uint64_t transcript_selected(const struct transcript *t) { return t->selected; }
const char *transcript_selected_name(const struct transcript *t) { return t->selected_name; }

uint64_t transcript_message(const struct transcript *t, int message) {
    return message >= 0 && message < t->n_shown ? t->shown[message] : 0;
}

// Where another version has come in the place of the one that was selected, that one is.
static void keep_selected(struct transcript *t, const struct screen_view *v) {
    if (v->n_messages > t->shown_room) {
        t->shown_room = 2 * v->n_messages;
        t->shown = xrealloc(t->shown, (size_t)t->shown_room * sizeof *t->shown);
        t->shown_tokens = xrealloc(t->shown_tokens, (size_t)t->shown_room * sizeof *t->shown_tokens);
    }
    t->n_shown = v->n_messages;
    for (int i = 0; i < v->n_messages; i++) {
        const bool none = v->messages[i].role == VIEW_NOTICE || v->messages[i].waiting;
        t->shown[i] = none ? 0 : v->messages[i].id;
    }
    for (int i = 0; i < v->n_messages; i++) t->shown_tokens[i] = v->messages[i].n_drawn;
    t->selected_name[0] = 0;
    if (!t->selected) return;
    int at = find_shown(t, t->selected);
    if (at < 0) at = t->selected_at < t->n_shown ? t->selected_at : t->n_shown - 1;
    while (at >= 0 && !t->shown[at]) at--;
    t->show_selected |= at >= 0 && t->shown[at] != t->selected;
    t->selected = at >= 0 ? t->shown[at] : 0;
    t->selected_at = at;
    const char *name = at >= 0 ? v->messages[at].name : NULL;
    if (name) snprintf(t->selected_name, sizeof t->selected_name, "%s", name);
}

// ---- what is collapsed ----

void transcript_collapse(struct transcript *t) { t->collapses = true; }

void transcript_click_collapse(struct transcript *t, int part) {
    const struct entry *e = &t->entries[part / COLLAPSE_PARTS];
    const int at = part % COLLAPSE_PARTS;
    if (at < e->parts.n) collapse_toggle(&t->collapse, e->id, e->parts.at[at].code);
}

// ---- the token cursor ----

struct token_cursor *transcript_token_cursor(struct transcript *t) {
    return &t->cursor;
}

bool transcript_tokens_begin(struct transcript *t) {
    int at = find_shown(t, t->selected);
    if (at < 0 || !t->shown_tokens[at])
        for (at = t->last_in_sight < t->n_shown ? t->last_in_sight : t->n_shown - 1; at >= 0; at--)
            if (t->shown_tokens[at]) break;
    if (at < 0) return false;
    const struct entry *e = &t->entries[at];
    const bool streams = e->id == t->shown[at] && e->streaming;
    t->cursor = (struct token_cursor){.message = t->shown[at],
                                      .count = t->shown_tokens[at],
                                      .token = streams ? TOKEN_LAST : 0,
                                      .alternative = -1,
                                      .moved = true};
    return true;
}

void transcript_tokens_end(struct transcript *t) { t->cursor = (struct token_cursor){0}; }

void transcript_token_click(struct transcript *t, int row, int column) {
    const int message = find_shown(t, t->cursor.message);
    const int token = message < 0 ? -1 : token_layout_at(&t->entries[message].tokens, row, column);
    if (token >= 0) token_cursor_set(&t->cursor, token);
}

enum token_colouring transcript_colour_tokens(struct transcript *t) {
    return t->colouring = (enum token_colouring)((t->colouring + 1) % TOKEN_COLOURING_COUNT);
}

unsigned long transcript_layouts(const struct transcript *t) { return t->layouts; }

// ---- search ----

void transcript_search(struct transcript *t, const char *text) { message_search_set(&t->search, text); }
void transcript_search_step(struct transcript *t, int step) { t->search.step = step; }

int transcript_search_count(const struct transcript *t, int *at) {
    *at = t->search.at;
    return t->search.total;
}

// ---- layout of one message ----

enum { THOUGHTS_INDENT = 2 };
static int thoughts_width(const struct drawing *p) {
    return p->area.width > 2 * THOUGHTS_INDENT ? p->area.width - THOUGHTS_INDENT : 1;
}

static void layout_plain(struct transcript *t, struct entry *e, const struct view_message *m) {
    struct lines *l = &e->layout.lines;
    struct style style = view_style(m->role == VIEW_NOTICE ? ROLE_WARN : ROLE_TEXT);
    markdown_free(&e->layout);
    flow_clear(&t->flow);
    if (m->role == VIEW_NOTICE) flow_add_text(&t->flow, style, !m->failed ? "! " : e->ascii ? "x " : "✗ ");
    if (!m->waiting) flow_add(&t->flow, style, m->text, m->size);
    for (size_t at = 0, end; at < t->flow.size;) {
        size_t next = flow_break(t->flow.text, t->flow.size, at, e->width, &end);
        lines_row(l);
        lines_flow(l, 0, &t->flow, at, end);
        at = next;
    }
}

static bool shows_tokens(const struct transcript *t, const struct view_message *m) {
    return m->n_drawn && (m->id == t->cursor.message || t->colouring != TOKENS_PLAIN);
}

// What is laid out serves as it is.
static bool serves(const struct entry *e, const struct view_message *m, bool by_token,
                   const struct token_layout_options *o) {
    const struct token_layout_options *own = &e->options;
    return e->by_token == by_token &&
           (!by_token || (e->n_drawn == m->n_drawn && own->colouring == o->colouring && own->marked == o->marked &&
                          own->without_colours == o->without_colours));
}

static void find_parts(const struct transcript *t, struct entry *e, const struct view_message *m) {
    e->parts_version = t->collapse.version;
    if (e->by_token) e->parts.n = 0;
    else collapse_find(&t->collapse, m, &e->layout.lines, &e->parts);
}

static struct entry *text_entry_of(struct drawing *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    struct entry *e = &p->t->entries[index];
    bool ascii = p->f->canvas->ascii;
    if (e->id != m->id || e->version != m->version) thoughts_forget(&e->thoughts);
    const bool by_token = shows_tokens(p->t, m);
    const struct token_layout_options options = {.width = p->area.width,
                                                 .ascii = ascii,
                                                 .without_colours = p->f->without_colours,
                                                 .colouring = p->t->colouring,
                                                 .marked = m->id == p->t->cursor.message ? p->t->cursor.at : -1};
    if (e->valid && serves(e, m, by_token, &options) && e->id == m->id && e->revision == m->revision &&
        e->version == m->version && e->role == m->role && e->width == p->area.width && e->ascii == ascii &&
        e->streaming == m->streaming) {
        if (e->parts_version != p->t->collapse.version) find_parts(p->t, e, m);
        return e;
    }
    e->id = m->id, e->revision = m->revision, e->version = m->version, e->role = m->role;
    e->width = p->area.width, e->ascii = ascii, e->streaming = m->streaming, e->valid = true;
    p->t->layouts++;
    e->by_token = by_token, e->n_drawn = m->n_drawn, e->options = options;
    if (by_token) token_layout_make(&e->tokens, &p->t->flow, m, &options);
    else if (m->role == VIEW_MODEL)
        markdown_layout(&e->layout, m->text, m->size,
                        (struct markdown_options){.width = e->width, .ascii = ascii, .streaming = m->streaming});
    else layout_plain(p->t, e, m);
    find_parts(p->t, e, m);
    return e;
}

static bool is_open(const struct drawing *p, const struct view_message *m) {
    return m->thinking_size && find_open(p->t, m->id) >= 0;
}

static struct entry *entry_of(struct drawing *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    struct entry *e = text_entry_of(p, index);
    if (!e->by_token && is_open(p, m))
        thoughts_layout(&e->thoughts, &p->t->flow, m->thinking, m->thinking_size, thoughts_width(p));
    return e;
}

static bool thinks(const struct view_message *m) { return m->streaming && m->thinking_size && !m->size; }

static int thinking_rows(const struct drawing *p, const struct entry *e, const struct view_message *m) {
    if (!m->thinking_size || e->by_token) return 0;
    return is_open(p, m) ? 1 + (int)e->thoughts.lines.n_rows + (m->size > 0) : 1; // a blank line before the text
}

static const struct lines *lines_of(const struct entry *e) { return e->by_token ? &e->tokens.lines : &e->layout.lines; }

static int text_rows(const struct entry *e, const struct view_message *m) {
    const int rows = (int)lines_of(e)->n_rows;
    return rows ? collapse_rows(&e->parts, rows) : e->by_token || !thinks(m);
}

static int heading_rows(const struct view_message *m) { return m->role != VIEW_NOTICE && !m->bare && !m->waiting; }

static int height(struct drawing *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    const struct entry *e = entry_of(p, index);
    bool last = index + 1 == p->view->n_messages || m->waiting; // these lie close together
    return heading_rows(m) + thinking_rows(p, e, m) + text_rows(e, m) + (m->note != NULL) + !last;
}

// ---- positions ----

static struct position *position_of(struct transcript *t, uint64_t chat) {
    for (int i = 0; i < t->n_positions; i++)
        if (t->positions[i].chat == chat) return &t->positions[i];
    t->positions = xrealloc(t->positions, (size_t)(t->n_positions + 1) * sizeof *t->positions);
    t->positions[t->n_positions] = (struct position){.chat = chat, .follow = true};
    return &t->positions[t->n_positions++];
}

// Chats that are gone need no position any more.
static void forget_positions(struct transcript *t, const struct screen_view *v) {
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
    while (at.line < 0 && at.message > 0) at.line += height(p, --at.message);
    if (at.line < 0) at.line = 0;
    while (at.message + 1 < p->view->n_messages && at.line >= height(p, at.message)) at.line -= height(p, at.message++);
    return at;
}

static bool place_before(struct place a, struct place b) {
    return a.message != b.message ? a.message < b.message : a.line < b.line;
}

// The place at the top of the pane when the end is at its bottom.
static struct place bottom_place(struct drawing *p) {
    int last = p->view->n_messages - 1;
    return moved(p, (struct place){last, 0}, height(p, last) - p->area.height);
}

static struct place kept_place(struct drawing *p, struct position *at, struct place bottom) {
    for (int i = 0; !at->follow && i < p->view->n_messages; i++) {
        if (p->view->messages[i].id != at->message) continue;
        bool rewrapped = at->width != p->area.width;
        int now = height(p, i);
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
    return with_rows(p, (struct place){message, 0}, height(p, message), place);
}

// With the block chosen in the selected message, where it is another one; the first one has the heading with it.
static struct place with_block(struct drawing *p, struct place place) {
    struct block_cursor *b = &p->t->block;
    if (!p->t->selected || !b->at) return place;
    const int message = p->t->selected_at;
    const struct view_message *m = &p->view->messages[message];
    const struct entry *e = entry_of(p, message);
    const int before = heading_rows(m) + thinking_rows(p, e, m);
    b->moved |= b->width != p->area.width || b->height != p->area.height;
    b->height = p->area.height;
    block_cursor_place(b, m, lines_of(e), p->area.width, p->f->canvas->ascii);
    if (!b->moved || e->by_token) return place;
    const int first = collapse_in_sight(&e->parts, b->first), extra = first ? 0 : before;
    const int rows = collapse_in_sight(&e->parts, b->first + b->rows) - first;
    return with_rows(p, (struct place){message, before + first - extra}, rows + extra, place);
}

// While a message is selected, what arrives behind it does not move it.
static bool may_follow(const struct drawing *p) {
    const struct token_cursor *c = &p->t->cursor;
    if (c->message) return c->token == TOKEN_LAST;
    if (p->t->block.at) return false;
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
    const int message = find_shown(p->t, c->message);
    c->moved |= c->width != p->area.width || c->height != p->area.height;
    c->width = p->area.width, c->height = p->area.height;
    if (message < 0 || !c->moved) return place;
    const int row = entry_of(p, message)->tokens.marked_row;
    struct place marked = {message, heading_rows(&p->view->messages[message]) + (row > 0 ? row : 0)};
    if (place_before(marked, place)) return row > 0 ? marked : (struct place){message, 0};
    struct place first = moved(p, marked, 1 - p->area.height);
    return place_before(place, first) ? first : place;
}

// With the row of the match gone to: in the middle, where it was not in sight.
static struct place with_match(struct drawing *p, struct position *at, struct place place) {
    struct message_search *s = &p->t->search;
    int message = p->view->n_messages - 1;
    while (message >= 0 && p->view->messages[message].id != s->message) message--;
    if (!s->needle.count || !s->moved || message < 0) return place;
    const struct view_message *m = &p->view->messages[message];
    const struct entry *e = entry_of(p, message);
    const int found = message_search_row(s, lines_of(e)), hides = collapse_hides(&e->parts, found);
    if (hides >= 0) { // it is to be seen
        collapse_toggle(&p->t->collapse, m->id, e->parts.at[hides].code);
        e = entry_of(p, message);
    }
    const int row = heading_rows(m) + thinking_rows(p, e, m) + collapse_in_sight(&e->parts, found);
    const struct place match = {message, row}, end = moved(p, place, p->area.height);
    s->moved = at->follow = false;
    return !place_before(match, place) && place_before(match, end) ? place : moved(p, match, -p->area.height / 2);
}

// What is selected: the block of code, otherwise the message.
static void collapse_selected(struct drawing *p) {
    struct transcript *t = p->t;
    const struct view_message *m = t->selected ? &p->view->messages[t->selected_at] : NULL;
    t->collapse.version += t->collapse.longest != p->view->collapse;
    t->collapse.longest = p->view->collapse;
    if (t->collapses && m) {
        if (t->block.at)
            block_cursor_place(&t->block, m, lines_of(entry_of(p, t->selected_at)), p->area.width,
                               p->f->canvas->ascii);
        collapse_toggle(&t->collapse, m->id, t->block.at ? t->block.code : 0);
        if (t->block.at) t->block.moved = true;
        else t->show_selected = true;
    }
    t->collapses = false;
}

// *ends: the end is in sight.
static struct place scrolled(struct drawing *p, struct position *at, bool *ends) {
    struct transcript *t = p->t;
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
    int edited = newly_edited(p);
    if (edited >= 0) place = with_message(p, edited, place);
    *ends = !place_before(place, bottom);
    at->follow = *ends && may_follow(p);
    return *ends ? bottom : place;
}

static void clear_pending(struct transcript *t) {
    t->pending_lines = t->pending_pages = 0;
    t->pending_top = t->pending_bottom = false;
    t->reveal = 0;
    t->show_selected = false;
    t->cursor.moved = false;
    t->block.moved = false;
}

// ---- drawing ----

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

static int row_end(const struct lines *l, int row) {
    const size_t end = row + 1 < (int)l->n_rows ? l->rows[row + 1].first_run : l->n_runs;
    if (l->rows[row].first_run == end) return l->rows[row].fill_from > 0 ? l->rows[row].fill_from : 0;
    const struct lines_run *r = &l->runs[end - 1];
    return r->column + text_width(l->text + r->start, r->size);
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
    const struct rect column = {p->area.x - 1, y, 1, 1};
    for (int i = 0; i < e->parts.n; i++) {
        const struct collapse_part *part = &e->parts.at[i];
        const bool begins = part->first == row && i != more, whole = i == more;
        if (begins && column.x >= 0)
            canvas_symbol(p->f->canvas, column, column.x, y, view_style(ROLE_DIM), part->closed ? "▸" : "▾",
                          part->closed ? '>' : 'v');
        if (begins || whole)
            frame_hit(p->f, (struct rect){column.x, y, whole ? p->area.width + 1 : 1, 1}, HIT_COLLAPSE,
                      index * COLLAPSE_PARTS + i);
    }
}

static void draw_text_row(struct drawing *p, int y, const struct entry *e, int index, int row) {
    const struct view_message *m = &p->view->messages[index];
    struct rect a = p->area;
    const struct lines *l = lines_of(e);
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
    if (e->by_token && m->id == p->t->cursor.message)
        frame_hit(p->f, (struct rect){a.x, y, clamp(row_end(l, row) + last, 0, a.width), 1}, HIT_TOKEN, row);
    if (m->streaming && last) draw_cursor(p, a.x + row_end(l, row), y);
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
    bool open = is_open(p, m);
    if (row == 0) {
        char label[THOUGHTS_LABEL];
        thoughts_label(thinks(m), c->ascii, m->thinking_tokens, m->thinking_seconds, label);
        canvas_symbol(c, a, a.x, y, style, open ? "▾" : "▸", open ? 'v' : '>');
        draw_parts(p, (struct rect){a.x + THOUGHTS_INDENT, y, a.width - THOUGHTS_INDENT, 1}, style, label);
        if (thinks(m) && !open) draw_thinking_hint(p, a.x + THOUGHTS_INDENT + text_width(label, strlen(label)), y);
        frame_hit(p->f, (struct rect){a.x, y, a.width, 1}, HIT_THINKING, index);
        return;
    }
    if (row > (int)l->n_rows) return;
    canvas_symbol(c, a, a.x, y, style, "│", '|');
    lines_draw(l, (size_t)row - 1, c, a, a.x + THOUGHTS_INDENT, y, a.width - THOUGHTS_INDENT);
    if (thinks(m) && row == (int)l->n_rows) draw_cursor(p, a.x + THOUGHTS_INDENT + row_end(l, row - 1), y);
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
    struct entry *e = entry_of(p, at.message);
    int row = at.line - heading_rows(m), thinking = thinking_rows(p, e, m), text = text_rows(e, m);
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

static void draw_from(struct drawing *p, struct place at) {
    for (int y = p->area.y; y < p->area.y + p->area.height; y++) {
        draw_line(p, y, at);
        if (++at.line < height(p, at.message)) continue;
        at = (struct place){at.message + 1, 0};
        if (at.message == p->view->n_messages) return;
    }
}

static void make_room(struct transcript *t, int n) {
    if (n <= t->n_entries) return;
    t->entries = xrealloc(t->entries, (size_t)n * sizeof *t->entries);
    memset(t->entries + t->n_entries, 0, (size_t)(n - t->n_entries) * sizeof *t->entries);
    t->n_entries = n;
}

enum transcript_below transcript_draw(struct transcript *t, struct view_frame *f, struct rect area) {
    struct drawing p = {t, f, f->view, area};
    const struct screen_view *v = f->view;
    message_search_update(&t->search, v, t->last_in_sight);
    if (v->n_messages == 0 || area.width <= 0 || area.height <= 0) {
        if (v->n_messages == 0) view_welcome(f, area), t->n_shown = 0;
        clear_pending(t);
        return TRANSCRIPT_AT_END;
    }
    make_room(t, v->n_messages);
    keep_selected(t, v);
    forget_positions(t, v);
    collapse_selected(&p);
    struct position *at = position_of(t, view_chat_id(v));
    bool ends;
    struct place place = scrolled(&p, at, &ends);
    clear_pending(t);
    t->thinking_in_sight = 0;
    draw_from(&p, place);
    at->message = v->messages[place.message].id;
    at->line = place.line;
    at->height = height(&p, place.message);
    at->width = area.width;
    const struct view_message *last = &v->messages[v->n_messages - 1];
    while (last > v->messages && last->waiting) last--;
    size_t size = last->size + last->thinking_size;
    if (ends || !at->seen_message) at->seen_message = last->id, at->seen_size = size;
    if (ends) return TRANSCRIPT_AT_END;
    return at->seen_message == last->id && at->seen_size == size ? TRANSCRIPT_MORE_BELOW : TRANSCRIPT_NEW_BELOW;
}
