#include "ui/markdown.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void markdown_free(struct markdown *m) {
    lines_free(&m->lines);
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

static bool blank(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static bool closed(const struct markdown_fence *open, const char *line, size_t size) {
    struct margin m = margin_of(line, size, open->quotes);
    size_t length = run_length(line + m.size, size - m.size, open->character), after = m.size + length;
    return length >= open->length && m.columns <= open->indent + 3 && blank(line + after, size - after);
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

struct chunk {
    size_t end;
    bool complete; // whatever follows cannot belong to it
    struct markdown_fence open; // at its end
    size_t head; // bytes up to the end of the line that opens it
};

// The chunk that begins at `at`, of which `known` was seen before.
static struct chunk chunk_at(const char *text, size_t size, size_t at, const struct markdown_open *known) {
    struct chunk c = {.end = size, .open = known->fence, .head = known->head};
    bool after_blank = false, begun = known->done;
    for (size_t start = at, line = at + known->done, end; line < size; line = end + 1) {
        end = line_end(text, size, line);
        bool empty = blank(text + line, end - line);
        if (begun && after_blank && !c.open.length && !empty && text[line] != ' ' && text[line] != '\t') {
            c.end = line, c.complete = true;
            break;
        }
        struct markdown_fence before = c.open;
        markdown_fence_line(&c.open, text + line, end - line);
        if (!before.length || before.quotes != c.open.quotes) c.head = end + 1 - start;
        begun |= !empty;
        after_blank = empty;
    }
    return c;
}

// The end of text without a last line that may be the beginning of a marker.
static size_t settled(const char *text, size_t size) {
    size_t line = size;
    while (line > 0 && text[line - 1] != '\n') line--;
    for (size_t i = line; i < size; i++)
        if (!strchr("-=*_+`~#|>: ", text[i]) || !text[i]) return size;
    return line;
}

static void reset(struct markdown *m, struct markdown_options o) {
    lines_cut(&m->lines, (struct lines_mark){0});
    m->final = (struct lines_mark){0};
    m->open = (struct markdown_open){0};
    m->final_size = m->source_size = 0;
    m->ordered_next = 0;
    m->width = o.width;
    m->ascii = o.ascii;
}

static void keep_source(struct markdown *m, const char *text, size_t size) {
    if (size > m->source_capacity) {
        m->source_capacity = size * 2;
        m->source = xrealloc(m->source, m->source_capacity);
    }
    memcpy(m->source + m->source_size, text + m->source_size, size - m->source_size);
    m->source_size = size;
}

// Lays the chunk out that follows the final ones; false: it may go on.
static bool layout_chunk(struct markdown *m, const char *text, size_t size) {
    size_t at = m->final_size;
    struct chunk c = chunk_at(text, size, at, &m->open);
    unsigned next = m->ordered_next;
    char delimiter = m->ordered_delimiter;
    if (c.open.length && c.head < c.end - at) {
        markdown_open_block(m, text + at, c.end - at, c.open, c.head);
    } else {
        lines_cut(&m->lines, m->final);
        m->open = (struct markdown_open){0};
        markdown_block(m, text + at, c.end - at);
    }
    if (c.complete) {
        m->final = lines_mark(&m->lines);
        m->final_size = c.end;
    } else {
        m->ordered_next = next, m->ordered_delimiter = delimiter;
    }
    if (m->final_size + m->open.done > m->source_size) keep_source(m, text, m->final_size + m->open.done);
    return c.complete;
}

void markdown_layout(struct markdown *m, const char *text, size_t size, struct markdown_options o) {
    bool goes_on = m->width == o.width && m->ascii == o.ascii && size >= m->source_size &&
                   (m->source_size == 0 || memcmp(m->source, text, m->source_size) == 0);
    if (!goes_on) reset(m, o);
    if (!m->open.done) lines_cut(&m->lines, m->final);
    if (o.streaming) {
        size_t shown = settled(text, size);
        if (shown >= m->source_size) size = shown;
    }
    while (m->final_size < size && layout_chunk(m, text, size)) {
    }
}
