#include "tests/unit/tiny_huggingface.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/base/utf8.h"
#include "tests/unit/safetensors_writer.h"
#include "tests/unit/tiny_quantised.h"

enum { SHARDS_MAX = 4 };

struct folder_writer {
    const char *path, *architecture;
    const struct gguf *g;
    struct tiny_huggingface_options o;
    json_t *config, *scaling, *map;
    struct safetensors_writer shards[SHARDS_MAX];
    int n_tensors;
};

// A matrix or vector on its way: dims innermost first, as in GGUF.
struct moved {
    char name[160];
    const char *dtype;
    int n_dims;
    uint64_t dims[4];
    size_t element; // bytes
    uint8_t *data;  // owned
};

// ---- names ----

// In the order in which they are tried. "": of every architecture.
static const struct {
    const char *architecture, *gguf, *huggingface;
} names[] = {
    {"gemma2", "post_attention_norm", "post_attention_layernorm"},
    {"gemma2", "ffn_norm", "pre_feedforward_layernorm"},
    {"gemma2", "post_ffw_norm", "post_feedforward_layernorm"},
    {"gemma3", "post_attention_norm", "post_attention_layernorm"},
    {"gemma3", "ffn_norm", "pre_feedforward_layernorm"},
    {"gemma3", "post_ffw_norm", "post_feedforward_layernorm"},
    {"olmo2", "post_attention_norm", "post_attention_layernorm"},
    {"olmo2", "post_ffw_norm", "post_feedforward_layernorm"},
    {"gpt-oss", "post_attention_norm", "post_attention_layernorm"},
    {"gpt-oss", "attn_sinks", "self_attn.sinks"},
    {"gpt-oss", "ffn_gate_inp", "mlp.router"},
    {"phi2", "attn_output", "self_attn.dense"},
    {"phi2", "ffn_up", "mlp.fc1"},
    {"phi2", "ffn_down", "mlp.fc2"},
    {"phi2", "output_norm", "model.final_layernorm"},
    {"phi3", "attn_qkv", "self_attn.qkv_proj"},
    {"phi3", "ffn_up", "mlp.gate_up_proj"},
    {"starcoder2", "ffn_up", "mlp.c_fc"},
    {"starcoder2", "ffn_down", "mlp.c_proj"},
    {"exaone", "token_embd", "transformer.wte"},
    {"exaone", "output_norm", "transformer.ln_f"},
    {"exaone", "attn_norm", "ln_1"},
    {"exaone", "ffn_norm", "ln_2"},
    {"exaone", "attn_q", "attn.attention.q_proj"},
    {"exaone", "attn_k", "attn.attention.k_proj"},
    {"exaone", "attn_v", "attn.attention.v_proj"},
    {"exaone", "attn_output", "attn.attention.out_proj"},
    {"exaone", "ffn_gate", "mlp.c_fc_0"},
    {"exaone", "ffn_up", "mlp.c_fc_1"},
    {"exaone", "ffn_down", "mlp.c_proj"},
    {"llama", "ffn_gate_inp", "block_sparse_moe.gate"},
    {"granitemoe", "ffn_gate_inp", "block_sparse_moe.router.layer"},
    {"granitemoe", "ffn_down_shexp", "shared_mlp.output_linear"},
    {"qwen2moe", "ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"qwen2moe", "ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"qwen2moe", "ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"qwen2moe", "ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"deepseek", "ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"deepseek", "ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"deepseek", "ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"", "token_embd", "model.embed_tokens"},
    {"", "output_norm", "model.norm"},
    {"", "output", "lm_head"},
    {"", "attn_norm", "input_layernorm"},
    {"", "attn_q", "self_attn.q_proj"},
    {"", "attn_k", "self_attn.k_proj"},
    {"", "attn_v", "self_attn.v_proj"},
    {"", "attn_output", "self_attn.o_proj"},
    {"", "attn_q_norm", "self_attn.q_norm"},
    {"", "attn_k_norm", "self_attn.k_norm"},
    {"", "ffn_norm", "post_attention_layernorm"},
    {"", "ffn_gate", "mlp.gate_proj"},
    {"", "ffn_up", "mlp.up_proj"},
    {"", "ffn_down", "mlp.down_proj"},
    {"", "ffn_gate_inp", "mlp.gate"},
};

static bool is(const struct folder_writer *w, const char *architecture) {
    return !strcmp(w->architecture, architecture);
}

static const char *renamed(const struct folder_writer *w, const char *stem) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((!*names[i].architecture || is(w, names[i].architecture)) && !strcmp(names[i].gguf, stem))
            return names[i].huggingface;
    panic("no name for %s of %s", stem, w->architecture);
}

