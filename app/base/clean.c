#include "app/base/clean.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"

static uint32_t clean_code(uint32_t code) {
    uint32_t mark = code == '\n' || code == '\t' ? 0 : utf8_mark(code);
    return mark ? mark : code;
}

size_t clean_text(const char *text, size_t size, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        n += utf8_encode(clean_code(code), out + n);
    }
    return n;
}

char *clean_copy(const char *text) {
    size_t size = strlen(text);
    char *clean = xmalloc(3 * size + 1);
    clean[clean_text(text, size, clean)] = 0;
    return clean;
}

char *clean_line(const char *text, size_t most) {
    char *clean = xmalloc(most + 4);
    size_t size = strlen(text), n = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += utf8_decode(text + at, size - at, &code);
        size_t length = utf8_encode(code < 0x20 ? utf8_mark(code) : clean_code(code), clean + n);
        if (n + length > most) break;
        n += length;
    }
    clean[n] = 0;
    return clean;
}

void clean_write(FILE *out, const char *text, size_t size) {
    if (!isatty(fileno(out))) {
        fwrite(text, 1, size, out);
        return;
    }
    char *clean = xmalloc(3 * size + 1);
    fwrite(clean, 1, clean_text(text, size, clean), out);
    free(clean);
}
