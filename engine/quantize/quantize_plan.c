#include "engine/quantize/quantize_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/quantize.h"

static const struct quantize_type types[] = {
#define X(name, format, file_type, mix, help) {name, format, file_type, mix},
    QUANTIZE_TYPES(X)
#undef X
};
enum { N_TYPES = sizeof types / sizeof *types };

const struct quantize_type *quantize_type_find(const char *name, struct status *st) {
    for (int i = 0; i < N_TYPES; i++)
        if (!strcasecmp(types[i].name, name)) return &types[i];
#define X(type, ...) " " type
    status_fail(st, STATUS_USAGE, "unknown type '%s' (supported:" QUANTIZE_TYPES(X) ")", name);
#undef X
    return NULL;
}

// ---- the model ----

enum { LAYERS_LIMIT = 1 << 16 };

int quantize_layer_of(struct span name) {
    char text[16] = "", *end;
    if (name.size < 6 || memcmp(name.data, "blk.", 4)) return -1;
    snprintf(text, sizeof text, "%.*s", (int)(name.size - 4), name.data + 4);
    long layer = strtol(text, &end, 10);
    return end != text && *end == '.' && layer >= 0 && layer < LAYERS_LIMIT ? (int)layer : -1;
}

// The value of "<architecture>.name"; 0 if missing or out of range.
static int64_t family_number(const struct gguf *g, const char *name) {
    struct span family = {"", 0};
    struct status ignored;
    char key[128];
    int64_t value = 0;
    gguf_get_string(g, "general.architecture", GGUF_OPTIONAL, &family, &ignored);
    snprintf(key, sizeof key, "%.*s.%s", family.size < 64 ? (int)family.size : 64, family.data, name);
    gguf_get_int(g, key, GGUF_OPTIONAL, 0, INT32_MAX, &value, &ignored);
    return value;
}

struct quantize_plan quantize_plan_make(const struct gguf *g, const struct quantize_type *type) {
    struct quantize_plan p = {.type = type, .tied = !gguf_tensor_find(g, "output.weight")};
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        int layer = quantize_layer_of(g->tensors[i].name);
        if (layer >= p.n_layers) p.n_layers = layer + 1;
    }
    int64_t heads = family_number(g, "attention.head_count"), kv = family_number(g, "attention.head_count_kv");
    p.n_experts = (int)family_number(g, "expert_count");
    p.shared_heads = kv && kv < heads;
    return p;
}

// ---- mixes ----
//
// The same mixes as other quantizers write under these names.

static bool everywhere(const struct quantize_plan *p, int layer) { return (void)p, (void)layer, true; }
// The first and the last eighth of the layers, and every third in between.
static bool spread(const struct quantize_plan *p, int layer) {
    int n = p->n_layers, eighth = n / 8;
    return layer < eighth || layer >= 7 * n / 8 || (layer - eighth) % 3 == 2;
}
static bool first_eighth(const struct quantize_plan *p, int layer) { return layer < p->n_layers / 8; }
static bool first_four(const struct quantize_plan *p, int layer) { return (void)p, layer < 4; }
// With eight experts the attention matrices are comparatively small, so they can afford more bits.
static bool eight_experts(const struct quantize_plan *p, int layer) { return (void)layer, p->n_experts == 8; }
// Likewise attn_v of a 70B model: eighty layers with shared KV heads.
static bool seventy_billion(const struct quantize_plan *p, int layer) {
    return (void)layer, p->n_layers == 80 && p->shared_heads;
}

