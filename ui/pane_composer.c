// The message being written: what readline makes of the keys (composer.h).
#include <string.h>

#include "ui/screen_state.h"

static void draw(struct view_frame *f, struct rect area, void *kept) {
    composer_draw(kept, f->canvas, area, &f->cursor_x, &f->cursor_y);
}

// Terminals that name keys by their code points send sequences for characters too, of which readline knows none.
static bool named_by_code(const struct key *k) {
    return k->raw_size > 2 && k->raw[0] == '\033' && memchr("[O\033", k->raw[1], 3);
}

// The key as readline knows it.
static void readline_key(struct composer *c, const struct key *k) {
    char bytes[8] = "\033";
    size_t n = k->modifiers & KEY_ALT ? 1 : 0;
    if (!named_by_code(k)) {
        composer_bytes(c, k->raw, k->raw_size);
    } else if (k->code == KEY_TAB && k->modifiers & KEY_SHIFT) {
        composer_sequence(c, "\033[Z", 3);
    } else if (k->code == KEY_TEXT) {
        memcpy(bytes + n, k->text, k->size); // one character
        if (!(k->modifiers & KEY_CTRL)) composer_bytes(c, bytes, n + k->size);
    } else {
        bytes[n] = k->code == KEY_TAB ? '\t' : k->code == KEY_BACKSPACE ? '\x7f' : (char)(k->number & 0x1f);
        composer_bytes(c, bytes, n + 1);
    }
}

static bool key(struct screen *s, void *kept, const struct key *k) {
    (void)s;
    struct composer *c = kept;
    switch (k->code) {
    case KEY_NONE: return false;
    case KEY_PASTE: composer_paste(c, k->text, k->size); break;
    case KEY_ENTER: composer_newline(c); break; // with a modifier: without, it is a command
    case KEY_UP:
        if (k->modifiers || !composer_up(c)) composer_sequence(c, k->raw, k->raw_size);
        break;
    case KEY_DOWN:
        if (k->modifiers || !composer_down(c)) composer_sequence(c, k->raw, k->raw_size);
        break;
    case KEY_CONTROL:
        if (k->number == 'j' && !k->modifiers) composer_newline(c);
        else readline_key(c, k);
        break;
    case KEY_ESCAPE: composer_escape(c); break;
    case KEY_TEXT:
    case KEY_TAB:
    case KEY_BACKSPACE: readline_key(c, k); break;
    default: composer_sequence(c, k->raw, k->raw_size); break;
    }
    return true;
}

static void click(struct screen *s, void *kept, const struct hit *h) {
    completion_take(&s->completion, s, kept, h->number);
}

const struct pane pane_composer = {.draw = draw, .key = key, .click = click};
