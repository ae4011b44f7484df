// What md4c is given instead of a chunk of the source, so that nothing vanishes: definitions that are not hidden are
// made text, tables get as many columns as their longest row has cells, and formulas are made text that stands for
// itself.
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

// Every mark is escaped, so that md4c takes none of them for its own.
static void add_escaped(struct flow *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (ispunct((unsigned char)text[i])) add(out, "\\", 1);
        add(out, text + i, 1);
    }
}

// A definition that is not hidden, as it was written: it refers to nothing, so that what is hidden depends on nothing
// that is.
static void add_definition(struct flow *out, const char *text, size_t size, size_t at) {
    while (at < size) {
        struct line l = line_at(text, size, at);
        while (l.size && (*l.text == ' ' || *l.text == '\t')) l.text++, l.size--;
        add_escaped(out, l.text, l.size);
        add(out, "\n", 1);
        at = l.next;
    }
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

static void add_formula(struct flow *out, const char *text, struct maths_span span, bool rows) {
    struct flow formula = {0};
    maths_add(&formula, text + span.tex, span.tex_size, rows);
    add_escaped(out, formula.text, formula.size);
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

bool markdown_heads_table(const char *text, size_t size, size_t at) {
    const struct line heading = line_at(text, size, at);
    return memchr(heading.text, '|', heading.size) && heading.next < size &&
           delimiter(line_at(text, size, heading.next));
}

// The heading of a table, which begins at `head`, and the delimiter below it, which md4c knows only with three dashes a
// column; its rows here begin at `rows`, those before it went to another chunk.
static void add_table_head(struct flow *out, const char *text, size_t size, size_t head, size_t rows) {
    const struct line heading = line_at(text, size, head), dashes = line_at(text, size, heading.next);
    int columns = cells(heading), dashed = cells(dashes);
    if (dashed > columns) columns = dashed;
    struct markdown_fence fence = {0};
    for (size_t at = rows > dashes.next ? rows : dashes.next; at < size;) {
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
}

// ---- the chunk ----

void markdown_prepare(struct flow *out, const struct markdown_prepare *p, struct markdown_fence *fence) {
    const char *text = p->references->text;
    const size_t size = p->to;
    bool in_table = p->table != MARKDOWN_NO_TABLE, in_list = false, in_definitions = false;
    if (in_table) add_table_head(out, text, size, p->table, p->from);
    for (size_t at = p->from; at < size;) {
        const struct reference *d = fence->length ? NULL : references_at(p->references, at);
        if (!d != !in_definitions) add(out, "\n", 1); // they are a paragraph of their own, also where they are hidden
        in_definitions = d;
        if (d) {
            const size_t end = d->end < size ? d->end : size;
            if (!d->hidden) add_definition(out, text, end, at);
            at = end, in_table = false;
            continue;
        }
        struct line l = line_at(text, size, at);
        markdown_fence_line(fence, l.text, l.size);
        if (blank(l)) in_table = false;
        if (!fence->length && !in_table && markdown_heads_table(text, size, at)) {
            add_table_head(out, text, size, at, at);
            at = line_at(text, size, l.next).next;
            in_table = true;
            continue;
        }
        in_list |= begins_item(l);
        if (fence->length) add(out, l.text, l.size);
        else if (p->formulas && may_hold_formulas(l, in_list))
            l.next = add_line_with_formulas(out, text, size, l, in_table);
        else add_line(out, l);
        add(out, "\n", 1); // also at the very end: without it md4c 0.4.8 reads past it (in "[a](b")
        at = l.next;
    }
    add(out, "", 1);
    out->size--, out->column--; // a NUL for the same reason
}
