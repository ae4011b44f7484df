// What a tokenizer family fills in, and what all of them share. Private to engine/text.
#ifndef CONFAB_TEXT_TOKENIZER_OPS_H
#define CONFAB_TEXT_TOKENIZER_OPS_H

#include "engine/text/pair_merger.h"
#include "engine/text/token_trie.h"
#include "engine/text/vocabulary.h"

// Appends the ids of text without special tokens.
typedef void tokenizer_encoder(const struct tokenizer *t, struct pair_merger *m, const char *text, size_t size,
                               struct token_list *out);

struct tokenizer_ops {
    const char *model;                   // as `tokenizer.ggml.model` says
    struct vocabulary_defaults defaults; // where the file does not say
    bool adds_bos, adds_eos, adds_separator;
    bool puts_space; // in front of a text; where the file does not say
    // Reads the family's own keys into t->family, in the vocabulary's arena; may change adds_bos.
    bool (*open)(struct tokenizer *t, struct status *st);
    void (*close)(struct tokenizer *t); // of what is not in the arena; also after a failed open; may be NULL
    // The bytes that a normal or unused token stands for: its text itself, or written to *room, which is moved on. Never
    // longer than the text.
    struct span (*spell)(const struct tokenizer *t, int32_t id, char **room);
    tokenizer_encoder *encode; // size ≤ TOKENIZER_STRETCH
};

// Longer texts are cut after this many bytes, so that offsets fit in 32 bits with room to spare.
enum { TOKENIZER_STRETCH = 1 << 28 };

extern const struct tokenizer_ops tokenizer_spm, tokenizer_bpe, tokenizer_gemma, tokenizer_unigram, tokenizer_wordpiece;

struct tokenizer {
    const struct tokenizer_ops *ops;
    struct vocabulary vocabulary;
    struct token_trie user_defined, trusted; // special tokens: of any text, and of trusted text only
    struct span *pieces;                     // [count] the bytes each token stands for
    int32_t byte_ids[256];                   // the token of each single byte; −1 where it has none
    bool adds_bos, needs_bos;                // needs: whatever the file says
    bool adds_eos, adds_separator;
    bool puts_space;           // a space goes before a text that begins, or follows a special token
    bool puts_space_once;      // not after special tokens
    bool doubles_no_space;     // not where the text begins with one
    bool drops_space;          // decoding takes that space away
    bool strips_after_special; // white space after a control token belongs to it
    const uint8_t *strips;     // [count] the same token by token: 1 before it, 2 after it; NULL: no file says so
    const char *pre; // what tokenizer_pre_name says
    void *family;
};

// The token of a byte that nothing else covers, else the unknown token; nothing where the vocabulary lacks both.
void tokenizer_push_byte(const struct tokenizer *t, uint8_t byte, struct token_list *out);

#endif
