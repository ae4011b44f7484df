// Model: the hyperparameters of a model and its weights, bound by name and checked for shape.
//
// An architecture is data: struct model_spec has everything a backend needs, filled from the keys of the file and the
// table of families (model_family.h). Fused tensors (qkv, gate and up) are bound as slices, so backends see one form
// only.
#ifndef CONFAB_MODEL_MODEL_H
#define CONFAB_MODEL_MODEL_H

#include "engine/base/arena.h"
#include "engine/format/gguf.h"

enum norm_kind {
    NORM_RMS,   // x / √(mean of x² + ε) × weight
    NORM_LAYER, // (x − mean) / √(variance + ε) × weight + bias, if there is a bias
};

enum rope_kind {
    ROPE_NORM, // rotates pairs (2i, 2i+1)
    ROPE_NEOX, // rotates pairs (i, i + n_rot/2)
};

enum rope_scaling {
    ROPE_SCALING_LINEAR, // angles are divided by the factor, which may be 1
    ROPE_SCALING_YARN,   // only low frequencies are divided
    ROPE_SCALING_LONG,   // linear, and divided by one of two sets of divisors
};

// The rotation of a layer's queries and keys.
enum rope_table { ROPE_TABLE_FULL, ROPE_TABLE_SLIDING, ROPE_TABLES, ROPE_TABLE_NONE = -1 };

struct rope_spec {
    enum rope_kind kind;
    int n_rot;               // rotated dimensions per head, even, ≤ head_size
    float base[ROPE_TABLES]; // equal unless the family has two
    enum rope_scaling scaling;
    bool scales_sliding;     // sliding layers are scaled too
    float factor;
    int original_context;    // YaRN, long
    float magnitude;         // factor of cosines and sines in scaled tables
    float beta_fast, beta_slow;
};

// Norms of queries and keys before RoPE, in layers with weights for them.
enum head_norm {
    HEAD_NORM_NONE,
    HEAD_NORM_SHARED, // per head, with the same [head_size] weights (qwen3, gemma3)
    HEAD_NORM_OWN,    // per head, each with its own weights: [heads × head_size] (stablelm, command-r)
    HEAD_NORM_WHOLE,  // over all heads of a row, [heads × head_size] weights (olmo2, olmoe)
};

enum activation {
    ACTIVATION_SILU,        // silu(gate) · up
    ACTIVATION_GELU,        // tanh form: gelu(gate) · up, or gelu(up) without a gate
    ACTIVATION_SILU_CLAMPED // gpt-oss: g = min(gate, 7), u = clamp(up, ±7): g·σ(1.702 g)·(u + 1)
};

enum expert_gating { EXPERT_GATING_SOFTMAX = 1, EXPERT_GATING_SIGMOID, EXPERT_GATING_SOFTMAX_CHOSEN }; // as in files

struct expert_spec {
    int count, used; // 0: none
    int n_ff;        // per expert
    int n_ff_shared; // of the shared expert; 0: none
    enum expert_gating gating;
    bool normalise;  // weights of the chosen experts are divided by their sum (at least 6.1e-5)
    float scale;     // then multiplied by this
};

struct layer_spec {
    int n_head, n_head_kv; // n_head is a multiple of n_head_kv
    int n_ff;              // of the dense ffn; 0 with experts
    int window;            // a key is masked if query position − key position ≥ window; 0: none
    enum rope_table rope;
    bool experts;
};

struct model_spec {
    const char *family; // value of general.architecture
    int n_layer, n_embd, n_vocab, n_context;
    int head_size;      // of a query, key and value head
    const struct layer_spec *layers; // [n_layer], in the model's arena

    enum norm_kind norm;
    float norm_epsilon;
    enum head_norm head_norm; // of the kind `norm`, with norm_epsilon
    bool parallel; // attention and ffn both read the layer's input and are added to it; without ffn_norm they share
                   // attn_norm
    struct rope_spec rope;
    float attention_scale;   // of q·k
    float attention_softcap; // s → cap·tanh(s / cap), after scaling, before masking; 0: none
    // Queries at position p are scaled by 1 + position_scale · ln(1 + ⌊p / position_scale_length⌋) (mistral3)
    float position_scale;    // 0: none
    int position_scale_length;
    enum activation activation;
    struct expert_spec experts;
    float embedding_scale; // 1: none
    float residual_scale;  // of the outputs of attention and ffn; 1: none
    float logit_scale;     // 1: none
    float logit_softcap;   // 0: none
};

// A matrix [rows (outputs), columns (inputs)], row-major, in blocks of the file's format. A vector has rows = 1.
struct weight {
    const struct block_format *format; // NULL: absent
    const void *data;                  // borrowed from the mapping
    int64_t rows, columns;
    size_t row_bytes;
};

// Experts of a layer. Files stack them or store each on its own; here each is a weight.
struct expert_weights {
    struct weight router, router_bias;    // [count, n_embd], [count]
    struct weight choice_bias;            // [count], added only to choose experts
    const struct weight *gate, *up, *down; // [count] matrices each
    struct weight gate_bias, up_bias, down_bias; // [count, n_ff], [count, n_ff], [count, n_embd] F32, or absent
    struct weight shared_gate, shared_up, shared_down;
    struct weight shared_router; // [1, n_embd]: its sigmoid weighs the shared expert; or absent
};

struct model_layer { // norms and biases are F32; everything except the attention matrices may be absent
    struct weight attn_norm, attn_norm_bias;
    struct weight attn_q, attn_k, attn_v, attn_output;
    struct weight attn_q_bias, attn_k_bias, attn_v_bias, attn_output_bias;
    struct weight attn_q_norm, attn_k_norm; // see spec.head_norm; HEAD_NORM_OWN: [heads, head_size]
    struct weight attn_sinks;               // [n_head]: an extra softmax logit without a value
    struct weight attn_post_norm;           // of the attention output, before it is added
    struct weight ffn_norm, ffn_norm_bias;
    struct weight ffn_gate, ffn_up, ffn_down; // no gate: down(activation(up))
    struct weight ffn_gate_bias, ffn_up_bias, ffn_down_bias;
    struct weight ffn_post_norm;
    struct expert_weights experts;
};

// Up to so many bytes of weights, one thread of a CPU answers faster than anybody reads: see engine/cpu/backend.c.
#define MODEL_SMALL_BYTES (32u << 20)

struct model {
    struct model_spec spec;
    struct arena arena;
    struct weight token_embd, output_norm, output_norm_bias, output, output_bias; // output == token_embd if tied
    bool tied;
    struct weight rope_freqs;                    // [n_rot/2] divisors of the angles, or absent
    struct weight rope_factors_long, rope_factors_short; // likewise, ROPE_SCALING_LONG
    struct model_layer *layers;
    uint64_t n_parameters, weight_bytes;
};

// g must outlive m. n_vocab: the number of tokens; 0: the rows of the embedding.
bool model_open(struct model *m, const struct gguf *g, int32_t n_vocab, struct status *st);
void model_close(struct model *m);

#endif
