// Tokens as the keys `tokenizer.ggml.*` spell them: what importers write and tokenizers read.
#ifndef CONFAB_FORMAT_TOKEN_H
#define CONFAB_FORMAT_TOKEN_H

#include "engine/base/reader.h"

// As `tokenizer.ggml.token_type` counts them.
enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNUSED, TOKEN_BYTE };

// The byte that "<0x41>" stands for; −1 when the text is not of this very form.
int token_byte(struct span text);

// The space mark, U+2581: the space in the tokens of SentencePiece and of what follows its ways.
#define SPACE_MARK "\u2581"
enum { SPACE_MARK_SIZE = sizeof SPACE_MARK - 1 };
static inline bool space_mark_begins(const char *text, size_t size) {
    return size >= SPACE_MARK_SIZE && !memcmp(text, SPACE_MARK, SPACE_MARK_SIZE);
}
bool space_mark_occurs(struct span text);
// The same text with spaces for marks: itself where it has none, otherwise written to *room, which is moved on; never
// longer.
struct span space_mark_decode(struct span text, char **room);

#endif
