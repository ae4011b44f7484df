// Space marks (format/token.h) in texts that become tokens.
#ifndef CONFAB_TEXT_SPACE_MARK_H
#define CONFAB_TEXT_SPACE_MARK_H

#include "engine/text/tokenizer_ops.h"

// Has `encode` append the ids of text with a mark for every space: of all of it at once, or word by word, which are cut
// before the first mark that follows anything else.
void space_mark_encode(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size, bool by_words,
                       tokenizer_encoder *encode, struct token_list *out);
// Whether no token that merging may make goes on with a mark after anything else: words then merge apart.
bool space_mark_parts_words(const struct vocabulary *v);

#endif
