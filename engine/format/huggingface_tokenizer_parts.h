// Shared by the files of the Hugging Face tokenizer importer. Private to engine/format.
//
// Messages name the member; callers in huggingface_tokenizer.c add the file.
#ifndef CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_PARTS_H
#define CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_PARTS_H

#include <jansson.h>

#include "engine/format/huggingface_tokenizer.h"
#include "engine/format/token.h"

enum { IMPORT_TOKEN_BYTES = 1 << 10 }; // maximum length of a token

struct token_import_entry {
    struct span text; // borrowed from the files, their JSON or the arena
    float score;
    int32_t type;   // enum token_type; 0: unused id
    uint8_t strips; // white space that belongs to it: 1 before, 2 after
};

enum token_import_flag { IMPORT_UNSET, IMPORT_NO, IMPORT_YES };

// X(enumerator, member with the text, member with the id, key)
#define IMPORT_SPECIALS(X)                                                                                             \
    X(IMPORT_BOS, "bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id")                                          \
    X(IMPORT_EOS, "eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id")                                          \
    X(IMPORT_UNK, "unk_token", "unk_token_id", "tokenizer.ggml.unknown_token_id")                                      \
    X(IMPORT_PAD, "pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id")                                      \
    X(IMPORT_SEP, "sep_token", "sep_token_id", "tokenizer.ggml.seperator_token_id")                                    \
    X(IMPORT_CLS, "cls_token", "cls_token_id", "tokenizer.ggml.cls_token_id")                                          \
    X(IMPORT_MASK, "mask_token", "mask_token_id", "tokenizer.ggml.mask_token_id")                                      \
    X(IMPORT_EOT, "eot_token", "eot_token_id", "tokenizer.ggml.eot_token_id")                                          \
    X(IMPORT_EOM, "eom_token", "eom_token_id", "tokenizer.ggml.eom_token_id")

enum token_import_special {
#define X(special, text, id, key) special,
    IMPORT_SPECIALS(X)
#undef X
        IMPORT_SPECIAL_COUNT
};

// A tokenizer being assembled from the files.
struct token_import {
    struct arena arena;
    const struct huggingface_texts *texts;
    json_t *roots[HUGGINGFACE_FILE_COUNT]; // owned; NULL if absent or not JSON
    const char *model, *pre;               // values of the keys; pre may be NULL
    struct token_import_entry *tokens;     // [count] by id, owned
    int64_t count, capacity;
    int64_t rows;        // vocabulary size of the model; larger ids are dropped
    int64_t id_limit;    // ids are below this: a few more than there are tokens
    struct span *merges; // [n_merges] "left right"
    uint64_t n_merges;
    bool has_scores;
    enum token_import_flag add_bos, add_eos, space_prefix, removes_spaces, ignore_merges, lowercase, strips_accents;
    const char *prefix_scheme; // tokenizer.confab.space_prefix; NULL: always add a space, even before a space
    int32_t specials[IMPORT_SPECIAL_COUNT]; // −1: none
    int32_t first, last;                    // added by the post-processor before and after a text; −1: none
    struct span charsmap;                   // of a Precompiled normalizer
};

enum { IMPORT_SPAN_SHOWN = 64 }; // bytes of a text shown in messages
static inline int token_import_shown(struct span s) {
    return s.size < IMPORT_SPAN_SHOWN ? (int)s.size : IMPORT_SPAN_SHOWN;
}

// ---- JSON (huggingface_tokenizer_json.c) ----

// The member as a span; data is NULL if it is not a string.
struct span token_import_string(const json_t *object, const char *member);
bool token_import_is(const json_t *object, const char *member, const char *text);
// The member, or `missing` if it is not a bool.
bool token_import_bool(const json_t *object, const char *member, bool missing);
// The text of a token: a string, or the "content" of an object; otherwise data is NULL.
struct span token_import_text(const json_t *token);

// ---- tokens (huggingface_tokenizer_tokens.c) ----

// Raises id_limit for `expected` more tokens.
void token_import_expect(struct token_import *t, size_t expected);
// Adds a token, or updates score and type of one with the same text. Another text with the same id is an error.
bool token_import_put(struct token_import *t, int64_t id, struct token_import_entry token, struct status *st);
int32_t token_import_find(const struct token_import *t, struct span text); // −1 if absent
// Writes added tokens with spaces, since they are matched in a text before its spaces become marks.
void token_import_write_spaces(struct token_import *t);
// "added_tokens" of tokenizer.json, the map of added_tokens.json, "added_tokens_decoder" of tokenizer_config.json. The
// latter two only fill unused ids, unless `replaces` (with a tokenizer.model).
bool token_import_added_list(struct token_import *t, const json_t *list, struct status *st);
bool token_import_added_map(struct token_import *t, const json_t *map, bool replaces, struct status *st);
bool token_import_added_decoder(struct token_import *t, const json_t *decoder, bool replaces, struct status *st);

// ---- tokenizer.json (huggingface_tokenizer_json.c) ----

bool token_import_json(struct token_import *t, const json_t *root, struct status *st);
// vocab.json and merges.txt.
bool token_import_vocabulary_json(struct token_import *t, const json_t *vocabulary, struct status *st);
bool token_import_merges_text(struct token_import *t, struct span text, struct status *st);

// How a text is normalised and split before the model runs (huggingface_tokenizer_scheme.c).
struct token_import_scheme {
    bool byte_level;       // bytes are mapped to the byte-level alphabet
    bool marks_spaces;     // spaces become U+2581
    bool cuts_words;       // no token spans several words
    bool bert;             // cleans and splits like BERT
    const char *splits[8]; // regular expressions in canonical form, applied in order
    size_t n_splits;
};
bool token_import_scheme_read(struct token_import *t, const json_t *root, struct token_import_scheme *scheme,
                              struct status *st);

// Reads a JSON array of strings or pairs to t->merges (huggingface_tokenizer_merges.c).
bool token_import_merges(struct token_import *t, const json_t *merges, struct status *st);
// The left part of "left right", up to the first space after the first byte; data is NULL if there is none.
struct span token_import_left(struct span merge);
// For BPE with byte fallback (huggingface_tokenizer_scores.c): converts merges to scores ("llama") if that is
// equivalent, otherwise keeps them.
bool token_import_byte_fallback(struct token_import *t, const json_t *vocabulary,
                                const struct token_import_scheme *scheme, struct status *st);

// The regular expression of GPT-2, the default of ByteLevel.
#define TOKEN_IMPORT_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

// The canonical form of a regular expression, in t's arena, and the pre-tokenizer with these splits; NULL if there is
// none (huggingface_tokenizer_pre.c).
const char *token_import_regex(struct token_import *t, struct span regex);
const char *token_import_pre_name(const struct token_import_scheme *scheme);

// ---- tokenizer.model (huggingface_tokenizer_sentencepiece.c) ----

bool token_import_sentencepiece(struct token_import *t, struct span file, struct status *st);

// ---- settings in the other files (huggingface_tokenizer_settings.c) ----

bool token_import_settings(struct token_import *t, struct status *st);
// The chat template; data is NULL if there is none.
struct span token_import_chat_template(const struct token_import *t);

#endif
