#include "ui/window.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

#define TITLE_BYTES 120

// One line without what ends a sequence or separates its parts.
static char *clean_title(const char *text) {
    char *out = xmalloc(TITLE_BYTES + 5);
    size_t n = 0;
    for (size_t size = strlen(text), at = 0; at < size && n < TITLE_BYTES;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
                             (code >= 0x2066 && code <= 0x2069);
        n += utf8_encode(control || code == ';' ? ' ' : code, out + n);
    }
    out[n] = 0;
    return out;
}

static bool write_title(struct terminal *t, const char *format, const char *title) {
    char *clean = clean_title(title), *bytes = xasprintf(format, clean);
    const bool written = terminal_write(t, bytes, strlen(bytes));
    free(bytes), free(clean);
    return written;
}

void window_set_title(struct window *w, struct terminal *t, const char *title) {
    const unsigned taken = terminal_taken(t);
    if (!taken || (w->title && w->taken == taken && !strcmp(w->title, title))) return;
    if (!write_title(t, "\033]2;%s - confab\033\\", title)) return;
    free(w->title);
    *w = (struct window){.title = xstrdup(title), .taken = taken};
}

void window_close(struct window *w) { free(w->title); }

void window_notify(struct terminal *t, enum window_notice kind, const char *title) {
    static const char *const forms[] = {[WINDOW_NOTICE_BELL] = "\a%.0s",
                                        [WINDOW_NOTICE_OSC9] = "\033]9;answered: %s\033\\",
                                        [WINDOW_NOTICE_OSC777] = "\033]777;notify;confab;answered: %s\033\\"};
    if (kind != WINDOW_NOTICE_NONE) write_title(t, forms[kind], title);
}