// "blk.3.attn_q.weight" is layer 3, stem "attn_q", ending ".weight"; outside the layers the layer is −1.
struct place {
    int layer, expert; // −1: none
    char stem[64];
    const char *ending;
};

static struct place place_of(struct span name) {
    struct place p = {.layer = -1, .expert = -1};
    char text[128], *at = text, *dot;
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    if (!strncmp(text, "blk.", 4)) p.layer = (int)strtol(text + 4, &at, 10), at++;
    p.ending = strstr(text, ".bias") ? ".bias" : ".weight";
    snprintf(p.stem, sizeof p.stem, "%.*s", (int)(strlen(at) - strlen(p.ending)), at);
    if ((dot = strchr(p.stem, '.'))) p.expert = atoi(dot + 1), *dot = 0;
    return p;
}

static void set_name(const struct folder_writer *w, struct moved *m, const struct place *p, const char *stem,
                     const char *ending) {
    const char *layers = is(w, "exaone") ? "transformer.h" : "model.layers";
    if (p->layer < 0) snprintf(m->name, sizeof m->name, "%s%s", stem, ending);
    else snprintf(m->name, sizeof m->name, "%s.%d.%s%s", layers, p->layer, stem, ending);
}

// ---- values ----

static uint64_t count_of(const struct moved *m) { return m->dims[0] * m->dims[1] * m->dims[2] * m->dims[3]; }

// Floats as they are; blocks as F32.
static struct moved moved_from(const struct gguf_tensor *t) {
    struct moved m = {.dtype = t->format->id == BLOCK_F16    ? "F16"
                               : t->format->id == BLOCK_BF16 ? "BF16"
                                                             : "F32",
                      .n_dims = t->n_dims};
    memcpy(m.dims, t->dims, sizeof m.dims);
    m.element = strcmp(m.dtype, "F32") ? 2 : 4;
    m.data = xmalloc(count_of(&m) * m.element);
    if (t->format->elements == 1) memcpy(m.data, t->data, t->size);
    else t->format->decode(t->data, (float *)m.data, count_of(&m));
    return m;
}

// `count` rows from `first` on, every `step`-th; a row is dims[0] elements.
static struct moved rows_of(const struct moved *m, uint64_t first, uint64_t step, uint64_t count) {
    struct moved part = *m;
    size_t bytes = m->dims[0] * m->element;
    part.n_dims = 2;
    part.dims[1] = count, part.dims[2] = part.dims[3] = 1;
    part.data = xmalloc(count * bytes);
    for (uint64_t i = 0; i < count; i++) memcpy(part.data + i * bytes, m->data + (first + i * step) * bytes, bytes);
    return part;
}

// From neighbours (2i, 2i + 1) to halves (i, i + size / 2) of every head.
static void unpermute(struct moved *m, uint64_t heads) {
    bool vector = m->n_dims == 1;
    uint64_t rows = vector ? m->dims[0] : m->dims[1], size = rows / heads;
    size_t bytes = (vector ? 1 : m->dims[0]) * m->element;
    uint8_t *out = xmalloc(rows * bytes);
    for (uint64_t h = 0; h < heads; h++)
        for (uint64_t i = 0; i < size; i++)
            memcpy(out + (h * size + i % 2 * (size / 2) + i / 2) * bytes, m->data + (h * size + i) * bytes, bytes);
    free(m->data);
    m->data = out;
}

