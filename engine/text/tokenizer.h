// Tokenizer: text to ids and back, built from the keys of a GGUF file.
//
// Immutable once open, so that threads share it. Linear or n·log n on any input. Families, behind struct tokenizer_ops:
// "llama" (SentencePiece BPE with byte fallback), "gpt2" (byte-level BPE, with the pre-tokenizers of pretokenize.h),
// "gemma4" (BPE over characters), "t5" (unigram) and "bert" (WordPiece). The last two normalise a text, so that it does
// not come back as it was.
#ifndef CONFAB_TEXT_TOKENIZER_H
#define CONFAB_TEXT_TOKENIZER_H

#include "engine/base/arena.h"
#include "engine/base/utf8.h"
#include "engine/format/gguf.h"
#include "engine/format/token.h"

struct tokenizer;

// A growing list of ids; zero-initialise, free(ids) at the end.
struct token_list {
    int32_t *ids;
    size_t count, capacity;
};
void token_list_push(struct token_list *list, int32_t id);

// Borrows strings from the mapping of g, which must outlive it. Every array length, id and byte token is checked.
struct tokenizer *tokenizer_open(const struct gguf *g, struct status *st);
// See model_file_fill_slots. The tokenizer must not be shared yet.
void tokenizer_fill_slots(struct tokenizer *t, char *(*text)(void *context, const char *name), void *context);
void tokenizer_close(struct tokenizer *t);

// Appends the ids of text[0..size). With parse_special, "<|im_end|>" and its like (control and user-defined tokens)
// become one token; without, only user-defined ones do. No BOS or EOS is added. Any bytes are accepted.
void tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, bool parse_special, struct token_list *out);
// One text made of parts, of which only some are trusted to hold special tokens. No special token reaches across a joint,
// but plain text does: the ids are those of the whole text, not of its parts one by one. no_space_prefix suppresses the
// space that SentencePiece vocabularies put before a text, for a text that continues another.
struct tokenizer_part { const char *text; size_t size; bool parse_special; };
void tokenizer_encode_parts(const struct tokenizer *t, const struct tokenizer_part *parts, size_t count, bool no_space_prefix,
                            struct token_list *out);

// The bytes of a token as they appear in text (SentencePiece U+2581 turned into a space, byte tokens into their byte, byte-level
// alphabet undone). Control tokens give their own text when `special`, otherwise nothing. Borrowed; valid as long as t.
struct span tokenizer_piece(const struct tokenizer *t, int32_t id, bool special);
// The exact bytes of a list: the inverse of tokenizer_encode (drops the leading space that encode put in front). The caller frees.
// (SentencePiece spells the character U+2581 itself as it does a space: it comes back as one.)
char *tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t count, bool special, size_t *size);

int32_t tokenizer_count(const struct tokenizer *t);            // n_vocab
int32_t tokenizer_bos(const struct tokenizer *t);              // −1 when there is none
int32_t tokenizer_eos(const struct tokenizer *t);              // −1 when there is none
bool tokenizer_adds_bos(const struct tokenizer *t);            // as the file says, or its model's default
bool tokenizer_ends_generation(const struct tokenizer *t, int32_t id);
int32_t tokenizer_find(const struct tokenizer *t, const char *text, size_t size); // id of exactly this token text, or −1
int32_t tokenizer_closing(const struct tokenizer *t);          // what the file wants after a text (EOS, a separator); −1: nothing
const char *tokenizer_model_name(const struct tokenizer *t);   // "llama", "gpt2" …
// Our name of the pre-tokenizer; "" where there is none. Where the file names one that we do not know: "default", and what
// it stands in for, in words.
const char *tokenizer_pre_name(const struct tokenizer *t);

#endif
