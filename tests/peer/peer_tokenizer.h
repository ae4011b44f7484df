// The tokenizers of llama.cpp, which many model files are made for: what to compare ours with.
#ifndef CONFAB_TESTS_PEER_TOKENIZER_H
#define CONFAB_TESTS_PEER_TOKENIZER_H

// Nothing of ours is included: names of the peer's headers are those of engine/format/gguf.h.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_tokenizer;

// Skips the running test where the peer was not there when this was built (see CONFAB_PEER_DIR in the Makefile).
void peer_needed(void);
// `pre`, unless NULL, stands in for the file's own pre-tokenizer. NULL when the peer refuses the file.
struct peer_tokenizer *peer_open(const char *path, const char *pre);
void peer_close(struct peer_tokenizer *p);
// The ids of a text, which the caller frees; `whole` adds what begins and ends a text.
int32_t *peer_encode(const struct peer_tokenizer *p, const char *text, size_t size, bool parse_special, bool whole,
                     size_t *count);

#endif
