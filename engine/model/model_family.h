// Model family: the differences between architectures, as data. model_families.c has the table.
//
// A family lists the tensors of its layers and defaults for missing keys. Nothing here computes: model_spec.c derives a
// spec from a family and the keys of a file, model_weights.c binds the tensors.
#ifndef CONFAB_MODEL_MODEL_FAMILY_H
#define CONFAB_MODEL_MODEL_FAMILY_H

#include "engine/model/model.h"

// Parts of a model, in addition to those that every family has (embedding, final norm, q, k, v and attention output) or
// may have (output matrix).
enum model_part {
    PART_COMMON = 1 << 0,
    PART_ATTN_NORM = 1 << 1,
    PART_FFN_NORM = 1 << 2,
    PART_FFN_NORM_LATE = 1 << 3, // named post_attention_norm
    PART_POST_NORMS = 1 << 4,    // of the outputs of attention and ffn
    PART_NORM_BIAS = 1 << 5,     // of attn_norm and output_norm
    PART_FFN_NORM_BIAS = 1 << 6,
    PART_QKV_BIAS = 1 << 7,
    PART_ATTN_OUTPUT_BIAS = 1 << 8,
    PART_HEAD_NORM_SHARED = 1 << 9, // at most one of these three: see enum head_norm
    PART_HEAD_NORM_OWN = 1 << 10,
    PART_HEAD_NORM_WHOLE = 1 << 11,
    PART_SINKS = 1 << 12,
    PART_UP_DOWN = 1 << 13, // PARTS_DENSE: only in layers without experts
    PART_GATE = 1 << 14,
    PART_GATE_IN_UP = 1 << 15, // ffn_up has the gate's rows, then its own
    PART_FFN_BIAS = 1 << 16,
    PART_GATE_BIAS = 1 << 17,
    PART_EXPERTS = 1 << 18, // PARTS_EXPERTS: only in layers with experts
    PART_ROUTER_BIAS = 1 << 19,
    PART_EXPERT_BIAS = 1 << 20,
    PART_CHOICE_BIAS = 1 << 21,
    PART_SHARED_EXPERT = 1 << 22,
    PART_SHARED_ROUTER = 1 << 23,
    PART_OUTPUT_BIAS = 1 << 24,
    PART_ROPE_FREQS = 1 << 25,
    PART_ROPE_FACTORS = 1 << 26,
};

enum {
    PARTS_DENSE = PART_UP_DOWN | PART_GATE | PART_GATE_IN_UP | PART_FFN_BIAS | PART_GATE_BIAS,
    PARTS_EXPERTS =
        PART_EXPERTS | PART_ROUTER_BIAS | PART_EXPERT_BIAS | PART_CHOICE_BIAS | PART_SHARED_EXPERT | PART_SHARED_ROUTER,
};

enum family_parallel { PARALLEL_NEVER, PARALLEL_ALWAYS, PARALLEL_WITHOUT_FFN_NORM };

struct model_family {
    const char *architecture; // value of general.architecture
    unsigned needs, allows;   // enum model_part; others are rejected
    enum norm_kind norm;
    enum rope_kind rope;
    enum activation activation;
    enum family_parallel parallel;

    bool slides;            // uses attention.sliding_window
    int window;             // default; 0: none
    int window_period;      // default; layer i slides if i % period < period − 1; 0: all slide
    float base_sliding;     // default RoPE base of sliding layers; 0: the same as of other layers
    bool sliding_unscaled;  // no RoPE scaling in sliding layers
    int no_rope_period;     // layer i has no RoPE if i % period = period − 1; 0: all have it
    bool finetuned_is_rope; // rope.scaling.finetuned = false means no RoPE at all

    enum expert_gating gating;
    bool normalises_experts;
    bool splits_n_ff; // default of expert_feed_forward_length: n_ff / experts used, otherwise n_ff

    bool embeds_scaled;         // embeddings are multiplied by √n_embd
    int layers_scaled_by_width; // models with so many layers scale attention by n_embd / n_head, not by the head size
    bool divides_logits;        // logits are divided by logit_scale, not multiplied
    float attention_softcap, logit_softcap;
};

// Finds the family of general.architecture; NULL and a message with the supported ones if it is not supported.
const struct model_family *model_family_find(const struct gguf *g, struct status *st);

#endif
