// Fills a struct model_spec from the keys of a file and the defaults of its family.
#include "engine/model/model_spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// State while reading the keys of a file.
struct spec_reader {
    const struct gguf *g;
    const struct model_family *family;
    struct model_spec *spec;
    struct layer_spec *layers; // spec->layers, writable
    char key[96];              // the last key read, "<architecture>.<name>"
    struct status *st;
};

static const char *key_of(struct spec_reader *r, const char *name) {
    snprintf(r->key, sizeof r->key, "%s.%s", r->family->architecture, name);
    return r->key;
}

static bool read_int(struct spec_reader *r, const char *name, enum gguf_need need, int low, int high, int *out) {
    int64_t value = *out; // unchanged if an optional key is absent
    if (!gguf_get_int(r->g, key_of(r, name), need, low, high, &value, r->st)) return false;
    *out = (int)value;
    return true;
}

static bool read_float(struct spec_reader *r, const char *name, enum gguf_need need, double low, double high,
                       float *out) {
    return gguf_get_float(r->g, key_of(r, name), need, low, high, out, r->st);
}

// A scale; 0 means none and leaves *out alone.
static bool read_scale(struct spec_reader *r, const char *name, float *out) {
    float value = 0;
    if (!read_float(r, name, GGUF_OPTIONAL, 0, 1e6, &value)) return false;
    if (value > 0) *out = value;
    return true;
}

// ---- values per layer ----

static bool is_number_array(const struct gguf_pair *p) {
    return p->element != GGUF_STRING && p->element != GGUF_BOOL && p->element != GGUF_F32 && p->element != GGUF_F64;
}

static bool check_count(struct spec_reader *r, const struct gguf_pair *p) {
    return p->count == (uint64_t)r->spec->n_layer ||
           status_fail(r->st, STATUS_FORMAT, "%s: %s has %llu values for %d layers", r->g->path, r->key,
                       (unsigned long long)p->count, r->spec->n_layer);
}

// One value for all layers, or an array with one per layer. `field`: its offset in struct layer_spec.
static bool read_layers(struct spec_reader *r, const char *name, enum gguf_need need, int high, size_t field) {
    const struct gguf_pair *p = gguf_find(r->g, key_of(r, name));
    const bool array = p && p->type == GGUF_ARRAY;
    int all = 0;
    if (array && !is_number_array(p))
        return status_fail(r->st, STATUS_FORMAT, "%s: %s: expected an array of integers", r->g->path, r->key);
    if (array ? !check_count(r, p) : !read_int(r, name, need, 1, high, &all)) return false;
    for (int i = 0; i < r->spec->n_layer; i++) {
        double value = array ? gguf_number(p, (uint64_t)i) : all;
        if (array && (value < 1 || value > high))
            return status_fail(r->st, STATUS_FORMAT, "%s: %s: %.0f in layer %d is out of range (1 to %d)", r->g->path,
                               r->key, value, i, high);
        *(int *)((char *)&r->layers[i] + field) = (int)value;
    }
    return true;
}

// ---- sizes ----

// Within these limits, products of two of them fit in an int64, and each times the rows of a batch in an int.
static bool read_sizes(struct spec_reader *r, struct arena *arena) {
    struct model_spec *s = r->spec;
    if (!read_int(r, "block_count", GGUF_REQUIRED, 1, 1024, &s->n_layer) ||
        !read_int(r, "context_length", GGUF_REQUIRED, 1, 1 << 24, &s->n_context) ||
        !read_int(r, "embedding_length", GGUF_REQUIRED, 1, 1 << 16, &s->n_embd))
        return false;
    s->layers = r->layers = arena_alloc(arena, (size_t)s->n_layer * sizeof *r->layers);
    return read_layers(r, "feed_forward_length", GGUF_OPTIONAL, 1 << 19, offsetof(struct layer_spec, n_ff)) &&
           read_layers(r, "attention.head_count", GGUF_REQUIRED, 1024, offsetof(struct layer_spec, n_head)) &&
           read_layers(r, "attention.head_count_kv", GGUF_OPTIONAL, 1024, offsetof(struct layer_spec, n_head_kv));
}

