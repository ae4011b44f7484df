// Source line: a line of a message's Markdown.
#ifndef CONFAB_UI_SOURCE_LINE_H
#define CONFAB_UI_SOURCE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct source_line {
    size_t start, end, next; // end: without its newline
};

static inline struct source_line source_line_at(const char *text, size_t size, size_t at) {
    const char *newline = memchr(text + at, '\n', size - at);
    const size_t end = newline ? (size_t)(newline - text) : size;
    return (struct source_line){at, end > at && text[end - 1] == '\r' ? end - 1 : end, newline ? end + 1 : size};
}

static inline size_t source_skip_blanks(const char *text, size_t at, size_t end) {
    while (at < end && (text[at] == ' ' || text[at] == '\t')) at++;
    return at;
}

static inline bool source_line_blank(const char *text, struct source_line l) {
    return source_skip_blanks(text, l.start, l.end) == l.end;
}

#endif