static uint64_t figure(const struct folder_writer *w, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", w->architecture, name);
    const struct gguf_pair *p = gguf_find(w->g, key);
    return p ? (uint64_t)gguf_number(p, 0) : 0;
}

// ---- tensors ----

static void put(struct folder_writer *w, const char *name, const char *dtype, int n_dims, const uint64_t *dims,
                const void *data, size_t size) {
    int shard = w->o.shards ? w->n_tensors % w->o.shards : 0;
    char file[64];
    snprintf(file, sizeof file, "model-%05d-of-%05d.safetensors", shard + 1, w->o.shards);
    safetensors_writer_tensor(&w->shards[shard], name, dtype, n_dims, dims, data, size);
    json_object_set_new(w->map, name, json_string(file));
    w->n_tensors++;
}

// Frees it.
static void put_moved(struct folder_writer *w, struct moved *m) {
    uint64_t dims[4];
    for (int i = 0; i < m->n_dims; i++) dims[i] = m->dims[m->n_dims - 1 - i];
    put(w, m->name, m->dtype, m->n_dims, dims, m->data, count_of(m) * m->element);
    free(m->data);
}

static void put_part(void *context, const char *name, const char *dtype, int n_dims, const uint64_t *dims,
                     const void *data, size_t size) {
    put(context, name, dtype, n_dims, dims, data, size);
}

// Frees it.
static void put_matrix(struct folder_writer *w, struct moved *m) {
    if (!w->o.quantisation || m->n_dims != 2 || !strstr(m->name, "_proj")) {
        put_moved(w, m);
        return;
    }
    struct tiny_matrix matrix = {m->name, m->dims[1], m->dims[0], (const float *)m->data};
    tiny_quantised(&matrix, w->o.quantisation, put_part, w);
    free(m->data);
}

static void put_experts(struct folder_writer *w, struct moved *m, const struct place *p, const char *pattern) {
    for (uint64_t e = 0; e < m->dims[2]; e++) {
        struct moved part = rows_of(m, e * m->dims[1], 1, m->dims[1]);
        char stem[96];
        snprintf(stem, sizeof stem, pattern, (int)e);
        set_name(w, &part, p, stem, ".weight");
        put_matrix(w, &part);
    }
}

static const struct gguf_tensor *sibling(const struct folder_writer *w, const struct place *p, const char *stem,
                                         const char *ending) {
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s%s", p->layer, stem, ending);
    const struct gguf_tensor *t = gguf_tensor_find(w->g, name);
    if (!t) panic("%s is missing", name);
    return t;
}

// gpt-oss: rows of gate and up in turn. `element` bytes a row.
static uint8_t *interleaved(const void *gate, const void *up, uint64_t rows, size_t row) {
    uint8_t *out = xmalloc(2 * rows * row);
    for (uint64_t i = 0; i < rows; i++) {
        memcpy(out + 2 * i * row, (const uint8_t *)gate + i * row, row);
        memcpy(out + (2 * i + 1) * row, (const uint8_t *)up + i * row, row);
    }
    return out;
}

// A row of GGUF's blocks as Hugging Face's: neighbours share a byte, scales lie apart.
static void put_mxfp4(struct folder_writer *w, const struct place *p, const char *stem, const struct gguf_tensor *t,
                      const struct block_mxfp4 *blocks, uint64_t rows) {
    uint64_t a_row = t->dims[0] / 32, n = t->dims[2] * rows * a_row;
    const uint64_t dims[4] = {t->dims[2], rows, a_row, 16};
    uint8_t *codes = xcalloc(n, 16), *scales = xmalloc(n);
    struct moved m;
    for (uint64_t b = 0; b < n; b++) {
        scales[b] = blocks[b].e;
        for (int i = 0; i < 32; i++) {
            int code = i < 16 ? blocks[b].q[i] & 15 : blocks[b].q[i - 16] >> 4;
            codes[16 * b + (uint64_t)i / 2] |= (uint8_t)(code << 4 * (i % 2));
        }
    }
    set_name(w, &m, p, stem, "_blocks");
    put(w, m.name, "U8", 4, dims, codes, 16 * n);
    set_name(w, &m, p, stem, "_scales");
    put(w, m.name, "U8", 3, dims, scales, n);
    free(codes);
    free(scales);
}

