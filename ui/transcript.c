#include "ui/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "ui/markdown.h"

#define PROGRESS_COLUMNS 20

// The layout of the message at the same index. Heights: a heading line, the rows, a note, a blank line between
// messages.
struct entry {
    uint64_t id;
    uint32_t revision;
    enum view_role role;
    int version, width;
    bool ascii, streaming, valid;
    struct markdown layout;
};

struct position {
    uint64_t chat, message;
    int line, height; // of the message at the top of the pane: its first line in sight, and its height then
    bool follow;
    uint64_t seen_message; // what the end was when it was last in sight
    size_t seen_size;
};

struct transcript {
    struct entry *entries;
    int n_entries;
    struct position *positions;
    int n_positions;
    struct flow flow;
    int pending_lines, pending_pages;
    bool pending_top, pending_bottom;
    unsigned long layouts;
};

// What one draw works on.
struct pane {
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
    for (int i = 0; i < t->n_entries; i++) markdown_free(&t->entries[i].layout);
    free(t->entries);
    free(t->positions);
    flow_free(&t->flow);
    free(t);
}

void transcript_scroll(struct transcript *t, int lines) { t->pending_lines += lines; }
void transcript_pages(struct transcript *t, int pages) { t->pending_pages += pages; }
void transcript_top(struct transcript *t) { t->pending_top = true; }
void transcript_bottom(struct transcript *t) { t->pending_bottom = true; }

unsigned long transcript_layouts(const struct transcript *t) { return t->layouts; }

// ---- layout of one message ----

static void layout_plain(struct transcript *t, struct entry *e, const struct view_message *m) {
    struct lines *l = &e->layout.lines;
    struct style style = view_style(m->role == VIEW_NOTICE ? ROLE_WARN : ROLE_TEXT);
    markdown_free(&e->layout);
    flow_clear(&t->flow);
    if (m->role == VIEW_NOTICE) flow_add(&t->flow, style, e->ascii ? "x " : "✗ ", strlen(e->ascii ? "x " : "✗ "));
    flow_add(&t->flow, style, m->text, m->size);
    for (size_t at = 0, end; at < t->flow.size;) {
        size_t next = flow_break(t->flow.text, t->flow.size, at, e->width, &end);
        lines_row(l);
        lines_flow(l, 0, &t->flow, at, end);
        at = next;
    }
}

static struct entry *entry_of(struct pane *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    struct entry *e = &p->t->entries[index];
    bool ascii = p->f->canvas->ascii;
    if (e->valid && e->id == m->id && e->revision == m->revision && e->version == m->version && e->role == m->role &&
        e->width == p->area.width && e->ascii == ascii && e->streaming == m->streaming)
        return e;
    e->id = m->id, e->revision = m->revision, e->version = m->version, e->role = m->role;
    e->width = p->area.width, e->ascii = ascii, e->streaming = m->streaming, e->valid = true;
    p->t->layouts++;
    if (m->role == VIEW_MODEL)
        markdown_layout(&e->layout, m->text, m->size,
                        (struct markdown_options){.width = e->width, .ascii = ascii, .streaming = m->streaming});
    else layout_plain(p->t, e, m);
    return e;
}

static int text_rows(const struct entry *e) { return e->layout.lines.n_rows ? (int)e->layout.lines.n_rows : 1; }

static int heading_rows(const struct view_message *m) { return m->role != VIEW_NOTICE; }