static bool read_heads(struct spec_reader *r) {
    struct model_spec *s = r->spec;
    const int n_head = r->layers[0].n_head;
    if (!read_int(r, "attention.key_length", GGUF_OPTIONAL, 2, 1024, &s->head_size)) return false;
    if (!s->head_size && s->n_embd % n_head)
        return status_fail(r->st, STATUS_FORMAT, "%s: embedding size %d is not a multiple of %d heads", r->g->path,
                           s->n_embd, n_head);
    if (!s->head_size) s->head_size = s->n_embd / n_head;
    if (s->head_size > 1024 || s->head_size % 2)
        return status_fail(r->st, STATUS_FORMAT, "%s: head size %d is not an even number up to 1024", r->g->path,
                           s->head_size);
    int value_size = s->head_size;
    if (!read_int(r, "attention.value_length", GGUF_OPTIONAL, 1, 1024, &value_size)) return false;
    if (value_size != s->head_size)
        return status_fail(r->st, STATUS_UNSUPPORTED,
                           "%s: key and value heads of different sizes (%d and %d) are not supported", r->g->path,
                           s->head_size, value_size);
    for (int i = 0; i < s->n_layer; i++) {
        struct layer_spec *l = &r->layers[i];
        if (!l->n_head_kv) l->n_head_kv = l->n_head;
        if (l->n_head % l->n_head_kv)
            return status_fail(r->st, STATUS_FORMAT, "%s: %d heads are not a multiple of %d KV heads", r->g->path,
                               l->n_head, l->n_head_kv);
    }
    return true;
}

// ---- experts ----

static bool read_expert_sizes(struct spec_reader *r, int *n_dense) {
    struct expert_spec *e = &r->spec->experts;
    const int n_ff = r->layers[0].n_ff;
    int n_shared = 0;
    if (!read_int(r, "expert_used_count", GGUF_REQUIRED, 1, e->count, &e->used) ||
        !read_int(r, "leading_dense_block_count", GGUF_OPTIONAL, 0, r->spec->n_layer, n_dense) ||
        !read_int(r, "expert_feed_forward_length", GGUF_OPTIONAL, 0, 1 << 19, &e->n_ff) ||
        !read_int(r, "expert_shared_feed_forward_length", GGUF_OPTIONAL, 0, 1 << 19, &e->n_ff_shared) ||
        !read_int(r, "expert_shared_count", GGUF_OPTIONAL, 0, 64, &n_shared))
        return false;
    if (!e->n_ff) e->n_ff = r->family->splits_n_ff ? n_ff / e->used : n_ff;
    if (!e->n_ff)
        return status_fail(r->st, STATUS_FORMAT, "%s: missing key %s", r->g->path,
                           key_of(r, "expert_feed_forward_length"));
    if (!e->n_ff_shared) e->n_ff_shared = n_shared * e->n_ff;
    if (!e->n_ff_shared && r->family->needs & PART_SHARED_EXPERT) e->n_ff_shared = n_ff;
    return true;
}

static bool read_experts(struct spec_reader *r) {
    struct expert_spec *e = &r->spec->experts;
    const bool needed = r->family->needs & PART_EXPERTS, known = needed || r->family->allows & PART_EXPERTS;
    int n_dense = 0, gating = r->family->gating;
    if (!read_int(r, "expert_count", needed ? GGUF_REQUIRED : GGUF_OPTIONAL, needed, 1024, &e->count)) return false;
    if (!e->count) return true;
    if (!known)
        return status_fail(r->st, STATUS_UNSUPPORTED, "%s: %s: %d is not supported (this family has no experts)",
                           r->g->path, r->key, e->count);
    e->normalise = r->family->normalises_experts;
    e->scale = 1;
    if (!read_expert_sizes(r, &n_dense) ||
        !read_int(r, "expert_gating_func", GGUF_OPTIONAL, EXPERT_GATING_SOFTMAX, EXPERT_GATING_SOFTMAX_CHOSEN,
                  &gating) ||
        !gguf_get_bool(r->g, key_of(r, "expert_weights_norm"), &e->normalise, r->st) ||
        !read_scale(r, "expert_weights_scale", &e->scale))
        return false;
    e->gating = (enum expert_gating)gating;
    for (int i = n_dense; i < r->spec->n_layer; i++) r->layers[i].experts = true;
    return true;
}

static bool check_feed_forward(struct spec_reader *r) {
    for (int i = 0; i < r->spec->n_layer; i++) {
        struct layer_spec *l = &r->layers[i];
        if (l->experts) l->n_ff = 0;
        else if (!l->n_ff)
            return status_fail(r->st, STATUS_FORMAT, "%s: missing key %s", r->g->path,
                               key_of(r, "feed_forward_length"));
    }
    return true;
}

// ---- windows ----