// As they were before quantisation: inputs outside, outputs inside.
static void put_transposed(struct folder_writer *w, const struct place *p, const char *stem, const float *values,
                           uint64_t columns, uint64_t rows, uint64_t count) {
    struct moved m;
    float *out = xmalloc(columns * rows * count * sizeof *out);
    for (uint64_t e = 0; e < count; e++)
        for (uint64_t o = 0; o < rows; o++)
            for (uint64_t i = 0; i < columns; i++)
                out[(e * columns + i) * rows + o] = values[(e * rows + o) * columns + i];
    set_name(w, &m, p, stem, "");
    put(w, m.name, "F32", 3, (uint64_t[]){count, columns, rows}, out, columns * rows * count * sizeof *out);
    free(out);
}

static void put_stack(struct folder_writer *w, const struct place *p, const char *stem, const struct gguf_tensor *t,
                      const void *data, uint64_t rows) {
    if (t->format->id == BLOCK_MXFP4) put_mxfp4(w, p, stem, t, data, rows);
    else put_transposed(w, p, stem, data, t->dims[0], rows, t->dims[2]);
}

static void put_gpt_oss_experts(struct folder_writer *w, const struct gguf_tensor *t, const struct place *p) {
    bool bias = !strcmp(p->ending, ".bias");
    if (!strcmp(p->stem, "ffn_up_exps")) return; // comes with the gate
    struct moved m;
    if (!strcmp(p->stem, "ffn_down_exps")) {
        set_name(w, &m, p, "mlp.experts.down_proj", "_bias");
        if (bias) put(w, m.name, "F32", 2, (uint64_t[]){t->dims[1], t->dims[0]}, t->data, t->size);
        else put_stack(w, p, "mlp.experts.down_proj", t, t->data, t->dims[1]);
        return;
    }
    const struct gguf_tensor *up = sibling(w, p, "ffn_up_exps", p->ending);
    uint64_t rows = bias ? t->dims[0] * t->dims[1] : t->dims[1] * t->dims[2];
    uint8_t *both = interleaved(t->data, up->data, rows, t->size / rows);
    set_name(w, &m, p, "mlp.experts.gate_up_proj", "_bias");
    if (bias) put(w, m.name, "F32", 2, (uint64_t[]){t->dims[1], 2 * t->dims[0]}, both, 2 * t->size);
    else put_stack(w, p, "mlp.experts.gate_up_proj", t, both, 2 * t->dims[1]);
    free(both);
}

// granitemoe: gate's rows, then up's, of every expert in one tensor.
static void put_joined(struct folder_writer *w, struct moved *gate, const struct place *p, const char *up_stem,
                       const char *stem) {
    struct moved up = moved_from(sibling(w, p, up_stem, ".weight")), both = *gate;
    size_t half = gate->dims[0] * gate->dims[1] * gate->element;
    both.data = interleaved(gate->data, up.data, gate->dims[2], half);
    both.dims[1] *= 2;
    set_name(w, &both, p, stem, ".weight");
    put_moved(w, &both);
    free(gate->data);
    free(up.data);
}

static void put_granite_experts(struct folder_writer *w, struct moved *m, const struct place *p) {
    if (!strcmp(p->stem, "ffn_gate_exps")) put_joined(w, m, p, "ffn_up_exps", "block_sparse_moe.input_linear");
    else if (!strcmp(p->stem, "ffn_gate_shexp")) put_joined(w, m, p, "ffn_up_shexp", "shared_mlp.input_linear");
    else if (!strcmp(p->stem, "ffn_down_exps")) {
        set_name(w, m, p, "block_sparse_moe.output_linear", ".weight");
        put_moved(w, m);
    } else free(m->data); // came with the gate
}

