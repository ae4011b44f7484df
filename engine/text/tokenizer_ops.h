// The interface of tokenizer families and their shared state. Private to engine/text.
#ifndef CONFAB_TEXT_TOKENIZER_OPS_H
#define CONFAB_TEXT_TOKENIZER_OPS_H

#include "engine/text/pair_merger.h"
#include "engine/text/token_trie.h"
#include "engine/text/vocabulary.h"

// Appends the ids of text without special tokens.
typedef void tokenizer_encoder(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                               struct token_list *out);

struct tokenizer_ops {
    const char *model;                   // value of `tokenizer.ggml.model`
    struct vocabulary_defaults defaults; // for missing keys
    bool adds_bos, adds_eos, adds_separator;
    bool puts_space; // in front of a text; default
    // Reads the family's keys to t->family, in the vocabulary's arena; may change adds_bos.
    bool (*open)(struct tokenizer *t, struct status *st);
    void (*close)(struct tokenizer *t); // frees what is not in the arena, even after a failed open; may be NULL
    // The bytes of a normal or unused token: its text, or written to *room, which is advanced. Never longer than the
    // text.
    struct span (*spell)(const struct tokenizer *t, int32_t id, char **room);
    tokenizer_encoder *encode; // size ≤ TOKENIZER_STRETCH
};

// Longer texts are split after this many bytes, so that offsets fit easily in 32 bits.
enum { TOKENIZER_STRETCH = 1 << 28 };

extern const struct tokenizer_ops tokenizer_spm, tokenizer_bpe, tokenizer_gemma, tokenizer_unigram, tokenizer_wordpiece;

struct tokenizer {
    const struct tokenizer_ops *ops;
    struct vocabulary vocabulary;
    struct token_trie user_defined, trusted; // special tokens: in any text; in trusted text only
    struct span *pieces;                     // [count] the bytes each token stands for
    int32_t byte_ids[256];                   // the token of each byte; −1 if none
    bool adds_bos, needs_bos;                // needs: overrides the file
    bool adds_eos, adds_separator;
    bool puts_space;           // add a space at the start and after special tokens
    bool puts_space_once;      // only at the start
    bool doubles_no_space;     // not if the text starts with a space
    bool drops_space;          // decoding removes that space
    bool strips_after_special; // white space after a control token belongs to it
    const uint8_t *strips;     // [count] white space that a token strips: 1 before, 2 after; may be NULL
    const char *pre;           // see tokenizer_pre_name
    void *family;
};

// Appends the token of a byte or, if there is none, the unknown token; nothing if there is neither.
void tokenizer_push_byte(const struct tokenizer *t, uint8_t byte, struct token_list *out);

#endif
