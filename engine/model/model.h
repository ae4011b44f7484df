// Model: a family's spec, filled from a file's keys, and the file's weights bound to it by name and checked for shape.
//
// An architecture is data: struct model_spec says everything a backend needs; families (one file each) fill it and
// contain no loops over weights.
#ifndef CONFAB_MODEL_MODEL_H
#define CONFAB_MODEL_MODEL_H

#include "engine/base/arena.h"
#include "engine/format/gguf.h"

enum rope_kind {
    ROPE_NORM, // rotates pairs (2i, 2i+1)
    ROPE_NEOX, // rotates pairs (i, i + n_rot/2)
};

struct model_spec {
    const char *family;       // "llama", "qwen2", "qwen3"
    int n_layer, n_embd, n_vocab, n_context;
    int n_head, n_head_kv;    // n_head is a multiple of n_head_kv
    int head_size;            // of a query, key and value head
    int n_ff;
    float norm_epsilon;       // RMS norm
    enum rope_kind rope;
    int n_rot;                // rotated dimensions of a head, even, ≤ head_size
    float rope_base;
    float rope_scale;         // positions are divided by this (linear scaling); 1 otherwise
    float attention_scale;    // of q·k; 1/√head_size unless the file says otherwise
    bool qk_norm;             // RMS norm of every q and k head before RoPE (qwen3)
};

// A matrix of [rows, columns]: rows outputs, columns inputs, row after row in the file's blocks. A vector has rows = 1.
struct weight {
    const struct block_format *format; // NULL: absent
    const void *data;                  // borrowed from the mapping
    int64_t rows, columns;
    size_t row_bytes;
};

struct model_layer {
    struct weight attn_norm, attn_q, attn_k, attn_v, attn_output; // norm and bias vectors are F32
    struct weight attn_q_bias, attn_k_bias, attn_v_bias;          // absent in most families
    struct weight attn_q_norm, attn_k_norm;                       // [head_size], qk_norm only
    struct weight ffn_norm, ffn_gate, ffn_up, ffn_down;
};

struct model {
    struct model_spec spec;
    struct arena arena;
    struct weight token_embd, output_norm, output; // output == token_embd when tied
    bool tied;
    struct weight rope_freqs; // [n_rot/2] divisors of the angles, or absent
    struct model_layer *layers;
    uint64_t n_parameters, weight_bytes;
};

struct model_family {
    const char *architecture; // value of general.architecture
    enum rope_kind rope;
    bool qkv_bias, qk_norm;   // tensors that must be there
    // Reads what is particular to the family after the common keys were read; NULL when nothing is.
    bool (*fill)(struct model_spec *spec, const struct gguf *g, struct status *st);
};

extern const struct model_family family_llama, family_qwen2, family_qwen3; // one file each
extern const struct model_family *const model_families[];                  // NULL-terminated; model_families.c

// g must outlive m. n_vocab is the tokenizer's count, or 0 to take the embedding's rows.
bool model_open(struct model *m, const struct gguf *g, int32_t n_vocab, struct status *st);
void model_close(struct model *m);

#endif
