// Token conventions of the keys `tokenizer.ggml.*`, which importers write and tokenizers read.
#ifndef CONFAB_FORMAT_TOKEN_H
#define CONFAB_FORMAT_TOKEN_H

#include "engine/base/reader.h"

// Values of `tokenizer.ggml.token_type`.
enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_UNUSED, TOKEN_BYTE };

// The byte of a token of the form "<0x41>"; −1 for any other text.
int token_byte(struct span text);

// The space mark, U+2581: a space in the tokens of SentencePiece and similar tokenizers.
#define SPACE_MARK "\u2581"
enum { SPACE_MARK_SIZE = sizeof SPACE_MARK - 1 };
static inline bool space_mark_begins(const char *text, size_t size) {
    return size >= SPACE_MARK_SIZE && !memcmp(text, SPACE_MARK, SPACE_MARK_SIZE);
}
bool space_mark_occurs(struct span text);
// Replaces marks by spaces. Returns `text` itself if it has none; otherwise writes the result, which is not longer, to
// *room and advances it.
struct span space_mark_decode(struct span text, char **room);

#endif
