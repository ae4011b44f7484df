// Character map: SentencePiece's precompiled normalisation (NFKC and similar), which replaces the longest known prefix
// of a text. `tokenizer.ggml.precompiled_charsmap` is a u32 size, a double array of keys as laid out by darts-clone,
// and the values as NUL-terminated strings.
#ifndef CONFAB_TEXT_CHARSMAP_H
#define CONFAB_TEXT_CHARSMAP_H

#include "engine/base/reader.h"

// Longer keys are ignored and longer values rejected: they are not characters. This bounds time and growth per byte.
enum { CHARSMAP_LONGEST = 64 };

struct charsmap {
    const uint8_t *units; // borrowed: [count] u32, little endian
    uint32_t count;       // 0: nothing is replaced
    struct span values;
};

// Borrows and checks `bytes`. `path` is for messages.
bool charsmap_open(struct charsmap *map, struct span bytes, const char *path, struct status *st);
// The length of the longest key that text[0..size) starts with, and its replacement; 0 if none.
size_t charsmap_match(const struct charsmap *map, const char *text, size_t size, struct span *value);

#endif
