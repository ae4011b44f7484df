#include "ui/message_blocks.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/panic.h"
#include "ui/source_line.h"

// ---- lines ----

static bool opens_fence(const char *text, struct source_line l, struct markdown_fence *fence) {
    *fence = (struct markdown_fence){0};
    markdown_fence_line(fence, text + l.start, l.end - l.start);
    return fence->length;
}

// Otherwise the fence ended because the quotation did that it stood in.
static bool closes_fence(const char *text, struct source_line l, char fence) {
    size_t at = l.start;
    while (at < l.end && strchr(" \t>", text[at])) at++;
    while (at < l.end && text[at] == fence) at++;
    return source_skip_blanks(text, at, l.end) == l.end && memchr(text + l.start, fence, l.end - l.start);
}

static bool is_item(const char *text, struct source_line l) {
    size_t at = source_skip_blanks(text, l.start, l.end);
    const size_t number = at;
    while (at < l.end && isdigit((unsigned char)text[at])) at++;
    const bool mark = at < l.end && text[at] && strchr(at > number ? ".)" : "-*+", text[at]);
    return mark && (at + 1 == l.end || text[at + 1] == ' ' || text[at + 1] == '\t');
}

static bool is_table(const char *text, size_t size, struct source_line head) {
    if (head.next >= size || !memchr(text + head.start, '|', head.end - head.start)) return false;
    const struct source_line l = source_line_at(text, size, head.next);
    bool bar = false, dash = false;
    for (size_t i = l.start; i < l.end; i++) {
        if (!text[i] || !strchr("|-: \t", text[i])) return false;
        bar |= text[i] == '|', dash |= text[i] == '-';
    }
    return bar && dash;
}

static bool is_heading(const char *text, struct source_line l) { return l.start < l.end && text[l.start] == '#'; }

static enum block_kind kind_of(const char *text, size_t size, struct source_line l) {
    const size_t at = source_skip_blanks(text, l.start, l.end);
    struct markdown_fence fence;
    if (opens_fence(text, l, &fence)) return BLOCK_CODE;
    if (at < l.end && text[at] == '>') return BLOCK_QUOTE;
    if (is_table(text, size, l)) return BLOCK_TABLE;
    return is_item(text, l) ? BLOCK_LIST : BLOCK_TEXT;
}

// ---- blocks ----

static void end_code(const char *text, size_t size, struct source_line l, struct message_block *b) {
    opens_fence(text, l, &b->fence);
    struct markdown_fence fence = b->fence;
    b->code_start = b->code_end = l.next;
    b->end = l.end;
    while (l.next < size) {
        l = source_line_at(text, size, l.next);
        markdown_fence_line(&fence, text + l.start, l.end - l.start);
        const bool inside = fence.length && fence.quotes == b->fence.quotes;
        if (inside) b->code_end = l.next;
        if (inside || closes_fence(text, l, b->fence.character)) b->end = l.end;
        if (!inside) return;
    }
}

// Whether a block goes on with the line, with `gap` blank lines before it.
static bool goes_on(const char *text, size_t size, enum block_kind kind, struct source_line l, bool gap) {
    const enum block_kind own = kind_of(text, size, l);
    if (own == BLOCK_CODE || is_heading(text, l)) return false;
    if (kind == BLOCK_LIST) return own == BLOCK_LIST || !gap || strchr(" \t", text[l.start]);
    return !gap && (own == BLOCK_TEXT || (own == kind && kind == BLOCK_QUOTE));
}

bool message_block_next(const char *text, size_t size, size_t from, struct message_block *b) {
    struct source_line l = {.next = from};
    do {
        if (l.next >= size) return false;
        l = source_line_at(text, size, l.next);
    } while (source_line_blank(text, l));
    *b = (struct message_block){.kind = kind_of(text, size, l), .start = l.start, .end = l.end};
    if (b->kind == BLOCK_CODE) return end_code(text, size, l, b), true;
    for (bool gap = false, alone = is_heading(text, l); !alone && l.next < size;) {
        l = source_line_at(text, size, l.next);
        const bool empty = source_line_blank(text, l);
        if (!empty && !goes_on(text, size, b->kind, l, gap)) break;
        if (!empty) b->end = l.end;
        gap = empty;
    }
    return true;
}

bool message_block_find(const char *text, size_t size, int number, struct message_block *b) {
    b->end = 0;
    while (message_block_next(text, size, b->end, b))
        if (--number == 0) return true;
    return false;
}

// ---- as they are copied ----

struct text {
    char *bytes; // has room for all of the source
    size_t size;
};

static void add(struct text *t, const char *bytes, size_t size) {
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
}

// Where a line of code begins behind the quotation marks and the margin of its fence.
static size_t code_begin(const char *text, struct source_line l, const struct markdown_fence *fence) {
    size_t at = l.start;
    for (int i = 0; i < fence->quotes; i++) {
        const size_t mark = source_skip_blanks(text, at, l.end);
        if (mark == l.end || text[mark] != '>') break;
        at = mark + 1 < l.end && text[mark + 1] == ' ' ? mark + 2 : mark + 1;
    }
    for (int column = 0; at < l.end && column < fence->indent && (text[at] == ' ' || text[at] == '\t'); at++)
        column = text[at] == '\t' ? (column + 4) & ~3 : column + 1;
    return at;
}

