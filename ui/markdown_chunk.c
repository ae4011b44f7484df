// Chunks of Markdown through md4c: whole ones, those that end in an open fence, and the footnotes.
#include <stdio.h>
#include <string.h>

#include "ui/markdown_parts.h"

#define NOTES_RULE 20 // columns of the line above the footnotes

// ---- the chunk ----

static void plain(struct block *b, const char *text, size_t size) {
    b->n_containers = b->n_lists = 0;
    flow_clear(&b->flow);
    flow_add(&b->flow, (struct style){.role = ROLE_TEXT, .ground = ROLE_GROUND}, text, size);
    while (b->flow.size && b->flow.text[b->flow.size - 1] == '\n') b->flow.size--;
    markdown_block_wrap(b);
}

// `source` has been prepared. False: md4c or its callbacks gave up.
static bool parse(struct block *b, const struct flow *source) {
    static const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_PERMISSIVEURLAUTOLINKS |
                 MD_FLAG_NOHTML,
        .enter_block = markdown_block_enter,
        .leave_block = markdown_block_leave,
        .enter_span = markdown_span_enter,
        .leave_span = markdown_span_leave,
        .text = markdown_span_text,
    };
    b->markdown->chunks_laid_out++;
    b->markdown->bytes_parsed += source->size;
    return md_parse(source->text, (MD_SIZE)source->size, &parser, b) == 0 && !b->gave_up;
}

static void block_free(struct block *b) {
    markdown_table_free(&b->table);
    flow_free(&b->label);
    flow_free(&b->flow);
}

// The definitions, and behind them this part of the source.
static void prepare(struct flow *out, const struct markdown *m, struct markdown_prepare part) {
    struct markdown_fence fence = {0};
    part.references = &m->references;
    part.formulas = !m->ascii;
    references_add(part.references, out, m->references.text + part.from, part.to - part.from);
    markdown_prepare(out, &part, &fence);
}

// Parses what was prepared; where that fails, text[0..size) is shown as it is.
static void layout(struct block *b, const struct flow *source, const char *text, size_t size) {
    const struct lines_mark start = lines_mark(&b->markdown->lines);
    const bool gap = b->gap;
    if (parse(b, source)) return;
    lines_cut(&b->markdown->lines, start);
    b->gap = gap;
    b->last_code = (struct code){0};
    plain(b, text, size);
}

// Whatever was made of the chunk before is forgotten.
static struct block block_begin(struct markdown *m, const struct markdown_start *start) {
    references_forget_users(&m->references, start->at);
    m->ordered_next = start->ordered_next, m->ordered_delimiter = start->ordered_delimiter;
    return (struct block){.markdown = m, .chunk = start->at};
}

// Returns what the last block of code is, when the chunk ends in it.
static struct code layout_whole(struct markdown *m, const struct markdown_start *start, size_t end, unsigned *n_codes) {
    struct block b = block_begin(m, start);
    struct flow source = {0};
    b.gap = m->lines.n_rows > 0 && !start->joined;
    prepare(&source, m, (struct markdown_prepare){.from = start->at, .to = end, .table = start->table});
    layout(&b, &source, m->references.text + start->at, end - start->at);
    flow_free(&source);
    block_free(&b);
    *n_codes = b.n_codes;
    return b.last_code;
}

void markdown_chunk(struct markdown *m, const struct markdown_start *start, size_t end) {
    unsigned n_codes;
    layout_whole(m, start, end, &n_codes);
}

// ---- a chunk that ends in an open fence ----

static size_t count_lines(const char *text, size_t size) {
    size_t n = size && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) n += text[i] == '\n';
    return n;
}

