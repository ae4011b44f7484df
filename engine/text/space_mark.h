// The space mark: U+2581, which stands for the space in the tokens of SentencePiece and of what follows its ways.
#ifndef CONFAB_TEXT_SPACE_MARK_H
#define CONFAB_TEXT_SPACE_MARK_H

#include "engine/text/vocabulary.h"

#define SPACE_MARK "\u2581"
enum { SPACE_MARK_SIZE = sizeof SPACE_MARK - 1 };

// Writes text with a mark for every space: at most SPACE_MARK_SIZE × size bytes. Returns how many.
size_t space_mark_encode(const char *text, size_t size, char *out);
// The same text with spaces for marks: itself where it has none, otherwise written to *room, which is moved on.
struct span space_mark_decode(struct span text, char **room);
// Bytes up to the first mark that follows anything else.
size_t space_mark_word(const char *text, size_t size);
// Whether no token that merging may make goes on with a mark after anything else: words then merge apart.
bool space_mark_parts_words(const struct vocabulary *v);

#endif
