// Replaces spaces by space marks (format/token.h) before encoding.
#ifndef CONFAB_TEXT_SPACE_MARK_H
#define CONFAB_TEXT_SPACE_MARK_H

#include "engine/text/tokenizer_ops.h"

// Calls `encode` for text with a mark for every space: at once, or word by word, split before a mark that follows
// another character.
void space_mark_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size, bool by_words,
                       tokenizer_encoder *encode, struct token_list *out);
// Whether no token that merging can produce has a mark after another character, so that words merge independently.
bool space_mark_parts_words(const struct vocabulary *v);

#endif
