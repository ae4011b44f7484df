#include "ui/markdown.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum {
    LONG_CHUNK = 4096, // bytes from which on a chunk is cut at the next line that is none of a list's item
    LONG_PART = 16384, // the same of a table and within a line, where it is seen: the head again, a row that ends early
    PASSES = 4,        // at most: each knows better than the one before what is referred to
};

void markdown_free(struct markdown *m) {
    lines_free(&m->lines);
    references_free(&m->references);
    free(m->starts);
    free(m->source);
    *m = (struct markdown){0};
}

// What stands before a line's text: quotation marks, the first `most` of them, and blanks.
struct margin {
    size_t size;
    int quotes, columns; // behind the last mark
};

static struct margin margin_of(const char *line, size_t size, int most) {
    struct margin m = {0};
    for (; m.size < size; m.size++) {
        char c = line[m.size];
        if (c == ' ') m.columns++;
        else if (c == '\t') m.columns = (m.columns + 4) & ~3;
        else if (c == '>' && m.quotes < most) m.quotes++, m.columns = -1; // one blank belongs to the mark
        else break;
    }
    if (m.columns < 0) m.columns = 0;
    return m;
}

// The bytes of a list marker and the blanks behind it; 0: there is none.
static size_t marker_size(const char *text, size_t size) {
    size_t i = 0;
    while (i < size && text[i] >= '0' && text[i] <= '9') i++;
    if (i + 1 >= size || text[i + 1] != ' ' || !memchr("-*+.)", text[i], 5)) return 0;
    for (i++; i < size && text[i] == ' ';) i++;
    return i;
}

static size_t run_length(const char *text, size_t size, char c) {
    size_t n = 0;
    while (n < size && text[n] == c) n++;
    return n;
}

static struct markdown_fence opened(const char *line, size_t size) {
    struct margin m = margin_of(line, size, INT_MAX);
    size_t marker = marker_size(line + m.size, size - m.size), at = m.size + marker;
    char c = at < size ? line[at] : 0;
    size_t length = run_length(line + at, size - at, c), after = at + length;
    bool fence = (c == '`' || c == '~') && length >= 3 && !(c == '`' && memchr(line + after, c, size - after));
    return fence ? (struct markdown_fence){c, length, m.columns + (int)marker, m.quotes} : (struct markdown_fence){0};
}

