// Tokenizer: text to ids and back, built from the keys of a GGUF file.
//
// Immutable once open, hence thread-safe. Linear or n·log n on any input. Families, behind struct tokenizer_ops:
// "llama" (SentencePiece BPE with byte fallback), "gpt2" (byte-level BPE with the pre-tokenizers of pretokenize.h),
// "gemma4" (BPE on characters), "t5" (unigram) and "bert" (WordPiece). The last two normalise text, so decoding may not
// restore it.
#ifndef CONFAB_TEXT_TOKENIZER_H
#define CONFAB_TEXT_TOKENIZER_H

#include "engine/base/arena.h"
#include "engine/base/utf8.h"
#include "engine/format/gguf.h"
#include "engine/format/token.h"

struct tokenizer;

// A growing list of ids. Zero-initialise; free(ids) when done.
struct token_list {
    int32_t *ids;
    size_t count, capacity;
};
void token_list_push(struct token_list *list, int32_t id);

// Borrows strings from the mapping of g. Checks every array length, id and byte token.
struct tokenizer *tokenizer_open(const struct gguf *g, struct status *st);
// See model_file_fill_slots. The tokenizer must not be shared yet.
void tokenizer_fill_slots(struct tokenizer *t, char *(*text)(void *context, const char *name), void *context);
void tokenizer_close(struct tokenizer *t);

// Appends the ids of text[0..size). With parse_special, control tokens like "<|im_end|>" are recognised, otherwise only
// user-defined ones. Does not add BOS or EOS. Accepts any bytes.
void tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool parse_special,
                      struct token_list *out);
// A text in parts, some of which may contain special tokens. Special tokens do not cross parts but plain text does: the
// ids are those of the whole text, not of its parts one by one. no_space_prefix suppresses the space that SentencePiece
// puts in front of a text, for continuations.
struct tokenizer_part {
    const char *text;
    size_t size;
    bool parse_special;
};
void tokenizer_encode_parts(const struct tokenizer *t, const struct tokenizer_part *parts, size_t count,
                            bool no_space_prefix, struct token_list *out);

// The bytes of a token in text (U+2581 becomes a space, byte tokens their byte, the byte-level alphabet is decoded).
// Control tokens give their text if `special`, otherwise nothing. Borrowed from t.
struct span tokenizer_piece(const struct tokenizer *t, int32_t id, bool special);
// The exact bytes of a list of ids, without the leading space that encode added; the caller frees. In SentencePiece
// vocabularies the character U+2581 comes back as a space.
char *tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool special, size_t *size);

int32_t tokenizer_count(const struct tokenizer *t); // n_vocab
int32_t tokenizer_bos(const struct tokenizer *t);   // −1 if none
int32_t tokenizer_eos(const struct tokenizer *t);   // −1 if none
bool tokenizer_adds_bos(const struct tokenizer *t); // from the file, or the default of its model
bool tokenizer_ends_generation(const struct tokenizer *t, int32_t id);
int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t size); // the id of this token, or −1
int32_t tokenizer_closing(const struct tokenizer *t); // token to add after a text (EOS or separator); −1 if none
const char *tokenizer_model_name(const struct tokenizer *t); // "llama", "gpt2" …
// The name of the pre-tokenizer; "" if none. If the file names an unknown one: "default" and the unknown name.
const char *tokenizer_pre_name(const struct tokenizer *t);

#endif
