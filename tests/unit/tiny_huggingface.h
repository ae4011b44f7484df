// Writes a model that is open as a GGUF out as the Hugging Face folder that it could have been exported from: other
// names, queries and keys in their own order, norms less 1, experts one by one, config.json, a tokenizer.
//
// The tables of names here are written from the layouts of the published models, not derived from the importer's.
#ifndef CONFAB_TESTS_TINY_HUGGINGFACE_H
#define CONFAB_TESTS_TINY_HUGGINGFACE_H

#include "engine/format/gguf.h"

enum tiny_quantisation {
    TINY_AS_IT_IS,
    TINY_FP8_TENSOR, // E4M3, one scale a matrix
    TINY_FP8_ROWS,   // E5M2, one scale a row
    TINY_FP8_BLOCKS, // E4M3, weight_scale_inv of 16 × 32
    TINY_NF4,        // bitsandbytes
    TINY_NF4_DOUBLE, // with absmax quantised too
};

struct tiny_huggingface_options {
    const char *model_type;
    int shards;                          // 0: one file, no index
    enum tiny_quantisation quantisation; // of the matrices in layers
};

// Into a folder that exists. Norms of families that store them less 1 must survive x − 1 + 1.
void tiny_huggingface_write(const char *folder, const struct gguf *g, struct tiny_huggingface_options options);
// A byte-level tokenizer.json of n ≥ 256 tokens; what they say matters to nobody.
void tiny_huggingface_tokenizer(const char *folder, uint64_t n);
// Removes the folder and what is in it.
void tiny_huggingface_remove(const char *folder);

#endif
