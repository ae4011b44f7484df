// Describes a model for people: its tensors, its spec (its keys if it cannot run), vocabulary, template and recommended
// sampling.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/opened_model.h"

// ---- names ----

static const char *display_name(struct model_file *m, struct span text) {
    char clean[160];
    size_t size = display_clean(text, clean, sizeof clean);
    return arena_copy(&m->arena, clean, size);
}

static struct span base_name(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return span_of(base);
}

// ---- tensors ----

static int compare_shares(const void *a, const void *b) {
    const struct format_share *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void describe_tensors(struct model_file *m) {
    struct format_share *shares = arena_alloc(&m->arena, BLOCK_FORMAT_COUNT * sizeof *shares);
    for (int i = 0; i < BLOCK_FORMAT_COUNT; i++) shares[i].name = block_formats[i].name;
    for (uint64_t i = 0; i < m->gguf.n_tensors; i++) {
        const struct gguf_tensor *t = &m->gguf.tensors[i];
        shares[t->format->id].tensors++;
        shares[t->format->id].bytes += t->size;
        m->info.weight_bytes += t->size;
        m->info.n_parameters += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
    qsort(shares, BLOCK_FORMAT_COUNT, sizeof *shares, compare_shares);
    while (m->info.n_formats < BLOCK_FORMAT_COUNT && shares[m->info.n_formats].bytes) m->info.n_formats++;
    m->info.formats = shares;
}

// ---- keys ----

enum { SHOWN_MAX = 1 << 20 };

// A number for display; 0 if missing or out of range.
static int shown_number(const struct model_file *m, const char *name, int64_t maximum) {
    char key[128];
    int64_t value = 0;
    struct status ignored;
    snprintf(key, sizeof key, "%.60s.%s", m->info.family, name);
    gguf_get_int(&m->gguf, key, GGUF_OPTIONAL, 0, maximum, &value, &ignored);
    return (int)value;
}

// For a model that cannot run.
static void describe_keys(struct model_file *m) {
    struct model_info *i = &m->info;
    char key[128];
    struct status ignored;
    i->n_layer = shown_number(m, "block_count", SHOWN_MAX);
    i->n_embd = shown_number(m, "embedding_length", SHOWN_MAX);
    i->n_head = shown_number(m, "attention.head_count", SHOWN_MAX);
    i->n_head_kv = shown_number(m, "attention.head_count_kv", SHOWN_MAX);
    if (!i->n_head_kv) i->n_head_kv = i->n_head;
    i->head_size = shown_number(m, "attention.key_length", SHOWN_MAX);
    if (!i->head_size && i->n_head) i->head_size = i->n_embd / i->n_head;
    i->n_ff = shown_number(m, "feed_forward_length", SHOWN_MAX);
    i->n_context = shown_number(m, "context_length", INT32_MAX);
    snprintf(key, sizeof key, "%.60s.rope.freq_base", i->family);
    gguf_get_float(&m->gguf, key, GGUF_OPTIONAL, 0, 1e30, &i->rope_base, &ignored);
}

// ---- spec ----

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

// The share of float weights in the matmuls of a token: experts count by how often they are chosen; an untied embedding
// is only looked up.
static double float_share(const struct model *m, const struct gguf *g) {
    const struct expert_spec *e = &m->spec.experts;
    double floats = 0, all = 0;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        if (t->n_dims < 2 || (!m->tied && t->data == m->token_embd.data)) continue;
        const double chosen = t->n_dims == 3 && e->count ? (double)e->used / e->count : 1;
        const double weights = chosen * (double)t->dims[0] * (double)t->dims[1] * (double)t->dims[2];
        all += weights;
        if (t->format->elements == 1) floats += weights;
    }
    return all > 0 ? floats / all : 0;
}

// Where the info has one value for all layers, it is the largest.
static void describe_spec(struct model_file *m) {
    struct model_info *out = &m->info;
    const struct model_spec *s = &m->model.spec;
    out->n_layer = s->n_layer, out->n_embd = s->n_embd, out->n_context = s->n_context, out->head_size = s->head_size;
    out->tied = m->model.tied;
    out->n_ff = s->experts.n_ff;
    out->float_share = float_share(&m->model, &m->gguf);
    describe_rope(&out->rope, &m->model);
    out->experts = (struct expert_info){s->experts.count, s->experts.used, s->experts.n_ff, s->experts.n_ff_shared, 0};
    for (int i = 0; i < s->n_layer; i++) {
        const struct layer_spec *l = &s->layers[i];
        widen(&out->heads, l->n_head, i == 0);
        widen(&out->kv_heads, l->n_head_kv, i == 0);
        if (l->n_ff > out->n_ff) out->n_ff = l->n_ff;
        out->experts.n_layer += l->experts;
        out->rope.n_layer += l->rope != ROPE_TABLE_NONE;
        if (!l->window) continue;
        out->n_windowed++;
        if (l->window > out->window) out->window = l->window;
    }
    out->n_head = out->heads.most, out->n_head_kv = out->kv_heads.most, out->rope_base = out->rope.base;
}

// ---- vocabulary and template ----

// Special tokens for `show`: role, and key without "tokenizer.ggml.".
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

// The id of this role, from the file or the default of its tokenizer; −1: none.
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

// In one line: "chatml", "own", "chatml (own template rejected: …)".
static const char *template_line(struct model_file *m) {
    const struct model_info *i = &m->info;
    if (*i->template_problem)
        return arena_printf(&m->arena, "%s (own template rejected: %s)", i->template_kind, i->template_problem);
    return i->template_own && m->chat_template == CHAT_TEMPLATE_NONE ? "own" : i->template_kind;
}

static void describe_text(struct model_file *m) {
    bool rejected = m->template_status.code != STATUS_OK;
    m->info.n_vocab = tokenizer_count(m->tokenizer);
    m->info.tokenizer = tokenizer_model_name(m->tokenizer);
    m->info.pre_tokenizer = tokenizer_pre_name(m->tokenizer);
    m->info.template_kind = chat_template_name(m->chat_template);
    m->info.template_own = m->template_text.data && !rejected;
    m->info.template_problem = rejected ? m->template_status.text : "";
    m->info.chat_template = template_line(m);
    describe_special(m);
    describe_thinking(m);
}

// Values are clamped to the range of their knob; a window of −1 means all tokens.
static void describe_sampling(struct model_file *m) {
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

// ---- the whole ----

void model_describe(struct model_file *m, const char *name) {
    struct model_info *i = &m->info;
    struct status ignored;
    struct span title = base_name(name), family = {"unknown", 7};
    if (!gguf_get_string(&m->gguf, "general.name", GGUF_OPTIONAL, &title, &ignored) || !title.size)
        title = base_name(name);
    gguf_get_string(&m->gguf, "general.architecture", GGUF_OPTIONAL, &family, &ignored);
    i->path = arena_copy(&m->arena, name, strlen(name));
    i->name = display_name(m, title);
    i->family = display_name(m, family);
    if (m->tokenizer) describe_text(m);
    else i->tokenizer = i->pre_tokenizer = i->chat_template = i->template_kind = i->template_problem = i->thinking = "";
    i->weight_problem = i->has_weights ? "" : m->weight_status.text;
    describe_sampling(m);
    describe_tensors(m);
    if (i->has_weights) describe_spec(m);
    else describe_keys(m);
}
