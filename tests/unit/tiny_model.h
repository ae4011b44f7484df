// Small but whole GGUF files with random weights, for everybody's tests. The same options give the same bytes.
#ifndef CONFAB_TESTS_TINY_MODEL_H
#define CONFAB_TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/block.h"

enum tiny_family { TINY_LLAMA, TINY_LLAMA_ROPE_FREQS, TINY_QWEN2, TINY_QWEN3, TINY_FAMILY_COUNT };

// Everything zero is a good choice: a llama of two layers in F32, 64 wide, that runs in milliseconds.
struct tiny_model_options {
    enum tiny_family family;
    enum block_id format;  // of the matrices; norms and biases are F32
    int n_layer;           // 0: 2
    int n_embd, n_ff;      // 0: 64 and 128; 256 and 256 for the K formats, whose blocks need it
    int n_head, n_head_kv; // 0: 4 and 2
    int head_size;         // 0: n_embd / n_head, twice that for qwen3, so that key_length matters
    int n_context;         // 0: 512
    bool tied;             // no output.weight
    uint64_t seed;
    const char *pre; // NULL: a SentencePiece vocabulary; otherwise a byte-level one with this tokenizer.ggml.pre
    const char *chat_template; // NULL: none; TINY_CHATML is one
};

#define TINY_CHATML                                                                                                    \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"                         \
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// In memory; the caller frees.
void *tiny_model_bytes(struct tiny_model_options options, size_t *size);
// To a file; panics when it cannot be written.
void tiny_model_write(const char *path, struct tiny_model_options options);

#endif
