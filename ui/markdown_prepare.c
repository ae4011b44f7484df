// What md4c is given instead of a chunk of the source, so that nothing vanishes: link definitions are made text, tables
// get as many columns as their longest row has cells, and formulas are made text that stands for itself.
#include <ctype.h>
#include <string.h>

#include "ui/markdown.h"
#include "ui/maths.h"

#define MAX_CELLS 65 // one more than a table may have columns

static const struct style no_style = {0};

static void add(struct flow *out, const char *text, size_t size) { flow_add(out, no_style, text, size); }

struct line {
    const char *text;
    size_t size; // without the newline
    size_t next; // where the line after it begins
};

static struct line line_at(const char *text, size_t size, size_t at) {
    const char *newline = memchr(text + at, '\n', size - at);
    size_t end = newline ? (size_t)(newline - text) : size, next = newline ? end + 1 : size;
    if (end > at && text[end - 1] == '\r') end--;
    return (struct line){text + at, end - at, next};
}

static bool blank(struct line l) {
    for (size_t i = 0; i < l.size; i++)
        if (l.text[i] != ' ' && l.text[i] != '\t') return false;
    return true;
}

// ---- definitions ----

// A line that could begin a definition ("[name]: address", in whatever containers; the name may go over lines), which
// would vanish: where the backslash goes that keeps it visible, −1: none is needed.
static int definition(struct line l) {
    size_t i = 0;
    while (i < l.size && memchr(" \t>-*+.)0123456789", l.text[i], 18)) i++;
    if (i >= l.size || l.text[i] != '[') return -1;
    const char *close = memchr(l.text + i, ']', l.size - i);
    return !close || (close + 1 < l.text + l.size && close[1] == ':') ? (int)i : -1;
}

static void add_line(struct flow *out, struct line l) {
    int head = definition(l);
    if (head >= 0) {
        add(out, l.text, (size_t)head);
        add(out, "\\", 1);
        l.text += head, l.size -= (size_t)head;
    }
    add(out, l.text, l.size);
}

// ---- formulas ----

// The bytes of the code span or the escaped character that begins at text[at], as it is to stay; 1: neither.
static size_t kept_size(const char *text, size_t size, size_t at) {
    if (text[at] == '\\') return at + 1 < size ? 2 : 1;
    size_t n = 0;
    while (at + n < size && text[at + n] == '`') n++;
    if (n == 0) return 1;
    for (size_t i = at + n, run = 0; i < size && text[i] != '\n'; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        if (run == n && (i + 1 == size || text[i + 1] != '`')) return i + 1 - at;
    }
    return n;
}

// Every mark is escaped, so that md4c takes none of them for its own.
static void add_formula(struct flow *out, const char *text, struct maths_span span, bool rows) {
    struct flow formula = {0};
    maths_add(&formula, text + span.tex, span.tex_size, rows);
    for (size_t i = 0; i < formula.size; i++) {
        if (ispunct((unsigned char)formula.text[i])) add(out, "\\", 1);
        add(out, formula.text + i, 1);
    }
    flow_free(&formula);
}

// Adds the line, its formulas made readable; those on lines of their own go over lines. Returns where the next one
// begins.
static size_t add_line_with_formulas(struct flow *out, const char *text, size_t size, struct line l, bool one_line) {
    const size_t start = (size_t)(l.text - text), limit = one_line ? start + l.size : size;
    size_t end = start + l.size, next = l.next, at = start, done = start;
    bool text_before = false;
    while (at < end) {
        const struct maths_span span = maths_find(text, limit, at);
        if (!span.size) {
            const size_t kept = kept_size(text, end, at);
            text_before |= text[at] != ' ';
            at += kept;
            continue;
        }
        const bool rows = span.display && !one_line;
        add(out, text + done, at - done);
        if (rows && text_before) add(out, "\n", 1);
        add_formula(out, text + at, span, rows);
        at = done = at + span.size;
        if (at > end) {
            const struct line last = line_at(text, size, at);
            end = at + last.size, next = last.next;
        }
        text_before = true;
        while (rows && done < end && text[done] == ' ') done++;
        if (rows && done < end) add(out, "\n", 1);
        at = done;
    }
    add(out, text + done, end - done);
    return next;
}

