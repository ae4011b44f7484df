// Tokenizers of Hugging Face folders, brought into the keys that GGUF files have for them.
//
// Reads tokenizer.json, or tokenizer.model (SentencePiece), or vocab.json with merges.txt, and what the other files of
// the folder add: special tokens, whether a text begins with BOS, the chat template. What comes out are pairs
// `tokenizer.ggml.*` and `tokenizer.chat_template`, from which tokenizer_open works as from those of a GGUF file. A
// construction that these keys cannot say is refused: the message names the file and the member.
//
// Where those keys cannot say what the folder does, some of our own do:
//   tokenizer.confab.ignore_merges (bool): a piece that is a token is taken before merging, whatever `pre` implies
//   tokenizer.confab.space_prefix (string): the space in front is put only where a text does not begin with one, before
//   each text between special tokens ("always") or only before the first ("first")
//   tokenizer.confab.strips (bytes, one a token): 1: white space before the token belongs to it, 2: that after it, 3:
//   both
#ifndef CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_H
#define CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_H

#include "engine/format/gguf.h"

// X(enumerator, name in the folder, the most bytes of it that are read)
#define HUGGINGFACE_TOKENIZER_FILES(X)                                                                                 \
    X(HUGGINGFACE_TOKENIZER, "tokenizer.json", 256 << 20)                                                              \
    X(HUGGINGFACE_SENTENCEPIECE, "tokenizer.model", 256 << 20)                                                         \
    X(HUGGINGFACE_VOCABULARY, "vocab.json", 64 << 20)                                                                  \
    X(HUGGINGFACE_MERGES, "merges.txt", 64 << 20)                                                                      \
    X(HUGGINGFACE_TOKENIZER_CONFIG, "tokenizer_config.json", 64 << 20)                                                 \
    X(HUGGINGFACE_SPECIAL_TOKENS, "special_tokens_map.json", 4 << 20)                                                  \
    X(HUGGINGFACE_ADDED_TOKENS, "added_tokens.json", 16 << 20)                                                         \
    X(HUGGINGFACE_CONFIG, "config.json", 16 << 20)                                                                     \
    X(HUGGINGFACE_GENERATION_CONFIG, "generation_config.json", 1 << 20)                                                \
    X(HUGGINGFACE_CHAT_TEMPLATE, "chat_template.jinja", 4 << 20)                                                       \
    X(HUGGINGFACE_CHAT_TEMPLATE_JSON, "chat_template.json", 4 << 20)

enum huggingface_file {
#define X(file, name, limit) file,
    HUGGINGFACE_TOKENIZER_FILES(X)
#undef X
        HUGGINGFACE_FILE_COUNT
};

// The same folder in memory. `folder` is how messages name it; data of an absent file is NULL.
struct huggingface_texts {
    const char *folder;
    struct span files[HUGGINGFACE_FILE_COUNT];
};

// Adds the pairs to a struct gguf between gguf_begin and gguf_finish. After a failure it has an unknown part of them.
bool huggingface_tokenizer_add(struct gguf *g, const char *folder, struct status *st);
bool huggingface_tokenizer_add_texts(struct gguf *g, const struct huggingface_texts *texts, struct status *st);

#endif
