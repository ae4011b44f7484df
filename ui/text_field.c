#include "ui/text_field.h"

#include <string.h>

#include "engine/base/utf8.h"

static void insert(struct text_field *e, const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        char bytes[4];
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        if (code == '\n' || code == '\t') code = ' ';
        if (code < 0x20 || code == 0x7f) continue;
        size_t n = utf8_encode(code, bytes);
        if (e->size + n >= sizeof e->text) return;
        memmove(e->text + e->cursor + n, e->text + e->cursor, e->size - e->cursor + 1);
        memcpy(e->text + e->cursor, bytes, n);
        e->size += n, e->cursor += n;
    }
}

static void erase(struct text_field *e, size_t from, size_t to) {
    memmove(e->text + from, e->text + to, e->size - to + 1);
    e->size -= to - from;
    e->cursor = from;
}

static size_t cluster_before(const struct text_field *e) {
    size_t at = 0, before = 0;
    while (at < e->cursor) {
        int width;
        before = at;
        at += text_cluster(e->text + at, e->size - at, &width);
    }
    return before;
}

static size_t cluster_after(const struct text_field *e) {
    int width;
    return e->cursor < e->size ? e->cursor + text_cluster(e->text + e->cursor, e->size - e->cursor, &width) : e->size;
}

static size_t word_before(const struct text_field *e) {
    size_t at = e->cursor;
    while (at > 0 && e->text[at - 1] == ' ') at--;
    while (at > 0 && e->text[at - 1] != ' ') at--;
    return at;
}

void text_field_set(struct text_field *e, const char *text) {
    *e = (struct text_field){0};
    insert(e, text, strlen(text));
    e->selected = e->size > 0;
}

static bool control_key(struct text_field *e, int letter) {
    switch (letter) {
    case 'a': e->cursor = 0; return true;
    case 'e': e->cursor = e->size; return true;
    case 'b': e->cursor = cluster_before(e); return true;
    case 'f': e->cursor = cluster_after(e); return true;
    case 'd': erase(e, e->cursor, cluster_after(e)); return true;
    case 'h': erase(e, cluster_before(e), e->cursor); return true;
    case 'k': erase(e, e->cursor, e->size); return true;
    case 'u': erase(e, 0, e->cursor); return true;
    case 'w': erase(e, word_before(e), e->cursor); return true;
    default: return false;
    }
}

static bool replaces(const struct key *k) {
    return k->code == KEY_TEXT || k->code == KEY_PASTE || k->code == KEY_BACKSPACE || k->code == KEY_DELETE;
}

bool text_field_key(struct text_field *e, const struct key *k) {
    if (e->selected && replaces(k)) {
        erase(e, 0, e->size);
        e->selected = false;
        if (k->code == KEY_BACKSPACE || k->code == KEY_DELETE) return true;
    }
    e->selected = false;
    switch (k->code) {
    case KEY_TEXT:
        if (k->modifiers & (KEY_ALT | KEY_CTRL)) return false;
        insert(e, k->text, k->size);
        return true;
    case KEY_PASTE: insert(e, k->text, k->size); return true;
    case KEY_BACKSPACE: erase(e, cluster_before(e), e->cursor); return true;
    case KEY_DELETE: erase(e, e->cursor, cluster_after(e)); return true;
    case KEY_LEFT: e->cursor = cluster_before(e); return true;
    case KEY_RIGHT: e->cursor = cluster_after(e); return true;
    case KEY_HOME: e->cursor = 0; return true;
    case KEY_END: e->cursor = e->size; return true;
    case KEY_CONTROL: return control_key(e, k->number);
    default: return false;
    }
}

int text_field_draw(const struct text_field *e, struct canvas *c, struct rect line, struct style s) {
    size_t from = 0;
    int width;
    while (text_width(e->text + from, e->cursor - from) >= line.width && from < e->cursor)
        from += text_cluster(e->text + from, e->size - from, &width);
    if (e->selected) s.attributes |= CELL_REVERSE;
    canvas_text(c, line, line.x, line.y, s, e->text + from, e->size - from);
    return line.x + text_width(e->text + from, e->cursor - from);
}

void text_field_draw_filter(const struct text_field *e, struct view_frame *f, struct rect in, const char *hint) {
    struct rect line = {in.x + 2, in.y, in.width - 2, 1};
    canvas_symbol(f->canvas, in, in.x, in.y, view_style(ROLE_ACCENT), "›", '>');
    f->cursor_x = text_field_draw(e, f->canvas, line, view_style(ROLE_STRONG));
    f->cursor_y = in.y;
    if (!e->size) canvas_text(f->canvas, line, line.x, line.y, view_style(ROLE_DIM), hint, strlen(hint));
}
