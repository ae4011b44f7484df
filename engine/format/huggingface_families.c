// Hyperparameter and tensor names of each family, in Hugging Face folders and in GGUF files.
#include <stdio.h>
#include <string.h>

#include "engine/format/huggingface_parts.h"

#define LAYER "model.layers.{layer}."
#define BLOCK "blk.{layer}."

// ---- common names ----

const struct huggingface_key huggingface_common_keys[] = {
    {"num_hidden_layers|n_layer|num_layers", "block_count", MEMBER_INTEGER, 0},
    {"max_position_embeddings|n_positions", "context_length", MEMBER_INTEGER, 0},
    {"hidden_size|n_embd", "embedding_length", MEMBER_INTEGER, 0},
    {"intermediate_size|n_inner", "feed_forward_length", MEMBER_INTEGER, 0},
    {"num_attention_heads|n_head", "attention.head_count", MEMBER_INTEGER, 0},
    {"num_key_value_heads", "attention.head_count_kv", MEMBER_INTEGER, 0},
    {"head_dim", "attention.key_length", MEMBER_INTEGER, 0},
    {"head_dim", "attention.value_length", MEMBER_INTEGER, 0},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", MEMBER_FLOAT, 0},
    {"layer_norm_eps|layer_norm_epsilon|norm_epsilon", "attention.layer_norm_epsilon", MEMBER_FLOAT, 0},
    {"num_local_experts|num_experts|n_routed_experts", "expert_count", MEMBER_INTEGER, 0},
    {"num_experts_per_tok", "expert_used_count", MEMBER_INTEGER, 0},
    {"moe_intermediate_size", "expert_feed_forward_length", MEMBER_INTEGER, 0},
    {"norm_topk_prob", "expert_weights_norm", MEMBER_BOOL, 0},
    {"vocab_size", "vocab_size", MEMBER_INTEGER, 0},
    {0},
};

