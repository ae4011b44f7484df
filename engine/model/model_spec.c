// Fills a model_spec from the keys that all families share.
#include "engine/model/model_spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Room for "qwen3." and the longest key below.
struct model_key {
    char text[80];
};

static struct model_key spec_key(const struct model_spec *spec, const char *name) {
    struct model_key key;
    snprintf(key.text, sizeof key.text, "%s.%s", spec->family, name);
    return key;
}

// The limits leave room for every product of two of these in an int64, and of each with a batch's rows in an int.
static const struct integer_key {
    const char *name;
    size_t field; // of struct model_spec, an int
    enum gguf_need need;
    int low, high;
    bool per_layer; // may be an array with a value for every layer
} integer_keys[] = {
    {"block_count", offsetof(struct model_spec, n_layer), GGUF_REQUIRED, 1, 1024, false},
    {"context_length", offsetof(struct model_spec, n_context), GGUF_REQUIRED, 1, 1 << 24, false},
    {"embedding_length", offsetof(struct model_spec, n_embd), GGUF_REQUIRED, 1, 1 << 16, false},
    {"feed_forward_length", offsetof(struct model_spec, n_ff), GGUF_REQUIRED, 1, 1 << 19, true},
    {"attention.head_count", offsetof(struct model_spec, n_head), GGUF_REQUIRED, 1, 1024, true},
    {"attention.head_count_kv", offsetof(struct model_spec, n_head_kv), GGUF_OPTIONAL, 1, 1024, true},
    {"attention.key_length", offsetof(struct model_spec, head_size), GGUF_OPTIONAL, 2, 1024, false},
    {"rope.dimension_count", offsetof(struct model_spec, n_rot), GGUF_OPTIONAL, 2, 1024, false},
};

// An array counts as its value where all layers have the same.
static bool read_per_layer(const struct gguf *g, const struct gguf_pair *p, const struct integer_key *k,
                           const struct model_spec *spec, int *out, struct status *st) {
    int width = (int)p->key.size;
    const char *key = p->key.data;
    if (p->element == GGUF_STRING || p->element == GGUF_BOOL || p->element == GGUF_F32 || p->element == GGUF_F64)
        return status_fail(st, STATUS_FORMAT, "%s: %.*s is no array of integers", g->path, width, key);
    if (p->count != (uint64_t)spec->n_layer)
        return status_fail(st, STATUS_FORMAT, "%s: %.*s has %llu values for %d layers", g->path, width, key,
                           (unsigned long long)p->count, spec->n_layer);
    double first = gguf_number(p, 0);
    for (uint64_t i = 0; i < p->count; i++) {
        double value = gguf_number(p, i);
        if (value < k->low || value > k->high)
            return status_fail(st, STATUS_FORMAT, "%s: %.*s is %.0f in layer %llu, allowed are %d to %d", g->path,
                               width, key, value, (unsigned long long)i, k->low, k->high);
        if (value != first)
            return status_fail(st, STATUS_UNSUPPORTED,
                               "%s: %.*s is %.0f in layer 0 but %.0f in layer %llu; layers of different shapes are not "
                               "supported",
                               g->path, width, key, first, value, (unsigned long long)i);
    }
    *out = (int)first;
    return true;
}

static bool read_integer(const struct gguf *g, const struct integer_key *k, struct model_spec *spec,
                         struct status *st) {
    struct model_key key = spec_key(spec, k->name);
    int *out = (int *)((char *)spec + k->field);
    const struct gguf_pair *p = gguf_find(g, key.text);
    if (p && p->type == GGUF_ARRAY && k->per_layer) return read_per_layer(g, p, k, spec, out, st);
    int64_t value = 0; // stays where an optional key is absent
    if (!gguf_get_int(g, key.text, k->need, k->low, k->high, &value, st)) return false;
    *out = (int)value;
    return true;
}

