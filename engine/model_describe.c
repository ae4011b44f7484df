// What a model is, in words and figures for people: of its spec, and of its vocabulary, template and recommended
// sampling.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model_file.h"

static void widen(struct range_info *r, int value, bool first) {
    if (first || value < r->least) r->least = value;
    if (first || value > r->most) r->most = value;
}

static void describe_rope(struct rope_info *out, const struct model *m) {
    static const char *const pairs[] = {[ROPE_NORM] = "adjacent", [ROPE_NEOX] = "halves"};
    static const char *const scalings[] = {
        [ROPE_SCALING_LINEAR] = "linear", [ROPE_SCALING_YARN] = "yarn", [ROPE_SCALING_LONG] = "long"};
    const struct rope_spec *r = &m->spec.rope;
    bool unscaled = r->scaling == ROPE_SCALING_LINEAR && r->factor == 1;
    const char *plain = m->rope_freqs.format ? "by frequency" : "none";
    *out = (struct rope_info){.pairs = pairs[r->kind],
                              .n_rot = r->n_rot,
                              .base = r->base[ROPE_TABLE_FULL],
                              .base_sliding = r->base[ROPE_TABLE_SLIDING],
                              .scaling = unscaled ? plain : scalings[r->scaling],
                              .factor = r->factor,
                              .original_context = r->original_context};
}

// Bytes that a token takes in the KV cache.
static uint64_t token_bytes(const struct model_file *m) {
    struct engine_params page = {.kv_tokens = KV_PAGE_TOKENS};
    struct model_memory memory;
    return model_file_memory(m, &page, 0, &memory, NULL) ? memory.kv / KV_PAGE_TOKENS : 0;
}

void model_describe_spec(struct model_file *m) {
    struct model_info *out = &m->info;
    const struct model_spec *s = &m->model.spec;
    out->kv_bytes_per_token = token_bytes(m);
    describe_rope(&out->rope, &m->model);
    out->experts = (struct expert_info){s->experts.count, s->experts.used, s->experts.n_ff, s->experts.n_ff_shared, 0};
    for (int i = 0; i < s->n_layer; i++) {
        const struct layer_spec *l = &s->layers[i];
        widen(&out->heads, l->n_head, i == 0);
        widen(&out->kv_heads, l->n_head_kv, i == 0);
        out->experts.n_layer += l->experts;
        out->rope.n_layer += l->rope != ROPE_TABLE_NONE;
        if (!l->window) continue;
        out->n_windowed++;
        if (l->window > out->window) out->window = l->window;
    }
}

// ---- vocabulary and template ----

static const struct {
    const char *role, *key;
} special_keys[] = {
    {"bos", "bos_token_id"},
    {"eos", "eos_token_id"},
    {"eot", "eot_token_id"},
    {"eom", "eom_token_id"},
    {"unknown", "unknown_token_id"},
    {"padding", "padding_token_id"},
    {"separator", "seperator_token_id"},
    {"mask", "mask_token_id"},
    {"cls", "cls_token_id"},
    {"fim_pre", "fim_pre_token_id"},
    {"fim_suf", "fim_suf_token_id"},
    {"fim_mid", "fim_mid_token_id"},
};
enum { SPECIAL_KEYS = sizeof special_keys / sizeof *special_keys };

// The file's id of this role, or what its kind of vocabulary has for it; −1: none.
static int32_t special_id(const struct model_file *m, int role) {
    char key[64];
    int64_t id = -1;
    struct status ignored;
    snprintf(key, sizeof key, "tokenizer.ggml.%s", special_keys[role].key);
    gguf_get_int(&m->gguf, key, GGUF_OPTIONAL, -1, INT32_MAX, &id, &ignored);
    if (id < 0 && role == 0) id = tokenizer_bos(m->tokenizer);
    if (id < 0 && role == 1) id = tokenizer_eos(m->tokenizer);
    return id < tokenizer_count(m->tokenizer) ? (int32_t)id : -1;
}

static const char *token_text(struct model_file *m, int32_t id) {
    char clean[80];
    size_t size = display_clean(tokenizer_piece(m->tokenizer, id, true), clean, sizeof clean);
    return arena_copy(&m->arena, clean, size);
}

static void describe_special(struct model_file *m) {
    struct special_token *all = arena_alloc(&m->arena, SPECIAL_KEYS * sizeof *all);
    for (int role = 0; role < SPECIAL_KEYS; role++) {
        int32_t id = special_id(m, role);
        if (id >= 0) all[m->info.n_special++] = (struct special_token){special_keys[role].role, id, token_text(m, id)};
    }
    m->info.special = all;
    m->info.adds_bos = tokenizer_adds_bos(m->tokenizer);
}

static void describe_thinking(struct model_file *m) {
    bool own = m->template && m->template_status.code == STATUS_OK;
    m->info.thinking = channel_name(&m->channels);
    m->info.chooses_thinking =
        own && (jinja_uses(m->template, "enable_thinking") || jinja_uses(m->template, "thinking"));
    m->info.chooses_effort = own ? jinja_uses(m->template, "reasoning_effort") : chat_template_effort(m->chat_template);
}

void model_describe_text(struct model_file *m) {
    bool refused = m->template_status.code != STATUS_OK;
    m->info.template_kind = chat_template_name(m->chat_template);
    m->info.template_own = m->template_text.data && !refused;
    m->info.template_problem = refused ? m->template_status.text : "";
    describe_special(m);
    describe_thinking(m);
}

// What is out of a knob's range is moved into it; a window of −1 tokens means all of them.
void model_describe_sampling(struct model_file *m) {
    static const struct {
        const char *key;
        enum sampling_knob_id knob;
    } keys[] = {
        {"general.sampling.temp", KNOB_temperature},
        {"general.sampling.top_p", KNOB_top_p},
        {"general.sampling.top_k", KNOB_top_k},
        {"general.sampling.min_p", KNOB_min_p},
        {"general.sampling.penalty_repeat", KNOB_repeat_penalty},
        {"general.sampling.penalty_last_n", KNOB_penalty_window},
    };
    m->info.sampling = sampling_default();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        enum sampling_knob_id knob = keys[i].knob;
        const struct gguf_pair *pair = gguf_find(&m->gguf, keys[i].key);
        if (!pair || pair->type == GGUF_BOOL || pair->type == GGUF_STRING || pair->type == GGUF_ARRAY) continue;
        double value = gguf_number(pair, 0);
        if (isnan(value)) continue;
        if (knob == KNOB_penalty_window && value < 0) value = sampling_knobs[knob].high;
        sampling_set(&m->info.sampling, knob, value);
        m->info.sampling_given |= 1u << knob;
    }
}