// Fused in one GGUF, apart in Hugging Face's files.
static void put_split_qkv(struct folder_writer *w, struct moved *m, const struct place *p) {
    bool vector = m->n_dims == 1;
    uint64_t all = m->dims[vector ? 0 : 1], heads = figure(w, "attention.head_count"),
             heads_kv = figure(w, "attention.head_count_kv"), size = all / (heads + 2 * heads_kv), first = 0;
    static const char *const stems[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
    if (vector) m->dims[0] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t rows = size * (i ? heads_kv : heads);
        struct moved part = rows_of(m, first, 1, rows);
        if (vector) part.n_dims = 1, part.dims[0] = rows, part.dims[1] = 1;
        set_name(w, &part, p, stems[i], p->ending);
        put_moved(w, &part);
        first += rows;
    }
    free(m->data);
}

// stablelm: a vector a head.
static void put_head_norms(struct folder_writer *w, struct moved *m, const struct place *p) {
    for (uint64_t h = 0; h < m->dims[1]; h++) {
        struct moved part = rows_of(m, h, 1, 1);
        char stem[96];
        part.n_dims = 1;
        snprintf(stem, sizeof stem, "self_attn.%c_layernorm.norms.%d", p->stem[5], (int)h);
        set_name(w, &part, p, stem, ".weight");
        put_moved(w, &part);
    }
    free(m->data);
}

static bool permutes(const struct folder_writer *w) {
    return is(w, "llama") || is(w, "mistral3") || is(w, "granite") || is(w, "granitemoe") || is(w, "smollm3") ||
           is(w, "deepseek");
}

static void put_plain(struct folder_writer *w, struct moved *m, const struct place *p) {
    bool norm = strstr(p->stem, "norm") && !strncmp(w->architecture, "gemma", 5);
    bool query = !strcmp(p->stem, "attn_q"), key = !strcmp(p->stem, "attn_k");
    for (uint64_t i = 0; norm && i < count_of(m); i++) ((float *)m->data)[i] -= 1;
    if (permutes(w) && (query || key))
        unpermute(m, figure(w, query ? "attention.head_count" : "attention.head_count_kv"));
    if (!strcmp(p->stem, "ffn_gate_inp_shexp")) m->n_dims = 2;
    bool sinks = !strcmp(p->stem, "attn_sinks");
    set_name(w, m, p, renamed(w, p->stem), sinks ? "" : p->ending);
    put_matrix(w, m);
}

static const char *expert_pattern(const struct folder_writer *w, const char *stem) {
    bool mixtral = is(w, "llama");
    if (!strncmp(stem, "ffn_gate", 8)) return mixtral ? "block_sparse_moe.experts.%d.w1" : "mlp.experts.%d.gate_proj";
    if (!strncmp(stem, "ffn_up", 6)) return mixtral ? "block_sparse_moe.experts.%d.w3" : "mlp.experts.%d.up_proj";
    return mixtral ? "block_sparse_moe.experts.%d.w2" : "mlp.experts.%d.down_proj";
}