static void add_code(struct text *t, const char *text, const struct message_block *b) {
    for (size_t at = b->code_start; at < b->code_end;) {
        const struct source_line l = source_line_at(text, b->code_end, at);
        const size_t begin = code_begin(text, l, &b->fence);
        add(t, text + begin, l.next - begin);
        at = l.next;
    }
    if (t->size && t->bytes[t->size - 1] != '\n') add(t, "\n", 1);
}

static void add_cells(struct text *t, const char *text, struct source_line l) {
    size_t at = source_skip_blanks(text, l.start, l.end), end = l.end;
    while (end > at && (text[end - 1] == ' ' || text[end - 1] == '\t')) end--;
    at += at < end && text[at] == '|';
    end -= end > at && text[end - 1] == '|' && text[end - 2] != '\\';
    for (bool first = true; at <= end; first = false) {
        if (!first) add(t, "\t", 1);
        at = source_skip_blanks(text, at, end);
        const size_t begin = t->size;
        for (; at < end && text[at] != '|'; at++) {
            if (text[at] == '\\' && at + 1 < end && text[at + 1] == '|') at++;
            add(t, text + at, 1);
        }
        while (t->size > begin && strchr(" \t", t->bytes[t->size - 1])) t->size--;
        at++;
    }
    add(t, "\n", 1);
}

// The line below the head has nothing but the rule.
static void add_table(struct text *t, const char *text, const struct message_block *b) {
    int row = 0;
    for (size_t at = b->start; at < b->end; row++) {
        const struct source_line l = source_line_at(text, b->end, at);
        if (row != 1) add_cells(t, text, l);
        at = l.next;
    }
}

char *message_block_text(const char *text, const struct message_block *b, size_t *size) {
    struct text t = {.bytes = xmalloc(b->end - b->start + 2)};
    if (b->kind == BLOCK_CODE) add_code(&t, text, b);
    else if (b->kind == BLOCK_TABLE) add_table(&t, text, b);
    else add(&t, text + b->start, b->end - b->start);
    t.bytes[t.size] = 0;
    *size = t.size;
    return t.bytes;
}

// ---- a name for the file ----

// The path that a comment consists of, perhaps behind "file:"; 0: none. What leads out of the folder is none.
static size_t named_file(const char *text, struct source_line l, size_t *start) {
    size_t at = l.start, end = l.end, last = 0;
    while (at < end && strchr("#/*-;<!%", text[at])) at++;
    if (at == l.start) return 0; // no comment
    at = source_skip_blanks(text, at, end);
    while (end > at && strchr(" \t*/->", text[end - 1])) end--;
    const char *colon = memchr(text + at, ':', end - at);
    if (colon) at = source_skip_blanks(text, (size_t)(colon - text) + 1, end);
    for (size_t i = at; i < end; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("._/-+", text[i])) return 0;
        if (text[i] == '.' && i > at && text[i - 1] == '.') return 0;
        if (text[i] == '.') last = i;
    }
    *start = at;
    return last > at && end - last > 1 && text[at] != '/' && end - at < 60 ? end - at : 0;
}

static const char *ending_of(const char *language, char own[16]) {
    static const char *const endings[][2] = {
        {"python", "py"},      {"javascript", "js"}, {"typescript", "ts"}, {"c++", "cpp"},   {"csharp", "cs"},
        {"c#", "cs"},          {"rust", "rs"},       {"ruby", "rb"},       {"bash", "sh"},   {"shell", "sh"},
        {"kotlin", "kt"},      {"haskell", "hs"},    {"perl", "pl"},       {"golang", "go"}, {"markdown", "md"},
        {"powershell", "ps1"}, {"julia", "jl"},      {"console", "txt"},   {"text", "txt"},  {"plaintext", "txt"},
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(endings[i][0], language)) return endings[i][1];
    size_t n = 0;
    while (n < 15 && isalnum((unsigned char)language[n])) own[n] = (char)tolower((unsigned char)language[n]), n++;
    own[n] = 0;
    return n && !language[n] ? own : "txt";
}

void message_block_file_name(const char *text, const struct message_block *b, char out[64]) {
    char language[24] = "", own[16];
    const struct source_line fence = source_line_at(text, b->end, b->start);
    size_t at = b->start, start = 0;
    struct source_line first = source_line_at(text, b->code_end, b->code_start);
    first.start = code_begin(text, first, &b->fence);
    const size_t named = b->code_start < b->code_end ? named_file(text, first, &start) : 0;
    while (at < fence.end && text[at] != b->fence.character) at++;
    while (at < fence.end && text[at] == b->fence.character) at++;
    at = source_skip_blanks(text, at, fence.end);
    size_t n = 0;
    while (at + n < fence.end && !strchr(" \t,{", text[at + n])) n++;
    snprintf(language, sizeof language, "%.*s", (int)n, text + at);
    if (named) snprintf(out, 64, "%.*s", (int)named, text + start);
    else snprintf(out, 64, "code.%s", ending_of(language, own));
}
