// What the parts of the Hugging Face tokenizer importer share. Private to engine/format.
//
// Functions name the member in their messages; the callers in huggingface_tokenizer.c put the file in front.
#ifndef CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_PARTS_H
#define CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_PARTS_H

#include <jansson.h>

#include "engine/format/huggingface_tokenizer.h"

#define SPACE_MARK "\u2581"

// As `tokenizer.ggml.token_type` counts them; 0: no token has this id.
enum token_import_type {
    IMPORT_NORMAL = 1,
    IMPORT_UNKNOWN,
    IMPORT_CONTROL,
    IMPORT_USER_DEFINED,
    IMPORT_UNUSED,
    IMPORT_BYTE
};

enum { IMPORT_TOKEN_BYTES = 1 << 10 }; // the longest text of a token

struct token_import_entry {
    struct span text; // borrowed from the texts, their JSON or the arena
    float score;
    int32_t type;
    uint8_t strips; // takes white space along: 1 before it, 2 after it
};

enum token_import_answer { IMPORT_UNSAID, IMPORT_NO, IMPORT_YES };

// X(enumerator, member that gives the text, member that gives the id, key)
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

// A tokenizer as it is gathered from the files.
struct token_import {
    struct arena arena;
    const struct huggingface_texts *texts;
    json_t *roots[HUGGINGFACE_FILE_COUNT]; // owned; NULL: absent or not JSON
    const char *model, *pre;               // as the keys say them; pre NULL: none
    struct token_import_entry *tokens;     // [count] by id, owned
    int64_t count, capacity;
    int64_t rows;        // of the model, where it says; ids beyond them are left out
    int64_t id_limit;    // ids reach at most this far: a few more than there are tokens
    struct span *merges; // [n_merges] "left right"
    uint64_t n_merges;
    bool has_scores;
    enum token_import_answer add_bos, add_eos, space_prefix, removes_spaces, ignore_merges, lowercase, strips_accents;
    const char *prefix_scheme; // of the space in front: "first", "always"; NULL: always, also before a space
    int32_t specials[IMPORT_SPECIAL_COUNT]; // −1: none
    int32_t first, last;                    // which the post-processor puts before and after a text; −1: none
    struct span charsmap;                   // precompiled, of a normalizer
};

enum { IMPORT_SPAN_SHOWN = 64 }; // bytes of a text that messages show
static inline int token_import_shown(struct span s) {
    return s.size < IMPORT_SPAN_SHOWN ? (int)s.size : IMPORT_SPAN_SHOWN;
}

// ---- JSON (huggingface_tokenizer_json.c) ----

// The member as a span; data NULL where it is absent or no string.
struct span token_import_string(const json_t *object, const char *member);
bool token_import_is(const json_t *object, const char *member, const char *text);
// The member if it is a bool, otherwise `missing`.
bool token_import_bool(const json_t *object, const char *member, bool missing);
// The text of a token: a string, or an object that has it as "content". data NULL: neither.
struct span token_import_text(const json_t *token);

// ---- tokens (huggingface_tokenizer_tokens.c) ----

// Ids will be given to about `expected` more tokens.
void token_import_expect(struct token_import *t, size_t expected);
// Gives an id to a token; repeating one changes its score and type, another text under the same id is refused.
bool token_import_put(struct token_import *t, int64_t id, struct token_import_entry token, struct status *st);
int32_t token_import_find(const struct token_import *t, struct span text); // −1 when absent
int token_import_byte(struct span text);                                   // that "<0x41>" stands for; −1: none
// Added tokens are found in a text before its spaces become marks: so it is with spaces that they are written.
void token_import_write_spaces(struct token_import *t);
// "added_tokens" of tokenizer.json, the map of added_tokens.json, "added_tokens_decoder" of tokenizer_config.json. The
// latter two tell of ids that are still free; with `replaces`, as beside a tokenizer.model, of others as well.
bool token_import_added_list(struct token_import *t, const json_t *list, struct status *st);
bool token_import_added_map(struct token_import *t, const json_t *map, bool replaces, struct status *st);
bool token_import_added_decoder(struct token_import *t, const json_t *decoder, bool replaces, struct status *st);

// ---- tokenizer.json (huggingface_tokenizer_json.c) ----

bool token_import_json(struct token_import *t, const json_t *root, struct status *st);
// vocab.json and the lines of merges.txt.
bool token_import_vocabulary_json(struct token_import *t, const json_t *vocabulary, struct status *st);
bool token_import_merges_text(struct token_import *t, struct span text, struct status *st);

// How a text is prepared and cut before the model sees it (huggingface_tokenizer_scheme.c).
struct token_import_scheme {
    bool byte_level;       // bytes are spelt in the byte-level alphabet
    bool marks_spaces;     // a space becomes U+2581
    bool cuts_words;       // no token reaches from one word into the next
    bool bert;             // cuts and cleans as BERT does
    const char *splits[8]; // regular expressions, in canonical spelling, one after the other
    size_t n_splits;
};
bool token_import_scheme_read(struct token_import *t, const json_t *root, struct token_import_scheme *scheme,
                              struct status *st);

// The merges of a JSON array, of strings or of pairs, to t->merges (huggingface_tokenizer_merges.c).
bool token_import_merges(struct token_import *t, const json_t *merges, struct status *st);
// The left part of "left right": cut at the first space after the first byte. data NULL: there is none.
struct span token_import_left(struct span merge);
// For BPE that falls back to bytes (huggingface_tokenizer_scores.c): says the merges in scores ("llama") where that
// comes to the same, otherwise keeps them.
bool token_import_byte_fallback(struct token_import *t, const json_t *vocabulary,
                                const struct token_import_scheme *scheme, struct status *st);

// The canonical spelling of a regular expression, in t's arena; and the name of the pre-tokenizer that splits by
// these, NULL when there is none (huggingface_tokenizer_pre.c).
const char *token_import_regex(struct token_import *t, struct span regex);
const char *token_import_pre_name(const struct token_import_scheme *scheme);

// ---- tokenizer.model (huggingface_tokenizer_sentencepiece.c) ----

bool token_import_sentencepiece(struct token_import *t, struct span file, struct status *st);

// ---- what the other files say (huggingface_tokenizer_settings.c) ----

bool token_import_settings(struct token_import *t, struct status *st);
// The chat template; data NULL when there is none.
struct span token_import_chat_template(const struct token_import *t);

#endif