// Which layers slide: by the file's array of bools, the file's period or the family's period.
static bool read_windows(struct spec_reader *r) {
    int window = r->family->window, period = r->family->window_period;
    if (!r->family->slides) return true;
    if (!read_int(r, "attention.sliding_window", GGUF_OPTIONAL, 0, INT32_MAX, &window)) return false;
    const struct gguf_pair *p = gguf_find(r->g, key_of(r, "attention.sliding_window_pattern"));
    const bool array = p && p->type == GGUF_ARRAY;
    if (array && p->element != GGUF_BOOL && !is_number_array(p))
        return status_fail(r->st, STATUS_FORMAT, "%s: %s: expected an array of bools", r->g->path, r->key);
    if (array ? !check_count(r, p) : !read_int(r, "attention.sliding_window_pattern", GGUF_OPTIONAL, 0, 1024, &period))
        return false;
    for (int i = 0; i < r->spec->n_layer; i++) {
        bool slides = array ? gguf_number(p, (uint64_t)i) != 0 : !period || i % period < period - 1;
        if (slides) r->layers[i].window = window;
    }
    return true;
}

// ---- RoPE ----

static bool read_scaling_type(struct spec_reader *r) {
    static const struct {
        const char *name;
        enum rope_scaling scaling;
    } types[] = {{"none", ROPE_SCALING_LINEAR}, // with factor 1
                 {"linear", ROPE_SCALING_LINEAR},
                 {"yarn", ROPE_SCALING_YARN},
                 {"longrope", ROPE_SCALING_LONG}};
    struct span type = {"linear", 6}; // the default
    if (!gguf_get_string(r->g, key_of(r, "rope.scaling.type"), GGUF_OPTIONAL, &type, r->st)) return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!span_equals(type, types[i].name)) continue;
        r->spec->rope.scaling = types[i].scaling;
        if (i == 0) r->spec->rope.factor = 1;
        return true;
    }
    return status_fail(r->st, STATUS_UNSUPPORTED,
                       "%s: %s: unsupported type '%.*s' (expected none, linear, yarn or longrope)", r->g->path, r->key,
                       type.size < 64 ? (int)type.size : 64, type.data);
}

// Keeps the entropy of attention when positions are closer together: 0.1 × multiplier × ln(factor) + 1.
static float yarn_magnitude(float factor, float multiplier) {
    return factor > 1 ? 0.1f * multiplier * logf(factor) + 1 : 1;
}

static bool read_yarn(struct spec_reader *r) {
    struct rope_spec *rope = &r->spec->rope;
    float multiplier = 0; // "mscale_all_dim", applied to the attention scale elsewhere
    rope->beta_fast = 32, rope->beta_slow = 1;
    if (!read_scale(r, "rope.scaling.yarn_beta_fast", &rope->beta_fast) ||
        !read_scale(r, "rope.scaling.yarn_beta_slow", &rope->beta_slow) ||
        !read_scale(r, "rope.scaling.yarn_log_multiplier", &multiplier))
        return false;
    if (rope->scaling != ROPE_SCALING_YARN) return true;
    rope->magnitude *= yarn_magnitude(rope->factor, 1);
    if (multiplier > 0) rope->magnitude /= yarn_magnitude(rope->factor, multiplier);
    return true;
}

static bool read_scaling(struct spec_reader *r) {
    struct rope_spec *rope = &r->spec->rope;
    rope->factor = rope->magnitude = 1;
    rope->original_context = r->spec->n_context;
    rope->scales_sliding = !r->family->sliding_unscaled;
    return read_scale(r, "rope.scale_linear", &rope->factor) && read_scale(r, "rope.scaling.factor", &rope->factor) &&
           read_scale(r, "rope.scaling.attn_factor", &rope->magnitude) &&
           read_int(r, "rope.scaling.original_context_length", GGUF_OPTIONAL, 1, 1 << 24, &rope->original_context) &&
           read_scaling_type(r) && read_yarn(r);
}

static bool read_rope(struct spec_reader *r) {
    struct model_spec *s = r->spec;
    float *base = s->rope.base;
    bool rotates = true;
    s->rope.kind = r->family->rope;
    s->rope.n_rot = s->head_size;
    base[ROPE_TABLE_FULL] = 10000;
    if (!read_int(r, "rope.dimension_count", GGUF_OPTIONAL, 2, 1024, &s->rope.n_rot)) return false;
    if (s->rope.n_rot > s->head_size || s->rope.n_rot % 2)
        return status_fail(r->st, STATUS_FORMAT, "%s: %s: %d is not an even number up to %d", r->g->path, r->key,
                           s->rope.n_rot, s->head_size);
    if (!read_float(r, "rope.freq_base", GGUF_OPTIONAL, 1, 1e12, &base[ROPE_TABLE_FULL])) return false;
    base[ROPE_TABLE_SLIDING] = r->family->base_sliding > 0 ? r->family->base_sliding : base[ROPE_TABLE_FULL];
    if (!read_float(r, "rope.freq_base_swa", GGUF_OPTIONAL, 1, 1e12, &base[ROPE_TABLE_SLIDING]) ||
        (r->family->finetuned_is_rope && !gguf_get_bool(r->g, key_of(r, "rope.scaling.finetuned"), &rotates, r->st)) ||
        !read_scaling(r))
        return false;
    const int period = r->family->no_rope_period;
    for (int i = 0; i < s->n_layer; i++) {
        bool skipped = !rotates || (period && i % period == period - 1);
        r->layers[i].rope = skipped ? ROPE_TABLE_NONE : r->layers[i].window ? ROPE_TABLE_SLIDING : ROPE_TABLE_FULL;
    }
    return true;
}