// Lines of the fence that are complete are final when md4c too takes all `n_lines` behind `from` for its code.
static void open_settle(struct markdown *m, const char *text, size_t size, struct markdown_open open, size_t from,
                        const struct code *code) {
    struct lines_mark end = lines_mark(&m->lines);
    bool agreed = code->fence == open.fence.character && code->n_lines == count_lines(text + from, size - from) &&
                  code->end.n_rows == end.n_rows;
    open.done = size;
    while (open.done > from && text[open.done - 1] != '\n') open.done--;
    open.rows = open.done == size ? code->end : code->before_last;
    open.state = open.done == size ? code->behind : code->last;
    m->open = agreed && open.done > open.head ? open : (struct markdown_open){0};
}

// What precedes the code is laid out once more, for md4c to be in the same place, and thrown away: see take_final.
static bool open_goes_on(struct markdown *m, const struct markdown_start *start, size_t end) {
    struct markdown_open open = m->open;
    struct block b = block_begin(m, start);
    struct flow source = {0};
    struct markdown_prepare code = {
        .references = &m->references, .from = start->at + open.done, .to = end, .table = MARKDOWN_NO_TABLE};
    lines_cut(&m->lines, open.rows);
    prepare(&source, m,
            (struct markdown_prepare){.from = start->at, .to = start->at + open.head, .table = start->table});
    markdown_prepare(&source, &code, &open.fence);
    bool same = parse(&b, &source) && b.n_codes == open.code;
    if (same) open_settle(m, m->references.text + start->at, end - start->at, m->open, open.done, &b.last_code);
    flow_free(&source);
    block_free(&b);
    return same && m->open.done;
}

void markdown_open_chunk(struct markdown *m, const struct markdown_start *start, size_t end,
                         struct markdown_fence fence, size_t head) {
    if (m->open.done && m->open.head == head && open_goes_on(m, start, end)) return;
    struct markdown_open open = {.fence = fence, .head = head};
    lines_cut(&m->lines, start->rows);
    m->open = (struct markdown_open){0};
    struct code code = layout_whole(m, start, end, &open.code);
    open_settle(m, m->references.text + start->at, end - start->at, open, head, &code);
}

// ---- footnotes ----

// As an item of an ordered list, so that its lines hang below each other.
static void add_note(struct flow *out, int number, const char *text, size_t size) {
    char marker[16];
    const int columns = snprintf(marker, sizeof marker, "%d. ", number);
    flow_add_text(out, markdown_dim, marker);
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        const size_t end = newline ? (size_t)(newline + 1 - text) : size;
        for (int i = 0; at && i < columns; i++) flow_add_text(out, markdown_dim, " ");
        while (out->column <= columns && at < end && text[at] == ' ') at++;
        flow_add(out, markdown_dim, text + at, end - at);
        at = end;
    }
    flow_add(out, markdown_dim, "", 1), out->size--, out->column--;
}

static void layout_note(struct markdown *m, const struct reference *note, struct flow *text, struct flow *source) {
    struct block b = {.markdown = m, .chunk = REFERENCES_NOTE};
    struct markdown_fence fence = {0};
    const struct markdown_prepare part = {.references = &m->references,
                                          .from = note->content,
                                          .to = note->content + note->content_size,
                                          .table = MARKDOWN_NO_TABLE,
                                          .formulas = !m->ascii};
    flow_clear(text), flow_clear(source);
    markdown_prepare(text, &part, &fence);
    references_add(part.references, source, text->text, text->size);
    add_note(source, note->number, text->text, text->size);
    m->ordered_next = 0;
    layout(&b, source, m->references.text + part.from, note->content_size);
    block_free(&b);
}

void markdown_notes(struct markdown *m) {
    const struct reference *note = references_note(&m->references, 1);
    struct flow text = {0}, source = {0};
    if (note) {
        struct block b = {.markdown = m, .gap = m->lines.n_rows > 0};
        markdown_block_rule(&b, m->width < NOTES_RULE ? m->width : NOTES_RULE);
    }
    for (int number = 1; (note = references_note(&m->references, number)); number++)
        layout_note(m, note, &text, &source);
    flow_free(&text);
    flow_free(&source);
}
