// Shared by block_*.c: one unpack_BLOCK_… function per quantised format, and helpers.
#ifndef CONFAB_FORMAT_BLOCK_UNPACK_H
#define CONFAB_FORMAT_BLOCK_UNPACK_H

#include <string.h>

#include "engine/format/block.h"

// `block` may be at any address. Sets everything in *out that describes the block's elements.
#define X(id, gguf, name, bytes, elements) void unpack_##id(const void *block, struct block_codes *out);
QUANTISED_FORMATS(X)
#undef X

// For formats with one d, or one d and m, per block of n elements: value = d × code − dmin.
static inline void whole_block(struct block_codes *out, float d, float dmin, int n) {
    out->d = d, out->dmin = dmin;
    for (int part = 0; part < n / 16; part++) out->scale[part] = out->minimum[part] = 1;
}

// For formats without minimums.
static inline void no_minimum(struct block_codes *out) {
    out->dmin = 0;
    memset(out->minimum, 0, sizeof out->minimum);
}

#endif