bool markdown_blank(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static bool closed(const struct markdown_fence *open, const char *line, size_t size) {
    struct margin m = margin_of(line, size, open->quotes);
    size_t length = run_length(line + m.size, size - m.size, open->character), after = m.size + length;
    return length >= open->length && m.columns <= open->indent + 3 && markdown_blank(line + after, size - after);
}

void markdown_fence_line(struct markdown_fence *open, const char *line, size_t size) {
    bool goes_on = open->length && margin_of(line, size, open->quotes).quotes == open->quotes;
    if (open->length && closed(open, line, size)) *open = (struct markdown_fence){0};
    else if (!goes_on) *open = opened(line, size);
}

static size_t line_end(const char *text, size_t size, size_t at) {
    const char *newline = memchr(text + at, '\n', size - at);
    return newline ? (size_t)(newline - text) : size;
}

// ---- chunks ----

struct chunk {
    size_t end;
    bool complete;              // whatever follows cannot belong to it
    bool joined;                // to the one that follows: no blank line is between
    size_t table;               // that goes on in the one that follows
    struct markdown_fence open; // at its end, or closed by its last line
    size_t head;                // bytes up to the end of the line that opens it
    size_t code_end;            // where the line begins that closes it, or as `end`
};

// A line of text is cut behind a word where it is too long, so that an answer without line ends is not one chunk.
static size_t cut_line(const char *text, size_t at) {
    size_t cut = at;
    while (cut > at - LONG_PART / 64 && text[cut - 1] != ' ') cut--;
    if (text[cut - 1] == ' ') return cut;
    while (((unsigned char)text[at] & 0xc0) == 0x80) at--;
    return at;
}

struct source_row {
    size_t start, end;
    bool empty, at_margin; // neither: it is indented, or code
    char kind;             // of the last one at the margin; those that follow it without a blank row have the same
};

static struct source_row source_row(const char *text, size_t size, size_t at, bool in_fence, char kind) {
    struct source_row r = {.start = at, .end = line_end(text, size, at), .kind = kind};
    const char *line = text + at;
    size = r.end - at;
    r.empty = markdown_blank(line, size);
    r.at_margin = !r.empty && !in_fence && *line != ' ' && *line != '\t';
    if (r.at_margin) r.kind = marker_size(line, size) ? '-' : *line == '#' || *line == '>' ? *line : 't';
    return r;
}

// Whether the chunk from `start` on ends before the row.
static bool ends_before(const struct markdown *m, size_t start, const struct chunk *c, const struct source_row *before,
                        const struct source_row *r, size_t size) {
    const size_t most = c->table == MARKDOWN_NO_TABLE ? LONG_CHUNK : LONG_PART;
    if (!r->at_margin || before->empty) return r->at_margin;
    return r->end < size && r->start - start >= most && c->table != before->start &&
           !references_inside(&m->references, r->start);
}

// Steps over the row; false: the chunk ends with it.
static bool step_over(struct chunk *c, const char *text, size_t size, size_t start, const struct source_row *r) {
    const struct markdown_fence before = c->open;
    if (r->empty || before.length) c->table = MARKDOWN_NO_TABLE;
    else if (c->table == MARKDOWN_NO_TABLE && markdown_heads_table(text, size, r->start)) c->table = r->start;
    markdown_fence_line(&c->open, text + r->start, r->end - r->start);
    if (!before.length || before.quotes != c->open.quotes) c->head = r->end + 1 - start;
    if (!before.length || c->open.length || before.indent || before.quotes || r->end == size) return true;
    c->open = before, c->code_end = r->start, c->end = r->end + 1;
    return false;
}

// The chunk that begins at `start`, of which m->open was seen before.
static struct chunk chunk_at(const struct markdown *m, const struct markdown_start *start, size_t size) {
    const char *text = m->references.text;
    struct chunk c = {
        .end = size, .code_end = size, .table = start->table, .open = m->open.fence, .head = m->open.head};
    struct source_row before = {0};
    bool begun = m->open.done;
    for (size_t at = start->at + m->open.done; at < size && !c.complete; at = before.end + 1) {
        const struct source_row r = source_row(text, size, at, c.open.length, before.kind);
        const bool part = !r.empty && !c.open.length && r.end - at > LONG_PART;
        if (begun && ends_before(m, start->at, &c, &before, &r, size)) {
            c.joined = !before.empty && r.kind == before.kind && r.kind != '#';
            c.end = at, c.complete = true;
        } else if (part) {
            c.end = cut_line(text, at + LONG_PART), c.complete = c.joined = true, c.table = MARKDOWN_NO_TABLE;
        } else {
            c.complete = !step_over(&c, text, size, start->at, &r);
        }
        begun |= !r.empty;
        before = r;
        if (c.open.length) before.kind = 0;
    }
    return c;
}

static struct markdown_start *last_start(struct markdown *m) { return &m->starts[m->n_starts - 1]; }

static void begin_chunk(struct markdown *m, struct markdown_start start) {
    if (m->n_starts == m->starts_capacity) {
        m->starts_capacity = 2 * m->starts_capacity + 16;
        m->starts = xrealloc(m->starts, m->starts_capacity * sizeof *m->starts);
    }
    m->starts[m->n_starts++] = start;
}

// What was laid out from the chunk on that holds text[at] is no longer right.
static void rewind_to(struct markdown *m, size_t at) {
    while (m->n_starts > 1 && last_start(m)->at > at) m->n_starts--;
    m->open = (struct markdown_open){0};
}

static void keep_source(struct markdown *m, size_t size) {
    if (size <= m->source_size) return;
    if (size > m->source_capacity) {
        m->source_capacity = size * 2;
        m->source = xrealloc(m->source, m->source_capacity);
    }
    memcpy(m->source + m->source_size, m->references.text + m->source_size, size - m->source_size);
    m->source_size = size;
}

// Lays the chunk out that follows the complete ones; false: it may go on.
static bool layout_chunk(struct markdown *m, size_t size) {
    const struct markdown_start start = *last_start(m);
    const struct chunk c = chunk_at(m, &start, size);
    if (c.open.length && c.head < c.code_end - start.at) {
        markdown_open_chunk(m, &start, c.code_end, c.open, c.head);
    } else {
        m->open = (struct markdown_open){0};
        lines_cut(&m->lines, start.rows);
        markdown_chunk(m, &start, c.end);
    }
    if (c.complete) {
        m->open = (struct markdown_open){0};
        begin_chunk(m, (struct markdown_start){.at = c.end,
                                               .rows = lines_mark(&m->lines),
                                               .ordered_next = m->ordered_next,
                                               .ordered_delimiter = m->ordered_delimiter,
                                               .joined = c.joined,
                                               .table = c.table});
    }
    keep_source(m, last_start(m)->at + m->open.done);
    return c.complete;
}

// ---- the message ----

// "- [", "1. [x]"
static bool begins_task(const char *line, size_t size) {
    struct margin margin = margin_of(line, size, INT_MAX);
    size_t marker = marker_size(line + margin.size, size - margin.size), at = margin.size + marker;
    return marker && at < size && line[at] == '[' && size - at <= 3 && (size - at < 2 || strchr(" xX", line[at + 1])) &&
           (size - at < 3 || line[at + 2] == ']');
}

static bool begins_marker(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (!strchr("-=*_+`~#|>: ", line[i]) || !line[i]) return false;
    return size;
}

// Where lines are to be looked at again, and what is open there.
static size_t unsettled(const struct markdown *m, struct markdown_fence *fence) {
    *fence = m->open.fence;
    return m->starts[m->n_starts - 1].at + m->open.done;
}

// The end of text without a last line that may be the beginning of a marker.
static size_t settled(const struct markdown *m, const char *text, size_t size) {
    struct markdown_fence fence;
    size_t line = unsettled(m, &fence);
    if (line >= size) return size;
    for (size_t end; (end = line_end(text, size, line)) < size; line = end + 1)
        markdown_fence_line(&fence, text + line, end - line);
    const size_t rest = size - line;
    if (begins_marker(text + line, rest)) return line;
    return !fence.length && (begins_task(text + line, rest) || references_begins(text + line, rest)) ? line : size;
}

static void reset(struct markdown *m, struct markdown_options o) {
    m->n_starts = 0;
    begin_chunk(m, (struct markdown_start){.table = MARKDOWN_NO_TABLE});
    m->open = (struct markdown_open){0};
    m->source_size = 0;
    m->references.n = 0;
    m->width = o.width;
    m->ascii = o.ascii;
}

void markdown_layout(struct markdown *m, const char *text, size_t size, struct markdown_options o) {
    struct markdown_fence fence;
    bool goes_on = m->n_starts && m->width == o.width && m->ascii == o.ascii && size >= m->source_size &&
                   (!o.until || o.until >= m->source_size) &&
                   (m->source_size == 0 || memcmp(m->source, text, m->source_size) == 0);
    if (!goes_on) reset(m, o);
    if (o.streaming) {
        size_t shown = settled(m, text, size);
        if (shown >= m->source_size) size = shown;
    }
    const size_t end = o.until && o.until < size ? o.until : size, from = unsettled(m, &fence);
    const size_t stale = references_scan(&m->references, text, size, from, fence);
    if (stale != REFERENCES_NONE) rewind_to(m, stale);
    for (int pass = 0; pass < PASSES; pass++) {
        if (!m->open.done) lines_cut(&m->lines, last_start(m)->rows);
        while (last_start(m)->at < end && layout_chunk(m, end)) {
        }
        if (!o.until) markdown_notes(m);
        const size_t shown = references_settle(&m->references);
        if (shown == REFERENCES_NONE) break;
        rewind_to(m, shown);
    }
}
