// Characters map: SentencePiece's precompiled normalisation, which replaces the longest known prefix of a text by
// another text (NFKC and the like). The keys are a double array as darts-clone lays it out, the values strings that end
// in NUL: `tokenizer.ggml.precompiled_charsmap` = u32 bytes of the array, the array, the strings.
#ifndef CONFAB_TEXT_CHARSMAP_H
#define CONFAB_TEXT_CHARSMAP_H

#include "engine/base/reader.h"

// Keys and values that are longer are no characters: such keys are not looked for, such values are refused. This
// bounds the work for a byte of text, and what it grows to.
enum { CHARSMAP_LONGEST = 64 };

struct charsmap {
    const uint8_t *units; // borrowed: [count] u32, little endian
    uint32_t count;       // 0: nothing is replaced
    struct span values;
};

// Over borrowed bytes, which it checks. `path` is for the message.
bool charsmap_open(struct charsmap *map, struct span bytes, const char *path, struct status *st);
// Bytes of the longest key that text[0..size) begins with, and what replaces it; 0 when none.
size_t charsmap_match(const struct charsmap *map, const char *text, size_t size, struct span *value);

#endif
