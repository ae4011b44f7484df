#include "engine/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/base/panic.h"
#include "engine/base/reader.h"

struct arena_chunk {
    struct arena_chunk *next;
    size_t size, used;
    _Alignas(16) unsigned char data[];
};

enum { CHUNK_BYTES = 64 * 1024 };

static void *arena_take(struct arena *a, size_t size) {
    struct arena_chunk *c = a->chunks;
    if (!c || c->size - c->used < size) {
        size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        if (capacity > SIZE_MAX - sizeof *c || !(c = calloc(1, sizeof *c + capacity))) return NULL;
        c->size = capacity;
        c->next = a->chunks;
        a->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += size;
    a->used += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size) {
    void *p = size <= SIZE_MAX - 16 ? arena_take(a, (size + 15) & ~(size_t)15) : NULL;
    if (!p) panic("out of memory (%zu bytes)", size);
    return p;
}

void *arena_array(struct arena *a, uint64_t count, size_t size, struct status *st) {
    uint64_t total;
    void *p = NULL;
    if (checked_mul(count, size, &total) && checked_align(total, 16, &total)) p = arena_take(a, (size_t)total);
    if (!p) status_fail(st, STATUS_MEMORY, "cannot allocate %llu items of %zu bytes", (unsigned long long)count, size);
    return p;
}

char *arena_copy(struct arena *a, const char *text, size_t length) {
    char *p = arena_alloc(a, length + 1);
    memcpy(p, text, length);
    return p;
}

char *arena_printf(struct arena *a, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return p;
}

void arena_free(struct arena *a) {
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
    *a = (struct arena){0};
}

enum { HUGE_PAGE = 2 << 20 };

// Aligned to a huge page, so that the kernel can use them.
void *region_alloc(size_t size) {
    uint64_t whole, padded;
    if (!size || !checked_align(size, HUGE_PAGE, &whole) || !checked_add(whole, HUGE_PAGE, &padded)) return NULL;
    char *p = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t skip = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    if (skip) munmap(p, skip);
    munmap(p + skip + whole, padded - skip - whole);
    madvise(p + skip, whole, MADV_HUGEPAGE);
    return p + skip;
}

void region_free(void *p, size_t size) {
    uint64_t whole;
    if (p && checked_align(size, HUGE_PAGE, &whole)) munmap(p, whole);
}
