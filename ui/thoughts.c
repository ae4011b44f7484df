#include "ui/thoughts.h"

#include <stdio.h>
#include <string.h>

#include "ui/view.h"

void thoughts_free(struct thoughts *t) {
    lines_free(&t->lines);
    *t = (struct thoughts){0};
}

void thoughts_forget(struct thoughts *t) {
    t->final = (struct lines_mark){0};
    t->done = t->size = 0;
    lines_cut(&t->lines, t->final);
}

static size_t without_blanks(const char *text, size_t size) {
    while (size && strchr(" \t\r\n", text[size - 1])) size--;
    return size;
}

static void layout_line(struct thoughts *t, struct flow *flow, const char *text, size_t size) {
    flow_clear(flow);
    flow_add(flow, view_style(ROLE_THINKING), text, size);
    if (!flow->size) lines_row(&t->lines), lines_text(&t->lines, "\n", 1);
    for (size_t at = 0, end; at < flow->size;) {
        size_t next = flow_break(flow->text, flow->size, at, t->width, &end);
        lines_row(&t->lines);
        lines_flow(&t->lines, 0, flow, at, end);
        lines_end(&t->lines, flow, end, next, flow->size);
        at = next;
    }
}

void thoughts_layout(struct thoughts *t, struct flow *flow, const char *text, size_t size, int width) {
    size = without_blanks(text, size);
    if (t->width == width && t->size == size) return;
    if (t->width != width || size < t->size) thoughts_forget(t);
    t->width = width;
    t->size = size;
    lines_cut(&t->lines, t->final);
    while (t->done < size) {
        const char *line = text + t->done, *newline = memchr(line, '\n', size - t->done);
        layout_line(t, flow, line, newline ? (size_t)(newline - line) : size - t->done);
        if (!newline) break;
        t->done = (size_t)(newline + 1 - text);
        t->final = lines_mark(&t->lines);
    }
}

const char *thoughts_label(bool streaming, bool ascii, int tokens, double seconds, char out[THOUGHTS_LABEL]) {
    char number[VIEW_NUMBER];
    const char *plural = tokens == 1 ? "" : "s";
    view_number(tokens, number);
    if (streaming)
        snprintf(out, THOUGHTS_LABEL, "thinking%s %s token%s, %.1f s", ascii ? "..." : "…", number, plural, seconds);
    else snprintf(out, THOUGHTS_LABEL, "thought for %.1f s, %s token%s", seconds, number, plural);
    return out;
}
