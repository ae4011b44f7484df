// The two small vocabularies of tiny models.
#ifndef CONFAB_TESTS_TINY_VOCAB_H
#define CONFAB_TESTS_TINY_VOCAB_H

#include "tests/unit/gguf_writer.h"

// Adds the tokenizer's keys; returns the number of tokens.
// SentencePiece: <unk> <s> </s>, 256 byte tokens, ASCII and a few other characters, merged pieces by score.
int tiny_vocab_sentencepiece(struct gguf_writer *w);
// Byte-level: 256 byte tokens, merges, then <|endoftext|> <|im_start|> <|im_end|>.
int tiny_vocab_byte_level(struct gguf_writer *w, const char *pre);

#endif
