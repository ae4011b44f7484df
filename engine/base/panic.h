// Panic: exits with a message when the program cannot continue (out of memory in small allocations, broken invariants).
// The hook restores the terminal first.
#ifndef CONFAB_BASE_PANIC_H
#define CONFAB_BASE_PANIC_H

#include <stddef.h>

// Called once, before the message is printed; must be safe on any thread. NULL removes it.
void panic_set_hook(void (*hook)(void));

// Prints "confab: <message>" on standard error and exits with status 1.
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

// malloc, calloc, realloc, strdup for small, internal sizes: never return NULL. The caller frees with free().
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
