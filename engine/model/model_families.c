// The table of families; related ones next to each other.
#include <stdio.h>
#include <string.h>

#include "engine/model/model_family.h"

enum {
    // Nearly all families: a norm before attention and ffn, and a gated ffn.
    GATED = PART_UP_DOWN | PART_GATE,
    NORMS = PART_ATTN_NORM | PART_FFN_NORM,
    LAYER_NORMS = NORMS | PART_NORM_BIAS | PART_FFN_NORM_BIAS,
    LLAMA = NORMS | GATED,
    // Tensors that exports of a few models add without changing the architecture.
    ATTN_BIASES = PART_QKV_BIAS | PART_ATTN_OUTPUT_BIAS,
    LLAMA_ALLOWS = ATTN_BIASES | PART_FFN_BIAS | PART_GATE_BIAS | PART_ROPE_FREQS | PART_ROPE_FACTORS,
    ROUTED = PART_EXPERTS | PART_CHOICE_BIAS,
};

static const struct model_family families[] = {
    // Llama 1 to 3, TinyLlama, SmolLM 2, Mistral, Mixtral, DeepSeek LLM; with or without experts.
    {.architecture = "llama",
     .needs = LLAMA,
     .allows = LLAMA_ALLOWS | ROUTED | PART_SHARED_EXPERT,
     .rope = ROPE_NORM,
     .slides = true,
     .gating = EXPERT_GATING_SOFTMAX,
     .normalises_experts = true},
    {.architecture = "mistral3",
     .needs = LLAMA,
     .allows = LLAMA_ALLOWS | ROUTED,
     .rope = ROPE_NORM,
     .slides = true,
     .gating = EXPERT_GATING_SOFTMAX,
     .normalises_experts = true},
    {.architecture = "exaone", .needs = LLAMA, .allows = LLAMA_ALLOWS, .rope = ROPE_NEOX},
    {.architecture = "smollm3", .needs = LLAMA, .allows = LLAMA_ALLOWS, .rope = ROPE_NORM, .no_rope_period = 4},
    {.architecture = "deepseek",
     .needs = LLAMA | PART_EXPERTS | PART_SHARED_EXPERT,
     .allows = ATTN_BIASES | PART_CHOICE_BIAS | PART_ROPE_FREQS,
     .rope = ROPE_NORM,
     .gating = EXPERT_GATING_SOFTMAX},

    // Scaled embeddings, residuals and logits.
    {.architecture = "granite",
     .needs = LLAMA,
     .allows = LLAMA_ALLOWS,
     .rope = ROPE_NORM,
     .finetuned_is_rope = true,
     .divides_logits = true},
    {.architecture = "granitemoe",
     .needs = NORMS | PART_EXPERTS,
     .allows = LLAMA_ALLOWS | GATED | ROUTED | PART_SHARED_EXPERT,
     .rope = ROPE_NORM,
     .gating = EXPERT_GATING_SOFTMAX,
     .finetuned_is_rope = true,
     .normalises_experts = true,
     .divides_logits = true},

    // Biases on queries, keys and values.
    {.architecture = "qwen2", .needs = LLAMA | PART_QKV_BIAS, .allows = PART_OUTPUT_BIAS, .rope = ROPE_NEOX},
    {.architecture = "qwen2moe",
     .needs = NORMS | PART_QKV_BIAS | PART_EXPERTS | PART_SHARED_EXPERT | PART_SHARED_ROUTER,
     .rope = ROPE_NEOX,
     .gating = EXPERT_GATING_SOFTMAX,
     .splits_n_ff = true},

    // A norm per query and key head.
    {.architecture = "qwen3", .needs = LLAMA | PART_HEAD_NORM_SHARED, .allows = PART_QKV_BIAS, .rope = ROPE_NEOX},
    {.architecture = "qwen3moe",
     .needs = NORMS | PART_HEAD_NORM_SHARED | PART_EXPERTS,
     .allows = PART_QKV_BIAS,
     .rope = ROPE_NEOX,
     .gating = EXPERT_GATING_SOFTMAX,
     .normalises_experts = true,
     .splits_n_ff = true},

    {.architecture = "gpt-oss",
     .needs = PART_ATTN_NORM | PART_FFN_NORM_LATE | ATTN_BIASES | PART_SINKS | PART_EXPERTS | PART_ROUTER_BIAS |
              PART_EXPERT_BIAS,
     .rope = ROPE_NEOX,
     .activation = ACTIVATION_SILU_CLAMPED,
     .slides = true,
     .window = 128,
     .window_period = 2,
     .gating = EXPERT_GATING_SOFTMAX_CHOSEN},

    {.architecture = "gemma", .needs = LLAMA, .rope = ROPE_NEOX, .activation = ACTIVATION_GELU, .embeds_scaled = true},
    {.architecture = "gemma2",
     .needs = LLAMA | PART_POST_NORMS,
     .rope = ROPE_NEOX,
     .activation = ACTIVATION_GELU,
     .slides = true,
     .window = 4096,
     .window_period = 2,
     .embeds_scaled = true,
     .layers_scaled_by_width = 46,
     .attention_softcap = 50,
     .logit_softcap = 30},
    {.architecture = "gemma3",
     .needs = LLAMA | PART_POST_NORMS | PART_HEAD_NORM_SHARED,
     .rope = ROPE_NEOX,
     .activation = ACTIVATION_GELU,
     .slides = true,
     .window_period = 6,
     .base_sliding = 10000,
     .sliding_unscaled = true,
     .embeds_scaled = true,
     .layers_scaled_by_width = 62},

    // Norms after attention and ffn instead of before, and of whole rows of queries and keys.
    {.architecture = "olmo2",
     .needs = GATED | PART_POST_NORMS | PART_HEAD_NORM_WHOLE,
     .rope = ROPE_NEOX,
     .slides = true,
     .window_period = 4,
     .sliding_unscaled = true},
    {.architecture = "olmoe",
     .needs = NORMS | PART_HEAD_NORM_WHOLE | PART_EXPERTS,
     .rope = ROPE_NEOX,
     .gating = EXPERT_GATING_SOFTMAX},

    {.architecture = "phi2",
     .needs = PART_ATTN_NORM | PART_NORM_BIAS | ATTN_BIASES | PART_UP_DOWN | PART_FFN_BIAS | PART_OUTPUT_BIAS,
     .norm = NORM_LAYER,
     .rope = ROPE_NEOX,
     .activation = ACTIVATION_GELU,
     .parallel = PARALLEL_ALWAYS},
    {.architecture = "phi3",
     .needs = NORMS | PART_UP_DOWN | PART_GATE_IN_UP,
     .allows = ATTN_BIASES | PART_ROPE_FACTORS,
     .rope = ROPE_NEOX,
     .slides = true},

    // LayerNorm instead of RMSNorm.
    {.architecture = "stablelm",
     .needs = PART_ATTN_NORM | PART_NORM_BIAS | GATED,
     .allows = PART_FFN_NORM | PART_FFN_NORM_BIAS | PART_QKV_BIAS | PART_HEAD_NORM_OWN,
     .norm = NORM_LAYER,
     .rope = ROPE_NEOX,
     .parallel = PARALLEL_WITHOUT_FFN_NORM},
    {.architecture = "starcoder2",
     .needs = LAYER_NORMS | ATTN_BIASES | PART_UP_DOWN | PART_FFN_BIAS,
     .norm = NORM_LAYER,
     .rope = ROPE_NEOX,
     .activation = ACTIVATION_GELU,
     .slides = true},
    {.architecture = "command-r",
     .needs = PART_ATTN_NORM | GATED,
     .allows = ATTN_BIASES | PART_HEAD_NORM_OWN,
     .norm = NORM_LAYER,
     .rope = ROPE_NORM,
     .parallel = PARALLEL_ALWAYS},
};
enum { FAMILIES = sizeof families / sizeof *families };

const struct model_family *model_family_find(const struct gguf *g, struct status *st) {
    struct span name;
    if (!gguf_get_string(g, "general.architecture", GGUF_REQUIRED, &name, st)) return NULL;
    char supported[FAMILIES * 16] = "";
    for (int i = 0; i < FAMILIES; i++) {
        if (span_equals(name, families[i].architecture)) return &families[i];
        size_t used = strlen(supported);
        snprintf(supported + used, sizeof supported - used, "%s%s", used ? ", " : "", families[i].architecture);
    }
    status_fail(st, STATUS_UNSUPPORTED, "%s: unsupported architecture '%.*s' (supported: %s)", g->path,
                name.size < 64 ? (int)name.size : 64, name.data, supported);
    return NULL;
}