static void put_tensor(struct folder_writer *w, const struct gguf_tensor *t) {
    struct place p = place_of(t->name);
    bool stacked = strstr(p.stem, "_exps"), granite = is(w, "granitemoe") && strstr(p.stem, "exp");
    if (!strncmp(p.stem, "rope_factors", 12)) return; // are in config.json
    if (stacked && is(w, "gpt-oss")) {
        put_gpt_oss_experts(w, t, &p);
        return;
    }
    struct moved m = moved_from(t);
    if (granite && strcmp(p.stem, "ffn_down_shexp")) put_granite_experts(w, &m, &p);
    else if (!strcmp(p.stem, "ffn_gate_up_exps")) {
        uint64_t half = m.dims[1] / 2; // fused in GGUF only
        for (uint64_t e = 0; e < m.dims[2]; e++)
            for (int up = 0; up < 2; up++) {
                struct moved part = rows_of(&m, e * 2 * half + (up ? half : 0), 1, half);
                char stem[64];
                snprintf(stem, sizeof stem, up ? "mlp.experts.%d.up_proj" : "mlp.experts.%d.gate_proj", (int)e);
                set_name(w, &part, &p, stem, ".weight");
                put_moved(w, &part);
            }
        free(m.data);
    } else if (stacked) {
        put_experts(w, &m, &p, expert_pattern(w, p.stem));
        free(m.data);
    } else if (p.expert >= 0) {
        char stem[96];
        snprintf(stem, sizeof stem, expert_pattern(w, p.stem), p.expert);
        set_name(w, &m, &p, stem, ".weight");
        put_moved(w, &m);
    } else if (!strcmp(p.stem, "attn_qkv") && !is(w, "phi3")) put_split_qkv(w, &m, &p);
    else if (is(w, "stablelm") && strstr(p.stem, "_norm") && strstr(p.stem, "attn_") && m.n_dims == 2)
        put_head_norms(w, &m, &p);
    else put_plain(w, &m, &p);
}

// ---- config.json ----