static bool may_hold_formulas(struct line l, bool in_list) {
    size_t columns = 0;
    while (columns < l.size && l.text[columns] == ' ') columns++;
    return definition(l) < 0 && (in_list || (columns < 4 && columns < l.size && l.text[columns] != '\t')) &&
           (memchr(l.text, '$', l.size) || memchr(l.text, '\\', l.size));
}

static bool begins_item(struct line l) {
    size_t i = 0;
    while (i < l.size && (l.text[i] == ' ' || l.text[i] == '>')) i++;
    while (i < l.size && isdigit((unsigned char)l.text[i])) i++;
    return i + 1 < l.size && memchr("-*+.)", l.text[i], 5) && l.text[i + 1] == ' ';
}

// ---- tables ----

static int cells(struct line l) {
    size_t start = 0, end = l.size;
    while (start < end && (l.text[start] == ' ' || l.text[start] == '\t')) start++;
    while (end > start && (l.text[end - 1] == ' ' || l.text[end - 1] == '\t')) end--;
    start += start < end && l.text[start] == '|';
    end -= end > start && l.text[end - 1] == '|';
    int n = 1;
    for (size_t i = start; i < end && n < MAX_CELLS; i++) {
        if (l.text[i] == '\\') i++;
        else n += l.text[i] == '|';
    }
    return n;
}

static bool delimiter(struct line l) {
    bool bar = false, dash = false;
    for (size_t i = 0; i < l.size; i++) {
        if (!memchr("|-: \t", l.text[i], 5)) return false;
        bar |= l.text[i] == '|';
        dash |= l.text[i] == '-';
    }
    return bar && dash;
}

static void add_cells(struct flow *out, struct line l, int n, const char *cell) {
    size_t end = l.size;
    while (end > 0 && l.text[end - 1] == ' ') end--;
    if (n > 0 && end > 0 && l.text[end - 1] != '|') add(out, "|", 1);
    for (; n > 0; n--) add(out, cell, strlen(cell));
}

// The heading of a table and the delimiter below it, which md4c knows only with three dashes a column; returns where
// the rows begin.
static size_t add_table_head(struct flow *out, struct line heading, struct line dashes, const char *text, size_t size) {
    int columns = cells(heading), dashed = cells(dashes);
    if (dashed > columns) columns = dashed;
    struct markdown_fence fence = {0};
    for (size_t at = dashes.next; at < size;) {
        struct line row = line_at(text, size, at);
        markdown_fence_line(&fence, row.text, row.size);
        if (blank(row) || fence.length) break;
        int n = cells(row);
        columns = n > columns ? n : columns;
        at = row.next;
    }
    add_line(out, heading);
    add_cells(out, heading, columns - cells(heading), " |");
    add(out, "\n", 1);
    for (size_t i = 0; i < dashes.size; i++)
        add(out, dashes.text[i] == '-' ? "---" : dashes.text + i, dashes.text[i] == '-' ? 3 : 1);
    add_cells(out, dashes, columns - dashed, "---|");
    add(out, "\n", 1);
    return dashes.next;
}

// ---- the chunk ----

void markdown_prepare(struct flow *out, const char *text, size_t size, bool formulas, struct markdown_fence *fence) {
    bool in_table = false, in_list = false;
    for (size_t at = 0; at < size;) {
        struct line l = line_at(text, size, at), below = l.next < size ? line_at(text, size, l.next) : (struct line){0};
        markdown_fence_line(fence, l.text, l.size);
        if (blank(l)) in_table = false;
        if (!fence->length && !in_table && memchr(l.text, '|', l.size) && delimiter(below)) {
            at = add_table_head(out, l, below, text, size);
            in_table = true;
            continue;
        }
        in_list |= begins_item(l);
        if (fence->length) add(out, l.text, l.size);
        else if (formulas && may_hold_formulas(l, in_list))
            l.next = add_line_with_formulas(out, text, size, l, in_table);
        else add_line(out, l);
        add(out, "\n", 1); // also at the very end: without it md4c 0.4.8 reads past it (in "[a](b")
        at = l.next;
    }
    add(out, "", 1);
    out->size--, out->column--; // a NUL for the same reason
}
