#include "engine/base/panic.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(void (*)(void)) panic_hook;

void panic_set_hook(void (*hook)(void)) { atomic_store(&panic_hook, hook); }

_Noreturn void panic(const char *format, ...) {
    void (*hook)(void) = atomic_exchange(&panic_hook, NULL);
    if (hook) hook();
    va_list args;
    va_start(args, format);
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "confab: %s\n", text);
    _exit(1);
}

static void *checked(void *p, size_t size) {
    if (!p && size) panic("out of memory (%zu bytes)", size);
    return p;
}

void *xmalloc(size_t size) { return checked(malloc(size), size); }

void *xcalloc(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (!p && count && size) panic("out of memory (%zu items of %zu bytes)", count, size);
    return p;
}

void *xrealloc(void *p, size_t size) { return checked(realloc(p, size), size); }

char *xstrdup(const char *text) { return xstrndup(text, strlen(text)); }

char *xstrndup(const char *text, size_t length) {
    char *copy = xmalloc(length + 1);
    if (length) memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *xasprintf(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text;
    if (vasprintf(&text, format, args) < 0) panic("out of memory");
    va_end(args);
    return text;
}
