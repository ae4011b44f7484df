// Arena: memory that is given back all at once: of a model, of a rendered template.
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

// A zeroed struct arena is ready for use.
// For internal sizes: zeroed, 16-byte aligned, never NULL (panics when memory is exhausted).
void *arena_alloc(struct arena *a, size_t size);
// For counts that come from outside: NULL and a status on overflow or exhausted memory.
void *arena_array(struct arena *a, uint64_t count, size_t size, struct status *st);
char *arena_copy(struct arena *a, const char *text, size_t length); // NUL-terminated
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);

// Large zeroed regions (weights, KV, activations): page-aligned, huge pages asked for. NULL when exhausted.
void *region_alloc(size_t size);
void region_free(void *p, size_t size);

#endif