// In the order in which they are tried; member NULL: said otherwise.
static const struct {
    const char *architecture, *key, *member;
} members[] = {
    {"llama", "expert_count", "num_local_experts"},
    {"gpt-oss", "expert_count", "num_local_experts"},
    {"gpt-oss", "expert_feed_forward_length", NULL},
    {"granitemoe", "expert_count", "num_local_experts"},
    {"granitemoe", "expert_shared_feed_forward_length", "shared_intermediate_size"},
    {"deepseek", "expert_count", "n_routed_experts"},
    {"exaone", "attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"exaone", "block_count", "num_layers"},
    {"granite", "logit_scale", "logits_scaling"},
    {"granitemoe", "logit_scale", "logits_scaling"},
    {"starcoder2", "attention.layer_norm_epsilon", "norm_epsilon"},
    {"command-r", "context_length", "model_max_length"},
    {"", "vocab_size", NULL},
    {"", "context_length", "max_position_embeddings"},
    {"", "embedding_length", "hidden_size"},
    {"", "block_count", "num_hidden_layers"},
    {"", "feed_forward_length", "intermediate_size"},
    {"", "attention.head_count", "num_attention_heads"},
    {"", "attention.head_count_kv", "num_key_value_heads"},
    {"", "attention.key_length", "head_dim"},
    {"", "attention.value_length", NULL},
    {"", "attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"", "attention.layer_norm_epsilon", "layer_norm_eps"},
    {"", "attention.sliding_window", "sliding_window"},
    {"", "attention.scale", "attention_multiplier"},
    {"", "attn_logit_softcapping", "attn_logit_softcapping"},
    {"", "final_logit_softcapping", "final_logit_softcapping"},
    {"", "embedding_scale", "embedding_multiplier"},
    {"", "residual_scale", "residual_multiplier"},
    {"", "logit_scale", "logit_scale"},
    {"", "use_parallel_residual", "use_parallel_residual"},
    {"", "expert_count", "num_experts"},
    {"", "expert_used_count", "num_experts_per_tok"},
    {"", "expert_feed_forward_length", "moe_intermediate_size"},
    {"", "expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"", "expert_shared_count", "n_shared_experts"},
    {"", "leading_dense_block_count", "first_k_dense_replace"},
    {"", "rope.freq_base", "rope_theta"},
    {"", "rope.dimension_count", NULL},
};

static const struct {
    const char *key, *member;
} scaling_members[] = {
    {"rope.scaling.factor", "factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.yarn_beta_fast", "beta_fast"},
    {"rope.scaling.yarn_beta_slow", "beta_slow"},
    {"rope.scaling.yarn_log_multiplier", "mscale_all_dim"},
    {"attention.temperature_scale", "llama_4_scaling_beta"},
};

// A float as the shortest decimal that gives it back, as people write them.
static json_t *json_number_of(const struct gguf_pair *p) {
    double value = gguf_number(p, 0);
    char text[32];
    if (p->type == GGUF_BOOL) return json_boolean(value != 0);
    if (p->type != GGUF_F32) return json_integer((json_int_t)value);
    for (int digits = 1; digits < 12; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value) break;
    }
    return json_real(strtod(text, NULL));
}

static double magnitude(double factor) { return factor > 1 ? 0.1 * log(factor) + 1 : 1; }

static void add_scaling(struct folder_writer *w, const char *key, const struct gguf_pair *p) {
    for (size_t i = 0; i < sizeof scaling_members / sizeof *scaling_members; i++)
        if (!strcmp(scaling_members[i].key, key))
            json_object_set_new(w->scaling, scaling_members[i].member, json_number_of(p));
    if (!strcmp(key, "rope.scaling.type"))
        json_object_set_new(w->scaling, "rope_type", json_stringn((const char *)p->data + 8, p->size - 8));
    if (!strcmp(key, "rope.scaling.yarn_log_multiplier")) json_object_set_new(w->scaling, "mscale", json_real(1));
    if (!strcmp(key, "rope.scaling.attn_factor")) { // what Hugging Face says includes what GGUF's readers multiply by
        char factor[64];
        snprintf(factor, sizeof factor, "%s.rope.scaling.factor", w->architecture);
        const struct gguf_pair *f = gguf_find(w->g, factor);
        double all = gguf_number(p, 0) * (f ? magnitude(gguf_number(f, 0)) : 1);
        json_object_set_new(w->scaling, "attention_factor", json_real(all));
    }
}

static void add_member(struct folder_writer *w, const struct gguf_pair *p) {
    char key[96];
    size_t prefix = strlen(w->architecture);
    snprintf(key, sizeof key, "%.*s", (int)p->key.size, p->key.data);
    if (strncmp(key, w->architecture, prefix) || key[prefix] != '.') return;
    const char *name = key + prefix + 1;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if ((*members[i].architecture && !is(w, members[i].architecture)) || strcmp(members[i].key, name)) continue;
        if (members[i].member) json_object_set_new(w->config, members[i].member, json_number_of(p));
        return;
    }
    if (strncmp(name, "rope.scaling.", 13) && strcmp(name, "attention.temperature_scale"))
        panic("no member for %s", key);
    add_scaling(w, name, p);
}

static void add_factors(struct folder_writer *w, const char *tensor, const char *member) {
    const struct gguf_tensor *t = gguf_tensor_find(w->g, tensor);
    json_t *list = json_array();
    for (uint64_t i = 0; t && i < t->dims[0]; i++)
        json_array_append_new(list, json_real((double)((const float *)t->data)[i]));
    if (t) {
        json_object_set(w->scaling, member, list);
        json_object_set_new(w->scaling, "type", json_string("longrope"));
    }
    json_decref(list);
}

static void add_partial_rotation(struct folder_writer *w) {
    uint64_t rotated = figure(w, "rope.dimension_count"), size = figure(w, "attention.key_length");
    if (!size) size = figure(w, "embedding_length") / figure(w, "attention.head_count");
    if (rotated && rotated != size)
        json_object_set_new(w->config, "partial_rotary_factor", json_real((double)rotated / (double)size));
}

static void write_config(struct folder_writer *w) {
    char path[256];
    const struct gguf_pair *tokens = gguf_find(w->g, "tokenizer.ggml.tokens");
    w->config = json_pack("{s:s, s:b, s:I}", "model_type", w->o.model_type, "tie_word_embeddings",
                          !gguf_tensor_find(w->g, "output.weight"), "vocab_size", (json_int_t)tokens->count);
    w->scaling = json_object();
    for (uint64_t i = 0; i < w->g->n_pairs; i++) add_member(w, &w->g->pairs[i]);
    add_partial_rotation(w);
    add_factors(w, "rope_factors_long.weight", "long_factor");
    add_factors(w, "rope_factors_short.weight", "short_factor");
    if (json_object_size(w->scaling))
        json_object_set(w->config, is(w, "mistral3") ? "rope_parameters" : "rope_scaling", w->scaling);
    if (w->o.quantisation == TINY_FP8_BLOCKS)
        json_object_set_new(w->config, "quantization_config",
                            json_pack("{s:s, s:[i,i]}", "quant_method", "fp8", "weight_block_size", 16, 32));
    snprintf(path, sizeof path, "%s/config.json", w->path);
    if (json_dump_file(w->config, path, JSON_INDENT(2))) panic("%s cannot be written", path);
    json_decref(w->config);
    json_decref(w->scaling);
}

// ---- the tokenizer ----

void tiny_huggingface_tokenizer(const char *folder, uint64_t n) {
    char path[256], text[16];
    json_t *vocabulary = json_object();
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
        text[utf8_encode(shown ? byte : next++, text)] = 0;
        json_object_set_new(vocabulary, text, json_integer(byte));
    }
    for (uint64_t i = 256; i < n; i++) {
        snprintf(text, sizeof text, "token%d", (int)i);
        json_object_set_new(vocabulary, text, json_integer((json_int_t)i));
    }
    json_t *split = json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                              "use_regex", 1);
    json_t *all = json_pack("{s:s, s:n, s:O, s:o, s:[], s:{s:s, s:o, s:[]}}", "version", "1.0", "normalizer",
                            "pre_tokenizer", split, "decoder", json_deep_copy(split), "added_tokens", "model", "type",
                            "BPE", "vocab", vocabulary, "merges");
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (json_dump_file(all, path, 0)) panic("%s cannot be written", path);
    json_decref(split);
    json_decref(all);
}