// The first matching rule applies.
static const struct {
    const char *part; // prefix of the name without "blk.N."
    bool (*where)(const struct quantize_plan *p, int layer);
    enum block_id format[MIX_COUNT]; // 0: rule does not apply to this mix
} rules[] = {
    {"output.", everywhere, {[MIX_Q4_K_S] = BLOCK_Q6_K, [MIX_Q4_K_M] = BLOCK_Q6_K, [MIX_Q5_K_M] = BLOCK_Q6_K}},
    {"attn_v.", eight_experts, {[MIX_Q4_K_S] = BLOCK_Q8_0, [MIX_Q4_K_M] = BLOCK_Q8_0, [MIX_Q5_K_M] = BLOCK_Q8_0}},
    {"attn_k.", eight_experts, {[MIX_Q4_K_S] = BLOCK_Q8_0, [MIX_Q4_K_M] = BLOCK_Q8_0, [MIX_Q5_K_M] = BLOCK_Q8_0}},
    {"attn_output.", eight_experts, {[MIX_Q4_K_S] = BLOCK_Q5_K, [MIX_Q4_K_M] = BLOCK_Q5_K}},
    {"attn_v.", spread, {[MIX_Q4_K_M] = BLOCK_Q6_K, [MIX_Q5_K_M] = BLOCK_Q6_K}},
    {"attn_v.", first_four, {[MIX_Q4_K_S] = BLOCK_Q5_K}},
    {"attn_v.", seventy_billion, {[MIX_Q4_K_S] = BLOCK_Q5_K, [MIX_Q4_K_M] = BLOCK_Q5_K}},
    {"attn_qkv.", spread, {[MIX_Q4_K_M] = BLOCK_Q6_K, [MIX_Q5_K_M] = BLOCK_Q6_K}},
    {"attn_qkv.", first_four, {[MIX_Q4_K_S] = BLOCK_Q5_K}},
    {"ffn_down", spread, {[MIX_Q4_K_M] = BLOCK_Q6_K, [MIX_Q5_K_M] = BLOCK_Q6_K}}, // and experts
    {"ffn_down", first_eighth, {[MIX_Q4_K_S] = BLOCK_Q5_K}},
};

static struct span without_layer(struct span name) {
    if (quantize_layer_of(name) < 0) return name;
    const char *dot = memchr(name.data + 4, '.', name.size - 4);
    return (struct span){dot + 1, name.size - (size_t)(dot + 1 - name.data)};
}

static bool begins(struct span s, const char *text) {
    size_t size = strlen(text);
    return s.size >= size && !memcmp(s.data, text, size);
}

static enum block_id mixed_format(const struct quantize_plan *p, struct span name) {
    int layer = quantize_layer_of(name);
    struct span part = without_layer(name);
    if (p->tied && span_equals(name, "token_embd.weight")) part = (struct span){"output.weight", 13};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].format[p->type->mix] && begins(part, rules[i].part) && rules[i].where(p, layer))
            return rules[i].format[p->type->mix];
    return p->type->format;
}

// ---- one tensor ----

// Whether the tensor is a matmul weight. Everything else is small and sensitive, and stays F32.
static bool is_matrix(const struct gguf_tensor *t) {
    static const char *const kept[] = {"ffn_gate_inp", "position_embd", "token_types", "ssm_conv1d", "time_mix_"};
    const char suffix[] = ".weight", norm[] = "norm.weight";
    struct span part = without_layer(t->name);
    if (t->n_dims < 2 || part.size < sizeof suffix || memcmp(part.data + part.size - 7, suffix, 7)) return false;
    if (part.size >= sizeof norm - 1 && !memcmp(part.data + part.size - 11, norm, 11)) return false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (begins(part, kept[i])) return false;
    return true;
}

// The substitute with blocks of 32, and at least as many bits, if rows do not fill blocks of 256.
static enum block_id smaller_blocks(enum block_id format) {
    switch (format) {
    case BLOCK_Q4_K: return BLOCK_Q5_0;
    case BLOCK_Q5_K: return BLOCK_Q5_1;
    case BLOCK_Q6_K: return BLOCK_Q8_0;
    default: return BLOCK_IQ4_NL; // Q2_K, Q3_K, IQ4_XS
    }
}

struct quantize_choice quantize_plan_choose(const struct quantize_plan *p, const struct gguf_tensor *t) {
    if (!is_matrix(t))
        return (struct quantize_choice){&block_formats[BLOCK_F32], p->type->format == BLOCK_F32 ? "" : "kept"};
    const struct block_format *f = &block_formats[mixed_format(p, t->name)];
    const char *note = f->id == p->type->format ? "" : "mix";
    if (t->dims[0] % f->elements && f->elements == 256) {
        f = &block_formats[smaller_blocks(f->id)];
        note = "rows are not a multiple of 256";
    }
    if (t->dims[0] % f->elements) {
        f = &block_formats[BLOCK_F16];
        note = "rows are not a multiple of 32";
    }
    return (struct quantize_choice){f, note};
}