static int height(struct pane *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    bool last = index + 1 == p->view->n_messages;
    return heading_rows(m) + text_rows(entry_of(p, index)) + (m->note != NULL) + !last;
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

static struct place moved(struct pane *p, struct place at, int lines) {
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
static struct place bottom_place(struct pane *p) {
    int last = p->view->n_messages - 1;
    return moved(p, (struct place){last, 0}, height(p, last) - p->area.height);
}

static struct place kept_place(struct pane *p, struct position *at, struct place bottom) {
    for (int i = 0; !at->follow && i < p->view->n_messages; i++) {
        if (p->view->messages[i].id != at->message) continue;
        const struct entry *e = &p->t->entries[i];
        bool rewrapped = e->width != p->area.width;
        int now = height(p, i);
        int line = rewrapped && at->height > 0 ? at->line * now / at->height : at->line;
        return (struct place){i, line < now ? line : now - 1};
    }
    at->follow = true;
    return bottom;
}

static struct place scrolled(struct pane *p, struct position *at) {
    struct transcript *t = p->t;
    struct place bottom = bottom_place(p), place = kept_place(p, at, bottom);
    int page = p->area.height > 2 ? p->area.height - 2 : 1;
    if (t->pending_top) place = (struct place){0, 0}, at->follow = false;
    if (t->pending_bottom) at->follow = true;
    int lines = t->pending_lines + t->pending_pages * page;
    if (lines) place = moved(p, at->follow ? bottom : place, lines), at->follow = false;
    if (at->follow || !place_before(place, bottom)) place = bottom, at->follow = true;
    return place;
}

static void clear_pending(struct transcript *t) {
    t->pending_lines = t->pending_pages = 0;
    t->pending_top = t->pending_bottom = false;
}

// ---- drawing ----

static void draw_heading(struct pane *p, int y, const struct view_message *m) {
    bool user = m->role == VIEW_USER;
    const char *name = user ? "You" : m->author ? m->author : p->view->model_short ? p->view->model_short : "Model";
    struct rect a = p->area;
    char text[48] = "";
    if (m->n_versions > 1)
        snprintf(text, sizeof text, p->f->canvas->ascii ? "<%d/%d>" : "‹%d/%d›", m->version, m->n_versions);
    int width = text_width(text, strlen(text)), x = a.x + a.width - width;
    int end = a.x + canvas_text(p->f->canvas, a, a.x, y, view_bold(user ? ROLE_USER : ROLE_MODEL), name, strlen(name));
    if (m->model) {
        struct rect room = {a.x, a.y, x - a.x - 1, a.height};
        canvas_text(p->f->canvas, room, end + 2, y, view_style(ROLE_DIM), m->model, strlen(m->model));
    }
    if (m->n_versions <= 1) return;
    canvas_text(p->f->canvas, a, x, y, view_style(ROLE_DIM), text, strlen(text));
    frame_hit(p->f, (struct rect){x, y, width / 2, 1}, HIT_COMMAND, COMMAND_VERSION_PREVIOUS);
    frame_hit(p->f, (struct rect){x + width / 2, y, width - width / 2, 1}, HIT_COMMAND, COMMAND_VERSION_NEXT);
}

// Before the first token: what the engine is doing, so that slow and stuck can be told apart.
static void draw_progress(struct pane *p, int y) {
    const struct screen_view *v = p->view;
    const struct view_chat *chat = v->current >= 0 && v->current < v->n_chats ? &v->chats[v->current] : NULL;
    struct rect a = p->area;
    if (chat && chat->state == REQUEST_PREFILLING && chat->prefill_total > 0) {
        char done[VIEW_NUMBER], total[VIEW_NUMBER];
        int x = a.x + canvas_print(p->f->canvas, a, a.x, y, view_style(ROLE_DIM), "reading %s of %s tokens ",
                                   view_number(chat->prefill_done, done), view_number(chat->prefill_total, total));
        if (x + PROGRESS_COLUMNS <= a.x + a.width)
            canvas_gauge(p->f->canvas, a, x, y, PROGRESS_COLUMNS, (double)chat->prefill_done / chat->prefill_total,
                         ROLE_PREFILL);
    } else {
        bool waits = chat && chat->busy && chat->state == REQUEST_PENDING;
        const char *text = waits ? "waiting for a place in the batch" : "thinking";
        if (chat && chat->parked) text = v->loading ? v->loading->text : "waiting for a model to be loaded";
        canvas_text(p->f->canvas, a, a.x, y, view_style(ROLE_DIM), text, strlen(text));
    }
}

static int row_end(const struct lines *l) {
    if (l->rows[l->n_rows - 1].first_run == l->n_runs)
        return l->rows[l->n_rows - 1].fill_from > 0 ? l->rows[l->n_rows - 1].fill_from : 0;
    const struct lines_run *r = &l->runs[l->n_runs - 1];
    return r->column + text_width(l->text + r->start, r->size);
}

static void draw_text_row(struct pane *p, int y, const struct entry *e, const struct view_message *m, int row) {
    struct rect a = p->area;
    const struct lines *l = &e->layout.lines;
    if (l->n_rows == 0) {
        if (m->streaming) draw_progress(p, y);
        else canvas_print(p->f->canvas, a, a.x, y, view_style(ROLE_DIM), "(nothing was said)");
        return;
    }
    lines_draw(l, (size_t)row, p->f->canvas, a, a.x, y, a.width);
    if (!m->streaming || row + 1 < (int)l->n_rows) return;
    int column = row_end(l);
    if (column >= a.width) column = a.width - 1;
    canvas_symbol(p->f->canvas, a, a.x + column, y, view_style(ROLE_ACCENT), "▌", '_');
}

// Its parts that do not fit, from the last on, are left out: half a figure would be another one.
static void draw_note(struct pane *p, int y, const char *note) {
    size_t size = strlen(note);
    while (text_width(note, size) > p->area.width) {
        const char *comma = memrchr(note, ',', size);
        if (!comma) break;
        size = (size_t)(comma - note);
    }
    canvas_text(p->f->canvas, p->area, p->area.x, y, view_style(ROLE_DIM), note, size);
}

static void draw_line(struct pane *p, int y, struct place at) {
    const struct view_message *m = &p->view->messages[at.message];
    struct entry *e = entry_of(p, at.message);
    int row = at.line - heading_rows(m);
    if (row < 0) draw_heading(p, y, m);
    else if (row < text_rows(e)) draw_text_row(p, y, e, m, row);
    else if (m->note && row == text_rows(e)) draw_note(p, y, m->note);
}

static void draw_from(struct pane *p, struct place at) {
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
    struct pane p = {t, f, f->view, area};
    const struct screen_view *v = f->view;
    if (v->n_messages == 0 || area.width <= 0 || area.height <= 0) {
        if (v->n_messages == 0) view_welcome(f, area);
        clear_pending(t);
        return TRANSCRIPT_AT_END;
    }
    make_room(t, v->n_messages);
    forget_positions(t, v);
    struct position *at = position_of(t, v->current >= 0 && v->current < v->n_chats ? v->chats[v->current].id : 0);
    struct place place = scrolled(&p, at);
    clear_pending(t);
    draw_from(&p, place);
    at->message = v->messages[place.message].id;
    at->line = place.line;
    at->height = height(&p, place.message);
    const struct view_message *last = &v->messages[v->n_messages - 1];
    if (at->follow) at->seen_message = last->id, at->seen_size = last->size;
    if (at->follow) return TRANSCRIPT_AT_END;
    return at->seen_message == last->id && at->seen_size == last->size ? TRANSCRIPT_MORE_BELOW : TRANSCRIPT_NEW_BELOW;
}
