// Space marks (format/token.h) in texts that become tokens.
#ifndef CONFAB_TEXT_SPACE_MARK_H
#define CONFAB_TEXT_SPACE_MARK_H

#include "engine/text/vocabulary.h"

// Writes text with a mark for every space: at most SPACE_MARK_SIZE × size bytes. Returns how many.
size_t space_mark_encode(const char *text, size_t size, char *out);
// Bytes up to the first mark that follows anything else.
size_t space_mark_word(const char *text, size_t size);
// Whether no token that merging may make goes on with a mark after anything else: words then merge apart.
bool space_mark_parts_words(const struct vocabulary *v);

#endif