static bool read_rope(const struct gguf *g, struct model_spec *spec, struct status *st) {
    struct model_key type_key = spec_key(spec, "rope.scaling.type");
    struct span type = {"linear", 6}; // what a factor without a type means
    float factor = 0;                 // 0: none said
    spec->rope_base = 10000;
    if (!gguf_get_float(g, spec_key(spec, "rope.freq_base").text, GGUF_OPTIONAL, 1, 1e12, &spec->rope_base, st) ||
        !gguf_get_string(g, type_key.text, GGUF_OPTIONAL, &type, st) ||
        !gguf_get_float(g, spec_key(spec, "rope.scale_linear").text, GGUF_OPTIONAL, 0, 1e6, &factor, st) ||
        !gguf_get_float(g, spec_key(spec, "rope.scaling.factor").text, GGUF_OPTIONAL, 0, 1e6, &factor, st))
        return false;
    bool linear = span_equals(type, "linear");
    if (!linear && !span_equals(type, "none"))
        return status_fail(st, STATUS_UNSUPPORTED, "%s: %s is \"%.*s\"; only none and linear are supported", g->path,
                           type_key.text, type.size < 64 ? (int)type.size : 64, type.data);
    spec->rope_scale = linear && factor > 0 ? factor : 1;
    return true;
}

static bool read_attention(const struct gguf *g, struct model_spec *spec, struct status *st) {
    int64_t value_size = spec->head_size;
    float scale = 0; // 0: the usual one
    if (!gguf_get_int(g, spec_key(spec, "attention.value_length").text, GGUF_OPTIONAL, 1, 1024, &value_size, st) ||
        !gguf_get_float(g, spec_key(spec, "attention.scale").text, GGUF_OPTIONAL, 0, 1e3, &scale, st) ||
        !gguf_get_float(g, spec_key(spec, "attention.layer_norm_rms_epsilon").text, GGUF_REQUIRED, 0, 1,
                        &spec->norm_epsilon, st))
        return false;
    if (value_size != spec->head_size)
        return status_fail(st, STATUS_UNSUPPORTED,
                           "%s: keys of %d and values of %lld elements a head are not supported", g->path,
                           spec->head_size, (long long)value_size);
    spec->attention_scale = scale > 0 ? scale : 1 / sqrtf((float)spec->head_size);
    return true;
}

// Defaults for what the file left open, and what the figures must be to each other.
static bool settle_heads(const struct gguf *g, struct model_spec *spec, struct status *st) {
    if (!spec->n_head_kv) spec->n_head_kv = spec->n_head;
    if (!spec->head_size && spec->n_embd % spec->n_head)
        return status_fail(st, STATUS_FORMAT, "%s: an embedding of %d cannot be split into %d heads", g->path,
                           spec->n_embd, spec->n_head);
    if (!spec->head_size) spec->head_size = spec->n_embd / spec->n_head;
    if (!spec->n_rot) spec->n_rot = spec->head_size;
    if (spec->n_head % spec->n_head_kv)
        return status_fail(st, STATUS_FORMAT, "%s: %d heads cannot share %d key-value heads evenly", g->path,
                           spec->n_head, spec->n_head_kv);
    if (spec->head_size > 1024 || spec->head_size % 2)
        return status_fail(st, STATUS_FORMAT, "%s: a head size of %d; allowed are even ones up to 1024", g->path,
                           spec->head_size);
    if (spec->n_rot > spec->head_size || spec->n_rot % 2)
        return status_fail(st, STATUS_FORMAT, "%s: %s.rope.dimension_count is %d; it must be even and at most %d",
                           g->path, spec->family, spec->n_rot, spec->head_size);
    return true;
}

bool model_spec_read(struct model_spec *spec, const struct model_family *family, const struct gguf *g,
                     struct status *st) {
    *spec = (struct model_spec){.family = family->architecture, .rope = family->rope, .qk_norm = family->qk_norm};
    for (size_t i = 0; i < sizeof integer_keys / sizeof *integer_keys; i++)
        if (!read_integer(g, &integer_keys[i], spec, st)) return false;
    return settle_heads(g, spec, st) && read_rope(g, spec, st) && read_attention(g, spec, st) &&
           (!family->fill || family->fill(spec, g, st));
}
