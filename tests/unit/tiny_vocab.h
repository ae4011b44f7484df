// Small vocabularies, a family each.
#ifndef CONFAB_TESTS_TINY_VOCAB_H
#define CONFAB_TESTS_TINY_VOCAB_H

#include "tests/unit/gguf_writer.h"

// Adds the tokenizer's keys; returns the number of tokens.
// SentencePiece: <unk> <s> </s>, 256 byte tokens, ASCII and a few other characters, merged pieces by score.
int tiny_vocab_sentencepiece(struct gguf_writer *w);
// Byte-level: 256 byte tokens, merges, then <|endoftext|> <|im_start|> <|im_end|>.
int tiny_vocab_byte_level(struct gguf_writer *w, const char *pre);
// Gemma 4's: <pad> <eos> <bos> <unk> and turns, 256 byte tokens, merges with U+2581 for spaces, characters.
int tiny_vocab_gemma(struct gguf_writer *w);
// Unigram: <pad> </s> <unk>, words and pieces with scores, a characters map.
int tiny_vocab_unigram(struct gguf_writer *w);
// WordPiece: [PAD] [UNK] [CLS] [SEP] [MASK], words with U+2581 in front, pieces.
int tiny_vocab_wordpiece(struct gguf_writer *w);

// All of them, as files without weights.
struct tiny_vocab_kind {
    const char *name;
    const char *pre; // of byte-level ones
    int (*write)(struct gguf_writer *w);
    bool comes_back; // decoding gives the very text, but for U+2581 where that stands for a space
};
enum { TINY_VOCAB_KINDS = 8 };
extern const struct tiny_vocab_kind tiny_vocab_kinds[TINY_VOCAB_KINDS];
// The caller frees.
uint8_t *tiny_vocab_file(const struct tiny_vocab_kind *kind, size_t *size);

#endif
