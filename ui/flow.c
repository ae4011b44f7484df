#include "ui/flow.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

#define FLOW_TAB 4

void *flow_grown(void *items, size_t count, size_t more, size_t *capacity, size_t size) {
    if (count + more <= *capacity) return items;
    size_t room = *capacity ? *capacity : 16;
    while (room < count + more) room *= 2;
    *capacity = room;
    return xrealloc(items, room * size);
}

void flow_free(struct flow *f) {
    free(f->text);
    free(f->pieces);
    *f = (struct flow){0};
}

void flow_clear(struct flow *f) {
    f->size = f->n_pieces = 0;
    f->column = 0;
}

static bool style_equal(struct style a, struct style b) {
    return a.role == b.role && a.ground == b.ground && a.attributes == b.attributes && a.shade == b.shade;
}

void flow_style(struct flow *f, struct style style, size_t end) {
    struct flow_piece *last = f->n_pieces ? &f->pieces[f->n_pieces - 1] : NULL;
    if (!last || !style_equal(last->style, style)) {
        f->pieces = flow_grown(f->pieces, f->n_pieces, 1, &f->pieces_capacity, sizeof *f->pieces);
        last = &f->pieces[f->n_pieces++];
        last->style = style;
    }
    last->end = (uint32_t)end;
}

void flow_restyle(struct flow *f) { f->n_pieces = 0; }

void flow_add(struct flow *f, struct style style, const char *text, size_t size) {
    f->text = flow_grown(f->text, f->size, size * FLOW_TAB, &f->capacity, 1);
    for (size_t i = 0; i < size; i++) {
        char byte = text[i];
        if (byte == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
        if (byte == '\t') {
            do f->text[f->size++] = ' ';
            while (++f->column % FLOW_TAB);
            continue;
        }
        f->text[f->size++] = byte;
        if (byte == '\n') f->column = 0;
        else if (((unsigned char)byte & 0xc0) != 0x80) f->column++;
    }
    flow_style(f, style, f->size);
}

void flow_add_text(struct flow *f, struct style style, const char *text) { flow_add(f, style, text, strlen(text)); }

// Punctuation that looks lost at the beginning of a line in Chinese and Japanese.
static bool closes(uint32_t code) {
    switch (code) {
    case 0x3001:
    case 0x3002:
    case 0x300d:
    case 0x300f:
    case 0x3011:
    case 0x3015:
    case 0x30fb:
    case 0x30fc:
    case 0xff01:
    case 0xff09:
    case 0xff0c:
    case 0xff0e:
    case 0xff1a:
    case 0xff1b:
    case 0xff1f:
    case 0x2026: return true;
    default: return code < 0x80 && strchr(")]}.,;:!?", (int)code) && code;
    }
}

static bool opens(uint32_t code) {
    return code == 0x300c || code == 0x300e || code == 0x3010 || code == 0x3014 || code == 0xff08 || code == '(' ||
           code == '[';
}

struct glyph {
    uint32_t code; // its first code point
    int width;
    size_t size;
};

static struct glyph glyph_at(const char *text, size_t size, size_t at) {
    struct glyph c;
    utf8_decode(text + at, size - at, &c.code);
    c.size = text_cluster(text + at, size - at, &c.width);
    return c;
}

static bool breaks_between(struct glyph before, struct glyph after, uint32_t two_before) {
    if (before.width == 2 || after.width == 2) return !closes(after.code) && !opens(before.code);
    bool hyphen = before.code == '-' && after.code < 0x80 && isalnum((int)after.code);
    return hyphen && two_before < 0x80 && isalnum((int)two_before);
}

size_t flow_break(const char *text, size_t size, size_t at, int columns, size_t *end) {
    struct glyph before = {0};
    uint32_t two_before = 0;
    size_t break_end = 0, break_next = 0; // the last place a break may be; break_next 0: none
    int column = 0;
    for (size_t i = at; i < size;) {
        if (text[i] == '\n') return *end = i, i + 1;
        struct glyph c = glyph_at(text, size, i);
        if (c.code == ' ') {
            size_t next = i;
            while (next < size && text[next] == ' ') next++, column++;
            if (next < size && text[next] == '\n') return *end = i, next + 1;
            if (i > at) break_end = i, break_next = next;
            i = next, two_before = before.code, before = c;
            continue;
        }
        if (before.size && before.code != ' ' && breaks_between(before, c, two_before)) break_end = break_next = i;
        if (column + c.width > columns) {
            if (break_next > at) return *end = break_end, break_next;
            if (i > at) return *end = i, i;
        }
        column += c.width, i += c.size, two_before = before.code, before = c;
    }
    *end = size;
    while (*end > at && text[*end - 1] == ' ' && column > columns) (*end)--, column--;
    return size;
}
