// Converts tokenizers of Hugging Face folders to the keys of GGUF files.
//
// Reads tokenizer.json, or tokenizer.model (SentencePiece), or vocab.json with merges.txt, and from the other files of
// the folder special tokens, BOS and EOS, and the chat template. The result are the keys `tokenizer.ggml.*` and
// `tokenizer.chat_template`, which tokenizer_open reads. A tokenizer that these keys cannot describe is rejected with a
// message that names the file and the member.
//
// Our own keys describe what the standard ones cannot:
//   tokenizer.confab.ignore_merges (bool): a piece that is a token is not merged, whatever `pre` implies
//   tokenizer.confab.space_prefix (string): add a space only if the text does not start with one, to each text between
//   special tokens ("always") or only to the first ("first")
//   tokenizer.confab.strips (a byte per token): white space that belongs to the token: 1: before it, 2: after it, 3:
//   both
#ifndef CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_H
#define CONFAB_FORMAT_HUGGINGFACE_TOKENIZER_H

#include "engine/format/gguf.h"

// X(enumerator, file name, maximum size in bytes)
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

// A folder in memory. `folder` is its name in messages; the data of an absent file is NULL.
struct huggingface_texts {
    const char *folder;
    struct span files[HUGGINGFACE_FILE_COUNT];
};

// Add the pairs to a struct gguf between gguf_begin and gguf_finish. After a failure some may have been added.
bool huggingface_tokenizer_add(struct gguf *g, const char *folder, struct status *st);
bool huggingface_tokenizer_add_texts(struct gguf *g, const struct huggingface_texts *texts, struct status *st);

#endif
