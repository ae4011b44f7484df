// Bytes: a run that grows at its end.
#ifndef CONFAB_SERVER_BYTES_H
#define CONFAB_SERVER_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

struct bytes {
    char *data; // owned; NULL: empty
    size_t size, capacity;
};

static inline void bytes_add(struct bytes *b, const void *data, size_t size) {
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = xrealloc(b->data, b->capacity);
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void bytes_free(struct bytes *b) {
    free(b->data);
    *b = (struct bytes){0};
}

#endif
