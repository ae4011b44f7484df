#include "tests/golden/xterm_keys.h"

#include <stdio.h>

size_t xterm_key(const struct key *k, char out[XTERM_BYTES]) {
    static const char *const letters[] = {
        [KEY_UP] = "A", [KEY_DOWN] = "B", [KEY_RIGHT] = "C", [KEY_LEFT] = "D", [KEY_HOME] = "H", [KEY_END] = "F"};
    static const int tildes[] = {[KEY_INSERT] = 2, [KEY_DELETE] = 3, [KEY_PAGE_UP] = 5, [KEY_PAGE_DOWN] = 6};
    static const int functions[] = {11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24};
    int modifiers = 1 + k->modifiers;
    const char *alt = k->modifiers & KEY_ALT ? "\033" : "";
    switch (k->code) {
    case KEY_TEXT: return (size_t)snprintf(out, XTERM_BYTES, "%s%.*s", alt, (int)k->size, k->text);
    case KEY_ENTER: return (size_t)snprintf(out, XTERM_BYTES, "%s\r", alt);
    case KEY_BACKSPACE: return (size_t)snprintf(out, XTERM_BYTES, "%s\x7f", alt);
    case KEY_ESCAPE: return (size_t)snprintf(out, XTERM_BYTES, "\033");
    case KEY_TAB: return (size_t)snprintf(out, XTERM_BYTES, "%s", k->modifiers & KEY_SHIFT ? "\033[Z" : "\t");
    case KEY_CONTROL: return (size_t)snprintf(out, XTERM_BYTES, "%s%c", alt, k->number & 0x1f);
    case KEY_FUNCTION: return (size_t)snprintf(out, XTERM_BYTES, "\033[%d;%d~", functions[k->number - 1], modifiers);
    case KEY_INSERT:
    case KEY_DELETE:
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN: return (size_t)snprintf(out, XTERM_BYTES, "\033[%d;%d~", tildes[k->code], modifiers);
    case KEY_UP:
    case KEY_DOWN:
    case KEY_LEFT:
    case KEY_RIGHT:
    case KEY_HOME:
    case KEY_END: return (size_t)snprintf(out, XTERM_BYTES, "\033[1;%d%s", modifiers, letters[k->code]);
    default: return 0;
    }
}

size_t xterm_mouse(int button, int x, int y, bool release, char out[XTERM_BYTES]) {
    return (size_t)snprintf(out, XTERM_BYTES, "\033[<%d;%d;%d%c", button, x + 1, y + 1, release ? 'm' : 'M');
}
