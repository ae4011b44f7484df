#include "engine/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"

// Keeps a message on one line and valid UTF-8, whatever comes from a file.
static void status_clean(char *text) {
    size_t size = strlen(text), at = 0;
    while (at < size) {
        uint32_t code;
        size_t n = utf8_decode(text + at, size - at, &code);
        if (code == UTF8_REPLACEMENT || utf8_is_hidden(code)) memset(text + at, '?', n);
        at += n;
    }
}

bool status_fail(struct status *st, enum status_code code, const char *format, ...) {
    if (!st) return false;
    st->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(st->text, sizeof st->text, format, args);
    va_end(args);
    status_clean(st->text);
    return false;
}

bool status_prefix(struct status *st, const char *format, ...) {
    if (!st) return false;
    char prefix[sizeof st->text], rest[sizeof st->text];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(rest, st->text, sizeof rest);
    return status_fail(st, st->code, "%.*s: %.*s", (int)sizeof prefix / 2, prefix, (int)sizeof rest / 2, rest);
}
