// Vocabulary: the tokens of a file with their types, checked.
//
// Owned by a tokenizer, immutable once open. Texts are borrowed from the mapping of the file.
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
    uint64_t bytes;           // of all texts together
    struct token_index index;
    int32_t bos, eos, unknown, separator; // −1: none
};

#define VOCABULARY_KEY(name) "tokenizer.ggml." name

// `defaults`: ids if the file has none.
struct vocabulary_defaults {
    int32_t bos, eos, unknown, separator;
};
// *v must be zeroed. Close it even after a failure.
bool vocabulary_open(struct vocabulary *v, const struct gguf *g, struct vocabulary_defaults defaults,
                     struct status *st);
void vocabulary_close(struct vocabulary *v);
int32_t vocabulary_find(const struct vocabulary *v, struct span text); // −1 if absent

// The array of numbers with one element per token under this key. NULL if absent; NULL and a status if it is invalid.
const struct gguf_pair *vocabulary_numbers(const struct vocabulary *v, const char *key, struct status *st);

// The scores of the tokens, in the arena; NULL and a status if missing or not numbers.
const float *vocabulary_scores(struct vocabulary *v, struct status *st);

// Control, unknown and user-defined tokens: matched in a text, never produced by merging.
static inline bool vocabulary_is_special(const struct vocabulary *v, int32_t id) {
    return v->types[id] == TOKEN_CONTROL || v->types[id] == TOKEN_UNKNOWN || v->types[id] == TOKEN_USER_DEFINED;
}

#endif
