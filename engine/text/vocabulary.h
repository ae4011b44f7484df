// Vocabulary: the tokens of a file, checked, with what their texts and types tell.
//
// Owned by a tokenizer, constant once open. Texts borrow from the mapping of the file.
#ifndef CONFAB_TEXT_VOCABULARY_H
#define CONFAB_TEXT_VOCABULARY_H

#include "engine/text/token_index.h"
#include "engine/text/tokenizer.h"

struct vocabulary {
    struct arena arena;
    const struct gguf *file; // borrowed; read only while opening
    int32_t count;
    const struct span *texts; // [count] as in the file
    uint8_t *types;           // [count] enum token_type
    bool *ends;               // [count] ends generation
    size_t longest;           // bytes of the longest text
    uint64_t bytes;           // of all texts
    struct token_index index;
    int32_t bos, eos, unknown, separator; // −1: none
};

#define VOCABULARY_KEY(name) "tokenizer.ggml." name

// `defaults` are the ids where the file names none.
struct vocabulary_defaults {
    int32_t bos, eos, unknown, separator;
};
// *v must be zeroed. To be closed also after a failure.
bool vocabulary_open(struct vocabulary *v, const struct gguf *g, struct vocabulary_defaults defaults,
                     struct status *st);
void vocabulary_close(struct vocabulary *v);
int32_t vocabulary_find(const struct vocabulary *v, struct span text); // −1 when absent

// The array of numbers of this key, with one element a token. NULL when it is absent, or, with a status, when it is
// no such array.
const struct gguf_pair *vocabulary_numbers(const struct vocabulary *v, const char *key, struct status *st);

// The tokens' scores, in the arena; NULL and a status where there are none, or one is not a number.
const float *vocabulary_scores(struct vocabulary *v, struct status *st);

// Control, unknown and user-defined tokens: found in a text as they are, never made by merging.
static inline bool vocabulary_is_special(const struct vocabulary *v, int32_t id) {
    return v->types[id] == TOKEN_CONTROL || v->types[id] == TOKEN_UNKNOWN || v->types[id] == TOKEN_USER_DEFINED;
}

// The byte that "<0x41>" stands for; −1 when the text is not of this very form.
int vocabulary_byte(struct span text);

#endif
