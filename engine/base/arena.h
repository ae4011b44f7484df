// Arena: memory freed all at once, for example of a model or a rendered template.
// Allocations are 16-byte aligned and zeroed.
#ifndef CONFAB_BASE_ARENA_H
#define CONFAB_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; // newest first
    size_t used;                // bytes handed out
};

// A zeroed struct arena is ready to use.
// For internal sizes: never NULL; panics if out of memory.
void *arena_alloc(struct arena *a, size_t size);
// For untrusted counts: NULL and a status on overflow or if out of memory.
void *arena_array(struct arena *a, uint64_t count, size_t size, struct status *st);
char *arena_copy(struct arena *a, const char *text, size_t length); // NUL-terminated
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);

// Large zeroed regions (weights, KV, activations): page-aligned, with huge pages if possible. NULL if out of memory.
void *region_alloc(size_t size);
void region_free(void *p, size_t size);

#endif
