#include "ui/markdown.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void markdown_free(struct markdown *m) {
    lines_free(&m->lines);
    free(m->source);
    *m = (struct markdown){0};
}

// Where a line's text begins behind quotation marks, list markers and blanks.
static size_t line_indent(const char *line, size_t size) {
    size_t i = 0;
    while (i < size && (line[i] == ' ' || line[i] == '\t' || line[i] == '>')) i++;
    size_t marker = i;
    while (marker < size && line[marker] >= '0' && line[marker] <= '9') marker++;
    bool item = marker + 1 < size && line[marker + 1] == ' ' && memchr("-*+.)", line[marker], 5);
    if (item)
        for (i = marker + 1; i < size && line[i] == ' ';) i++;
    return i;
}

void markdown_fence_line(struct markdown_fence *open, const char *line, size_t size) {
    size_t i = line_indent(line, size), start = i;
    char c = i < size ? line[i] : 0;
    if (c != '`' && c != '~') return;
    while (i < size && line[i] == c) i++;
    size_t length = i - start;
    bool bare = true, ticks = false; // nothing follows; a backtick follows
    for (; i < size; i++) {
        bare &= line[i] == ' ' || line[i] == '\t' || line[i] == '\r';
        ticks |= line[i] == '`';
    }
    if (length < 3) return;
    if (!open->length && !(c == '`' && ticks)) *open = (struct markdown_fence){c, length};
    else if (c == open->character && length >= open->length && bare) *open = (struct markdown_fence){0};
}

static bool blank(const char *line, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static size_t line_end(const char *text, size_t size, size_t at) {
    const char *newline = memchr(text + at, '\n', size - at);
    return newline ? (size_t)(newline - text) : size;
}

// Where the chunk of text that begins at `at` ends; *complete: whatever follows cannot belong to it.
static size_t chunk_end(const char *text, size_t size, size_t at, bool *complete) {
    struct markdown_fence open = {0};
    bool after_blank = false, begun = false;
    while (at < size) {
        size_t end = line_end(text, size, at);
        bool empty = blank(text + at, end - at);
        if (begun && after_blank && !open.length && !empty && text[at] != ' ' && text[at] != '\t')
            return *complete = true, at;
        markdown_fence_line(&open, text + at, end - at);
        begun |= !empty;
        after_blank = empty;
        at = end + 1;
    }
    *complete = false;
    return size;
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
    m->source_size = 0;
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

void markdown_layout(struct markdown *m, const char *text, size_t size, struct markdown_options o) {
    bool goes_on = m->width == o.width && m->ascii == o.ascii && size >= m->source_size &&
                   (m->source_size == 0 || memcmp(m->source, text, m->source_size) == 0);
    if (!goes_on) reset(m, o);
    lines_cut(&m->lines, m->final);
    if (o.streaming) {
        size_t shown = settled(text, size);
        if (shown >= m->source_size) size = shown;
    }
    bool complete = true;
    for (size_t at = m->source_size; at < size && complete;) {
        size_t end = chunk_end(text, size, at, &complete);
        unsigned next = m->ordered_next;
        char delimiter = m->ordered_delimiter;
        markdown_block(m, text + at, end - at);
        at = end;
        if (complete) {
            m->final = lines_mark(&m->lines);
            keep_source(m, text, end);
        } else {
            m->ordered_next = next, m->ordered_delimiter = delimiter;
        }
    }
}
