// The layout of one message: its text, as Markdown or token by token, and its thinking.
#include "ui/transcript_state.h"

#include <string.h>

#include "engine/base/panic.h"

void transcript_make_room(struct transcript *t, int n) {
    if (n <= t->n_entries) return;
    t->entries = xrealloc(t->entries, (size_t)n * sizeof *t->entries);
    memset(t->entries + t->n_entries, 0, (size_t)(n - t->n_entries) * sizeof *t->entries);
    t->n_entries = n;
}

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
        lines_end(l, &t->flow, end, next, t->flow.size);
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

struct entry *transcript_entry(struct drawing *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    struct entry *e = text_entry_of(p, index);
    if (!e->by_token && transcript_is_open(p->t, m))
        thoughts_layout(&e->thoughts, &p->t->flow, m->thinking, m->thinking_size, thoughts_width(p));
    return e;
}

int transcript_heading_rows(const struct view_message *m) { return m->role != VIEW_NOTICE && !m->bare && !m->waiting; }

int transcript_thinking_rows(const struct transcript *t, const struct entry *e, const struct view_message *m) {
    if (!m->thinking_size || e->by_token) return 0;
    if (!transcript_is_open(t, m)) return 1;
    return 1 + (int)e->thoughts.lines.n_rows + (m->size > 0); // a blank line before the text
}

int transcript_rows_before(const struct transcript *t, const struct entry *e, const struct view_message *m) {
    return transcript_heading_rows(m) + transcript_thinking_rows(t, e, m);
}

int transcript_text_rows(const struct entry *e, const struct view_message *m) {
    const int rows = (int)transcript_lines(e)->n_rows;
    return rows ? collapse_rows(&e->parts, rows) : e->by_token || !transcript_thinks(m);
}

int transcript_height(struct drawing *p, int index) {
    const struct view_message *m = &p->view->messages[index];
    const struct entry *e = transcript_entry(p, index);
    bool last = index + 1 == p->view->n_messages || m->waiting; // these lie close together
    return transcript_rows_before(p->t, e, m) + transcript_text_rows(e, m) + (m->note != NULL) + !last;
}