const struct huggingface_name huggingface_common_names[] = {
    {"model.embed_tokens", "token_embd", NULL, PLACE_PLAIN},
    {"model.norm", "output_norm", NULL, PLACE_PLAIN},
    {"lm_head", "output", NULL, PLACE_PLAIN},
    {LAYER "input_layernorm", BLOCK "attn_norm", NULL, PLACE_PLAIN},
    {LAYER "self_attn.q_proj", BLOCK "attn_q", NULL, PLACE_QUERY},
    {LAYER "self_attn.k_proj", BLOCK "attn_k", NULL, PLACE_KEY},
    {LAYER "self_attn.v_proj", BLOCK "attn_v", NULL, PLACE_PLAIN},
    {LAYER "self_attn.o_proj", BLOCK "attn_output", NULL, PLACE_PLAIN},
    {LAYER "self_attn.q_norm", BLOCK "attn_q_norm", NULL, PLACE_PLAIN},
    {LAYER "self_attn.k_norm", BLOCK "attn_k_norm", NULL, PLACE_PLAIN},
    {LAYER "post_attention_layernorm", BLOCK "ffn_norm", NULL, PLACE_PLAIN},
    {LAYER "mlp.gate_proj", BLOCK "ffn_gate", NULL, PLACE_PLAIN},
    {LAYER "mlp.up_proj", BLOCK "ffn_up", NULL, PLACE_PLAIN},
    {LAYER "mlp.down_proj", BLOCK "ffn_down", NULL, PLACE_PLAIN},
    {LAYER "mlp.gate", BLOCK "ffn_gate_inp", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.{item}.gate_proj", BLOCK "ffn_gate.{item}", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.{item}.up_proj", BLOCK "ffn_up.{item}", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.{item}.down_proj", BLOCK "ffn_down.{item}", NULL, PLACE_PLAIN},
    {0},
};

// ---- families ----

// For families in which all layers, or those in layer_types, use the sliding window.
static const struct huggingface_key window_keys[] = {
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_name mixtral_names[] = {
    {LAYER "block_sparse_moe.gate", BLOCK "ffn_gate_inp", NULL, PLACE_PLAIN},
    {LAYER "block_sparse_moe.experts.{item}.w1", BLOCK "ffn_gate.{item}", NULL, PLACE_PLAIN},
    {LAYER "block_sparse_moe.experts.{item}.w2", BLOCK "ffn_down.{item}", NULL, PLACE_PLAIN},
    {LAYER "block_sparse_moe.experts.{item}.w3", BLOCK "ffn_up.{item}", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key ministral3_keys[] = {
    {"rope_parameters.llama_4_scaling_beta", "attention.temperature_scale", MEMBER_FLOAT, 0},
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_key qwen2_moe_keys[] = {
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_name qwen2_moe_names[] = {
    {LAYER "mlp.shared_expert.gate_proj", BLOCK "ffn_gate_shexp", NULL, PLACE_PLAIN},
    {LAYER "mlp.shared_expert.up_proj", BLOCK "ffn_up_shexp", NULL, PLACE_PLAIN},
    {LAYER "mlp.shared_expert.down_proj", BLOCK "ffn_down_shexp", NULL, PLACE_PLAIN},
    {LAYER "mlp.shared_expert_gate", BLOCK "ffn_gate_inp_shexp", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key gpt_oss_keys[] = {
    {"intermediate_size", "expert_feed_forward_length", MEMBER_INTEGER, 0},
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 128},
    {"num_experts_per_tok|experts_per_token", "expert_used_count", MEMBER_INTEGER, 4},
    {0},
};

static const struct huggingface_name gpt_oss_names[] = {
    {LAYER "post_attention_layernorm", BLOCK "post_attention_norm", NULL, PLACE_PLAIN},
    {LAYER "self_attn.sinks", BLOCK "attn_sinks.weight", NULL, PLACE_PLAIN},
    {LAYER "mlp.router", BLOCK "ffn_gate_inp", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.gate_up_proj_blocks", BLOCK "ffn_gate_exps.weight", BLOCK "ffn_up_exps.weight",
     PLACE_INTERLEAVED},
    {LAYER "mlp.experts.gate_up_proj_bias", BLOCK "ffn_gate_exps.bias", BLOCK "ffn_up_exps.bias", PLACE_INTERLEAVED},
    {LAYER "mlp.experts.down_proj_blocks", BLOCK "ffn_down_exps.weight", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.gate_up_proj", BLOCK "ffn_gate_exps.weight", BLOCK "ffn_up_exps.weight", PLACE_INTERLEAVED},
    {LAYER "mlp.experts.down_proj", BLOCK "ffn_down_exps.weight", NULL, PLACE_PLAIN},
    {LAYER "mlp.experts.down_proj_bias", BLOCK "ffn_down_exps.bias", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key gemma2_keys[] = {
    {"query_pre_attn_scalar", "attention.scale", MEMBER_ROOT, 0},
    {"attn_logit_softcapping", "attn_logit_softcapping", MEMBER_FLOAT, 0},
    {"final_logit_softcapping", "final_logit_softcapping", MEMBER_FLOAT, 0},
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 4096},
    {0},
};

// Multimodal Gemma 3 omits the defaults of its configuration class.
static const struct huggingface_key gemma3_keys[] = {
    {"query_pre_attn_scalar", "attention.scale", MEMBER_ROOT, 0},
    {"max_position_embeddings", "context_length", MEMBER_INTEGER, 131072},
    {"num_attention_heads", "attention.head_count", MEMBER_INTEGER, 8},
    {"num_key_value_heads", "attention.head_count_kv", MEMBER_INTEGER, 4},
    {"head_dim", "attention.key_length", MEMBER_INTEGER, 256},
    {"head_dim", "attention.value_length", MEMBER_INTEGER, 256},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", MEMBER_FLOAT, 1e-6},
    {"final_logit_softcapping", "final_logit_softcapping", MEMBER_FLOAT, 0},
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 0},
    {"rope_theta|rope_parameters.full_attention.rope_theta|rope_parameters.rope_theta", "rope.freq_base", MEMBER_FLOAT,
     1e6},
    {"rope_local_base_freq|rope_parameters.sliding_attention.rope_theta", "rope.freq_base_swa", MEMBER_FLOAT, 10000},
    {0},
};

static const struct huggingface_name gemma2_names[] = {
    {LAYER "post_attention_layernorm", BLOCK "post_attention_norm", NULL, PLACE_PLAIN},
    {LAYER "pre_feedforward_layernorm", BLOCK "ffn_norm", NULL, PLACE_PLAIN},
    {LAYER "post_feedforward_layernorm", BLOCK "post_ffw_norm", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_name phi_names[] = {
    {LAYER "self_attn.dense", BLOCK "attn_output", NULL, PLACE_PLAIN},
    {LAYER "mlp.fc1", BLOCK "ffn_up", NULL, PLACE_PLAIN},
    {LAYER "mlp.fc2", BLOCK "ffn_down", NULL, PLACE_PLAIN},
    {"model.final_layernorm", "output_norm", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key phi3_keys[] = {
    {"sliding_window", "attention.sliding_window", MEMBER_INTEGER, 0},
    {"original_max_position_embeddings|rope_scaling.original_max_position_embeddings|"
     "rope_parameters.original_max_position_embeddings|max_position_embeddings",
     "rope.scaling.original_context_length", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_name phi3_names[] = {
    {LAYER "self_attn.qkv_proj", BLOCK "attn_qkv", NULL, PLACE_PLAIN},
    {LAYER "mlp.gate_up_proj", BLOCK "ffn_up", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_name olmo2_names[] = {
    {LAYER "post_attention_layernorm", BLOCK "post_attention_norm", NULL, PLACE_PLAIN},
    {LAYER "post_feedforward_layernorm", BLOCK "post_ffw_norm", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key granite_keys[] = {
    {"attention_multiplier", "attention.scale", MEMBER_FLOAT, 0},
    {"embedding_multiplier", "embedding_scale", MEMBER_FLOAT, 0},
    {"residual_multiplier", "residual_scale", MEMBER_FLOAT, 0},
    {"logits_scaling", "logit_scale", MEMBER_FLOAT, 0},
    {"shared_intermediate_size", "expert_shared_feed_forward_length", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_name granitemoe_names[] = {
    {LAYER "block_sparse_moe.router.layer", BLOCK "ffn_gate_inp", NULL, PLACE_PLAIN},
    {LAYER "block_sparse_moe.input_linear", BLOCK "ffn_gate.{item}", BLOCK "ffn_up.{item}", PLACE_EXPERT_HALVES},
    {LAYER "block_sparse_moe.output_linear", BLOCK "ffn_down.{item}", NULL, PLACE_EXPERTS},
    {LAYER "shared_mlp.input_linear", BLOCK "ffn_gate_shexp", BLOCK "ffn_up_shexp", PLACE_HALVES},
    {LAYER "shared_mlp.output_linear", BLOCK "ffn_down_shexp", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key stablelm_keys[] = {
    {"layer_norm_eps|norm_eps", "attention.layer_norm_epsilon", MEMBER_FLOAT, 1e-5},
    {"use_parallel_residual", "use_parallel_residual", MEMBER_BOOL, 0},
    {0},
};

static const struct huggingface_name stablelm_names[] = {
    {LAYER "self_attn.q_layernorm.norms.{item}", BLOCK "attn_q_norm", NULL, PLACE_HEAD},
    {LAYER "self_attn.k_layernorm.norms.{item}", BLOCK "attn_k_norm", NULL, PLACE_HEAD},
    {0},
};

static const struct huggingface_name starcoder2_names[] = {
    {LAYER "mlp.c_fc", BLOCK "ffn_up", NULL, PLACE_PLAIN},
    {LAYER "mlp.c_proj", BLOCK "ffn_down", NULL, PLACE_PLAIN},
    {0},
};

// max_position_embeddings is smaller than the context the model was trained with.
static const struct huggingface_key cohere_keys[] = {
    {"model_max_length|max_position_embeddings", "context_length", MEMBER_INTEGER, 0},
    {"logit_scale", "logit_scale", MEMBER_FLOAT, 0.0625},
    {0},
};

static const struct huggingface_key exaone_keys[] = {
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", MEMBER_FLOAT, 1e-5},
    {0},
};

#define EXAONE "transformer.h.{layer}."
static const struct huggingface_name exaone_names[] = {
    {"transformer.wte", "token_embd", NULL, PLACE_PLAIN},
    {"transformer.ln_f", "output_norm", NULL, PLACE_PLAIN},
    {EXAONE "ln_1", BLOCK "attn_norm", NULL, PLACE_PLAIN},
    {EXAONE "attn.attention.q_proj", BLOCK "attn_q", NULL, PLACE_QUERY},
    {EXAONE "attn.attention.k_proj", BLOCK "attn_k", NULL, PLACE_KEY},
    {EXAONE "attn.attention.v_proj", BLOCK "attn_v", NULL, PLACE_PLAIN},
    {EXAONE "attn.attention.out_proj", BLOCK "attn_output", NULL, PLACE_PLAIN},
    {EXAONE "ln_2", BLOCK "ffn_norm", NULL, PLACE_PLAIN},
    {EXAONE "mlp.c_fc_0", BLOCK "ffn_gate", NULL, PLACE_PLAIN},
    {EXAONE "mlp.c_fc_1", BLOCK "ffn_up", NULL, PLACE_PLAIN},
    {EXAONE "mlp.c_proj", BLOCK "ffn_down", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key deepseek_keys[] = {
    {"first_k_dense_replace", "leading_dense_block_count", MEMBER_INTEGER, 0},
    {"n_shared_experts", "expert_shared_count", MEMBER_INTEGER, 0},
    {0},
};

static const struct huggingface_name deepseek_names[] = {
    {LAYER "mlp.shared_experts.gate_proj", BLOCK "ffn_gate_shexp", NULL, PLACE_PLAIN},
    {LAYER "mlp.shared_experts.up_proj", BLOCK "ffn_up_shexp", NULL, PLACE_PLAIN},
    {LAYER "mlp.shared_experts.down_proj", BLOCK "ffn_down_shexp", NULL, PLACE_PLAIN},
    {0},
};

static const struct huggingface_key no_keys[] = {{0}};
static const struct huggingface_name no_names[] = {{0}};

static const struct huggingface_family families[] = {
    {{"llama", "mistral"}, "llama", .permute = true, .keys = window_keys, .names = no_names},
    {{"ministral3", "mistral3"}, "mistral3", .permute = true, .keys = ministral3_keys, .names = no_names},
    {{"mixtral"}, "llama", .permute = true, .keys = window_keys, .names = mixtral_names},
    {{"qwen2"}, "qwen2", .keys = no_keys, .names = no_names},
    {{"qwen2_moe"}, "qwen2moe", .keys = qwen2_moe_keys, .names = qwen2_moe_names},
    {{"qwen3"}, "qwen3", .keys = no_keys, .names = no_names},
    {{"qwen3_moe"}, "qwen3moe", .keys = no_keys, .names = no_names},
    {{"gpt_oss"}, "gpt-oss", .keys = gpt_oss_keys, .names = gpt_oss_names},
    {{"gemma"}, "gemma", .norms_plus_one = true, .tied = true, .keys = no_keys, .names = no_names},
    {{"gemma2"}, "gemma2", .norms_plus_one = true, .tied = true, .keys = gemma2_keys, .names = gemma2_names},
    {{"gemma3_text", "gemma3"},
     "gemma3",
     .norms_plus_one = true,
     .tied = true,
     .keys = gemma3_keys,
     .names = gemma2_names},
    {{"phi"}, "phi2", .keys = no_keys, .names = phi_names},
    {{"phi3"}, "phi3", .keys = phi3_keys, .names = phi3_names},
    {{"smollm3"}, "smollm3", .permute = true, .keys = no_keys, .names = no_names},
    {{"olmo2", "olmo3"}, "olmo2", .keys = window_keys, .names = olmo2_names},
    {{"olmoe"}, "olmoe", .keys = no_keys, .names = no_names},
    {{"granite"}, "granite", .permute = true, .keys = granite_keys, .names = no_names},
    {{"granitemoe", "granitemoeshared"},
     "granitemoe",
     .permute = true,
     .keys = granite_keys,
     .names = granitemoe_names},
    {{"stablelm"}, "stablelm", .keys = stablelm_keys, .names = stablelm_names},
    {{"starcoder2"}, "starcoder2", .keys = window_keys, .names = starcoder2_names},
    {{"cohere"}, "command-r", .keys = cohere_keys, .names = no_names},
    {{"exaone"}, "exaone", .keys = exaone_keys, .names = exaone_names},
    {{"deepseek"}, "deepseek", .permute = true, .keys = deepseek_keys, .names = deepseek_names},
};
enum { FAMILIES = sizeof families / sizeof *families };

const struct huggingface_family *huggingface_family_find(const char *model_type) {
    for (int i = 0; i < FAMILIES; i++)
        for (const char *const *name = families[i].model_types; *name; name++)
            if (!strcmp(*name, model_type)) return &families[i];
    return NULL;
}

void huggingface_family_list(char *out, size_t size) {
    size_t used = 0;
    for (int i = 0; i < FAMILIES && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", families[i].model_types[0]);
}