// ---- the folder ----

static void write_weights(struct folder_writer *w) {
    char path[256];
    w->map = json_object();
    for (uint64_t i = 0; i < w->g->n_tensors; i++) put_tensor(w, &w->g->tensors[i]);
    for (int i = 0; i < w->o.shards; i++) {
        snprintf(path, sizeof path, "%s/model-%05d-of-%05d.safetensors", w->path, i + 1, w->o.shards);
        safetensors_writer_save(&w->shards[i], path);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", w->path);
    if (!w->o.shards) safetensors_writer_save(&w->shards[0], path);
    else {
        json_t *index = json_pack("{s:{}, s:O}", "metadata", "weight_map", w->map);
        snprintf(path, sizeof path, "%s/model.safetensors.index.json", w->path);
        if (json_dump_file(index, path, 0)) panic("%s cannot be written", path);
        json_decref(index);
    }
    json_decref(w->map);
}

void tiny_huggingface_write(const char *folder, const struct gguf *g, struct tiny_huggingface_options options) {
    struct status st;
    struct span architecture;
    struct folder_writer w = {.path = folder, .g = g, .o = options};
    if (options.shards > SHARDS_MAX || !gguf_get_string(g, "general.architecture", GGUF_REQUIRED, &architecture, &st))
        panic("cannot be written to a folder");
    char *name = span_copy(architecture);
    w.architecture = name;
    write_config(&w);
    tiny_huggingface_tokenizer(folder, gguf_find(g, "tokenizer.ggml.tokens")->count);
    write_weights(&w);
    free(name);
}

void tiny_huggingface_remove(const char *folder) {
    DIR *files = opendir(folder);
    char path[512];
    for (struct dirent *file; files && (file = readdir(files));) {
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        if (file->d_name[0] != '.') unlink(path);
    }
    if (files) closedir(files);
    rmdir(folder);
}
