#include "ui/transcript_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/panic.h"

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
    free(t->text.rows);
    free(t->text.copied);
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

bool transcript_is_open(const struct transcript *t, const struct view_message *m) {
    return m->thinking_size && find_open(t, m->id) >= 0;
}

bool transcript_open_thinking(struct transcript *t) {
    if (t->thinking_in_sight) toggle_thinking(t, t->thinking_in_sight);
    return t->thinking_in_sight;
}

void transcript_click_thinking(struct transcript *t, int message) {
    if (message >= 0 && message < t->n_entries) toggle_thinking(t, t->entries[message].id);
}

// ---- the selected message ----

int transcript_find_shown(const struct transcript *t, uint64_t id) {
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
    int at = transcript_find_shown(t, t->selected);
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
    int at = transcript_find_shown(t, t->selected);
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

// What is selected: the block of code, otherwise the message.
static void collapse_selected(struct drawing *p) {
    struct transcript *t = p->t;
    const struct view_message *m = t->selected ? &p->view->messages[t->selected_at] : NULL;
    t->collapse.version += t->collapse.longest != p->view->collapse;
    t->collapse.longest = p->view->collapse;
    if (t->collapses && m) {
        if (t->block.at)
            block_cursor_place(&t->block, m, transcript_lines(transcript_entry(p, t->selected_at)), p->area.width,
                               p->f->canvas->ascii);
        collapse_toggle(&t->collapse, m->id, t->block.at ? t->block.code : 0);
        if (t->block.at) t->block.moved = true;
        else t->show_selected = true;
    }
    t->collapses = false;
}

// ---- the token cursor ----

struct token_cursor *transcript_token_cursor(struct transcript *t) {
    return &t->cursor;
}

bool transcript_tokens_begin(struct transcript *t) {
    int at = transcript_find_shown(t, t->selected);
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
    const int message = transcript_find_shown(t, t->cursor.message);
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

// ---- drawing ----

static void clear_pending(struct transcript *t) {
    t->pending_lines = t->pending_pages = 0;
    t->pending_top = t->pending_bottom = false;
    t->reveal = 0;
    t->show_selected = false;
    t->cursor.moved = false;
    t->block.moved = false;
    t->text.moved = t->text.holds = false;
}

enum transcript_below transcript_draw(struct transcript *t, struct view_frame *f, struct rect area) {
    struct drawing p = {t, f, f->view, area};
    const struct screen_view *v = f->view;
    message_search_update(&t->search, v, t->last_in_sight);
    if (v->n_messages == 0 || area.width <= 0 || area.height <= 0) {
        if (v->n_messages == 0) view_welcome(f, area), t->n_shown = t->text.n_rows = 0;
        clear_pending(t);
        return TRANSCRIPT_AT_END;
    }
    transcript_make_room(t, v->n_messages);
    keep_selected(t, v);
    transcript_forget_positions(t, v);
    collapse_selected(&p);
    transcript_text_apply(&p);
    struct position *at = transcript_position(t, view_chat_id(v));
    bool ends;
    struct place place = transcript_scrolled(&p, at, &ends);
    clear_pending(t);
    t->thinking_in_sight = 0;
    transcript_text_begin_rows(&p);
    frame_hit(f, area, HIT_TEXT, 0);
    transcript_draw_from(&p, place);
    at->message = v->messages[place.message].id;
    at->line = place.line;
    at->height = transcript_height(&p, place.message);
    at->width = area.width;
    const struct view_message *last = &v->messages[v->n_messages - 1];
    while (last > v->messages && last->waiting) last--;
    size_t size = last->size + last->thinking_size;
    if (ends || !at->seen_message) at->seen_message = last->id, at->seen_size = size;
    if (ends) return TRANSCRIPT_AT_END;
    return at->seen_message == last->id && at->seen_size == size ? TRANSCRIPT_MORE_BELOW : TRANSCRIPT_NEW_BELOW;
}