// ---- scales ----

static bool read_attention(struct spec_reader *r) {
    struct model_spec *s = r->spec;
    const struct model_family *f = r->family;
    const bool by_width = f->layers_scaled_by_width == s->n_layer;
    s->attention_scale = 1 / sqrtf(by_width ? (float)s->n_embd / (float)r->layers[0].n_head : (float)s->head_size);
    s->attention_softcap = f->attention_softcap;
    s->position_scale_length = s->rope.original_context;
    return read_scale(r, "attention.scale", &s->attention_scale) &&
           read_float(r, "attn_logit_softcapping", GGUF_OPTIONAL, 0, 1e6, &s->attention_softcap) &&
           read_float(r, "attention.temperature_scale", GGUF_OPTIONAL, 0, 1e6, &s->position_scale);
}

static bool read_scales(struct spec_reader *r) {
    struct model_spec *s = r->spec;
    const struct model_family *f = r->family;
    float logit_scale = 1;
    s->embedding_scale = f->embeds_scaled ? sqrtf((float)s->n_embd) : 1;
    s->residual_scale = 1;
    s->logit_softcap = f->logit_softcap;
    if (!read_scale(r, "embedding_scale", &s->embedding_scale) ||
        !read_scale(r, "residual_scale", &s->residual_scale) || !read_scale(r, "logit_scale", &logit_scale) ||
        !read_float(r, "final_logit_softcapping", GGUF_OPTIONAL, 0, 1e6, &s->logit_softcap))
        return false;
    s->logit_scale = f->divides_logits ? 1 / logit_scale : logit_scale;
    return true;
}

static bool read_norms(struct spec_reader *r) {
    r->spec->norm = r->family->norm;
    r->spec->head_norm = r->family->needs & PART_HEAD_NORM_SHARED                      ? HEAD_NORM_SHARED
                         : r->family->needs & PART_HEAD_NORM_WHOLE                     ? HEAD_NORM_WHOLE
                         : (r->family->needs | r->family->allows) & PART_HEAD_NORM_OWN ? HEAD_NORM_OWN
                                                                                       : HEAD_NORM_NONE;
    return read_float(r,
                      r->spec->norm == NORM_RMS ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                      GGUF_REQUIRED, 0, 1, &r->spec->norm_epsilon);
}

// ---- keys that select unsupported arithmetic ----

static const struct neutral_key {
    const char *name;
    double neutral[2]; // values without effect
} neutral_keys[] = {
    {"attention.clamp_kqv", {0, 0}},
    {"attention.max_alibi_bias", {0, 0}},
    {"attention.causal", {1, 1}},
    {"expert_group_count", {0, 1}},
    {"router_logit_softcapping", {0, 0}},
    {"rope.scaling.yarn_ext_factor", {1, 1}},
    {"rope.scaling.yarn_attn_factor", {1, 1}},
};

static bool check_neutral(struct spec_reader *r) {
    for (size_t i = 0; i < sizeof neutral_keys / sizeof *neutral_keys; i++) {
        const struct neutral_key *k = &neutral_keys[i];
        const struct gguf_pair *p = gguf_find(r->g, key_of(r, k->name));
        if (!p || p->type == GGUF_ARRAY || p->type == GGUF_STRING) continue;
        double value = gguf_number(p, 0);
        if (value != k->neutral[0] && value != k->neutral[1])
            return status_fail(r->st, STATUS_UNSUPPORTED, "%s: %s: unsupported value %g (expected %g)", r->g->path,
                               r->key, value, k->neutral[0]);
    }
    return true;
}

bool model_spec_read(struct model_spec *spec, const struct model_family *family, const struct gguf *g,
                     struct arena *arena, struct status *st) {
    struct spec_reader r = {.g = g, .family = family, .spec = spec, .st = st};
    *spec = (struct model_spec){.family = family->architecture, .activation = family->activation};
    return read_sizes(&r, arena) && read_heads(&r) && read_experts(&r) && check_feed_forward(&r) && read_windows(&r) &&
           read_rope(&r) && read_norms(&r) && read_attention(&r) && read_scales(&r) && check_neutral(&r);
}
