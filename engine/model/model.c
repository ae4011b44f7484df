#include "engine/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/model_spec.h"

enum { VOCAB_LIMIT = 1 << 21, NO_LAYER = -1 };

// Lengths that the shapes of weights are made of.
enum length { LENGTH_ONE, LENGTH_EMBD, LENGTH_VOCAB, LENGTH_QUERY, LENGTH_VALUE, LENGTH_HEAD, LENGTH_FF, LENGTH_PAIRS };

enum presence { PRESENT_ALWAYS, PRESENT_OPTIONAL, PRESENT_QKV_BIAS, PRESENT_QK_NORM };

struct weight_rule {
    const char *name; // behind "blk.N." in a layer
    size_t field;     // of struct model or struct model_layer
    enum length rows, columns;
    enum presence
        presence; // the last two: needed by families that say so; without it biases are optional, norms unknown
};

#define MODEL(field, ...) offsetof(struct model, field), __VA_ARGS__
#define LAYER(field, ...) offsetof(struct model_layer, field), __VA_ARGS__

static const struct weight_rule model_rules[] = {
    {"token_embd.weight", MODEL(token_embd, LENGTH_VOCAB, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"output_norm.weight", MODEL(output_norm, LENGTH_ONE, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"output.weight", MODEL(output, LENGTH_VOCAB, LENGTH_EMBD, PRESENT_OPTIONAL)},
    {"rope_freqs.weight", MODEL(rope_freqs, LENGTH_ONE, LENGTH_PAIRS, PRESENT_OPTIONAL)},
};

static const struct weight_rule layer_rules[] = {
    {"attn_norm.weight", LAYER(attn_norm, LENGTH_ONE, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"attn_q.weight", LAYER(attn_q, LENGTH_QUERY, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"attn_k.weight", LAYER(attn_k, LENGTH_VALUE, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"attn_v.weight", LAYER(attn_v, LENGTH_VALUE, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"attn_output.weight", LAYER(attn_output, LENGTH_EMBD, LENGTH_QUERY, PRESENT_ALWAYS)},
    {"attn_q.bias", LAYER(attn_q_bias, LENGTH_ONE, LENGTH_QUERY, PRESENT_QKV_BIAS)},
    {"attn_k.bias", LAYER(attn_k_bias, LENGTH_ONE, LENGTH_VALUE, PRESENT_QKV_BIAS)},
    {"attn_v.bias", LAYER(attn_v_bias, LENGTH_ONE, LENGTH_VALUE, PRESENT_QKV_BIAS)},
    {"attn_q_norm.weight", LAYER(attn_q_norm, LENGTH_ONE, LENGTH_HEAD, PRESENT_QK_NORM)},
    {"attn_k_norm.weight", LAYER(attn_k_norm, LENGTH_ONE, LENGTH_HEAD, PRESENT_QK_NORM)},
    {"ffn_norm.weight", LAYER(ffn_norm, LENGTH_ONE, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"ffn_gate.weight", LAYER(ffn_gate, LENGTH_FF, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"ffn_up.weight", LAYER(ffn_up, LENGTH_FF, LENGTH_EMBD, PRESENT_ALWAYS)},
    {"ffn_down.weight", LAYER(ffn_down, LENGTH_EMBD, LENGTH_FF, PRESENT_ALWAYS)},
};

// One load: what the rules are applied to.
struct binder {
    const struct gguf *g;
    const struct model_family *family;
    struct model *model;
    bool *bound; // [g->n_tensors]
    struct status *st;
};

static uint64_t length_of(const struct model_spec *s, enum length length) {
    switch (length) {
    case LENGTH_ONE: return 1;
    case LENGTH_EMBD: return (uint64_t)s->n_embd;
    case LENGTH_VOCAB: return (uint64_t)s->n_vocab;
    case LENGTH_QUERY: return (uint64_t)s->n_head * (uint64_t)s->head_size;
    case LENGTH_VALUE: return (uint64_t)s->n_head_kv * (uint64_t)s->head_size;
    case LENGTH_HEAD: return (uint64_t)s->head_size;
    case LENGTH_FF: return (uint64_t)s->n_ff;
    case LENGTH_PAIRS: return (uint64_t)s->n_rot / 2;
    }
    return 0;
}

static bool is_required(const struct model_family *family, enum presence presence) {
    return presence == PRESENT_ALWAYS || (presence == PRESENT_QKV_BIAS && family->qkv_bias) ||
           (presence == PRESENT_QK_NORM && family->qk_norm);
}

static bool check_weight(const struct binder *b, const struct gguf_tensor *t, const char *name,
                         const struct weight_rule *rule) {
    uint64_t columns = length_of(&b->model->spec, rule->columns), rows = length_of(&b->model->spec, rule->rows);
    if (t->dims[0] != columns || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1)
        return status_fail(b->st, STATUS_FORMAT, "%s: %s is [%llu, %llu, %llu, %llu], expected [%llu, %llu]",
                           b->g->path, name, (unsigned long long)t->dims[0], (unsigned long long)t->dims[1],
                           (unsigned long long)t->dims[2], (unsigned long long)t->dims[3], (unsigned long long)columns,
                           (unsigned long long)rows);
    if (rule->rows == LENGTH_ONE && t->format->id != BLOCK_F32)
        return status_fail(b->st, STATUS_UNSUPPORTED, "%s: %s is stored as %s; norms and biases must be F32",
                           b->g->path, name, t->format->name);
    return true;
}

static bool bind_weight(struct binder *b, const struct weight_rule *rule, void *base, int layer) {
    char name[64];
    if (layer == NO_LAYER) snprintf(name, sizeof name, "%s", rule->name);
    else snprintf(name, sizeof name, "blk.%d.%s", layer, rule->name);
    bool required = is_required(b->family, rule->presence);
    if (rule->presence == PRESENT_QK_NORM && !required) return true;
    const struct gguf_tensor *t = gguf_tensor_find(b->g, name);
    if (!t) return !required || status_fail(b->st, STATUS_FORMAT, "%s: the tensor %s is missing", b->g->path, name);
    if (!check_weight(b, t, name, rule)) return false;
    struct weight *w = (struct weight *)((char *)base + rule->field);
    *w = (struct weight){.format = t->format, .data = t->data};
    w->columns = (int64_t)t->dims[0];
    w->rows = (int64_t)t->dims[1];
    w->row_bytes = t->dims[0] / t->format->elements * t->format->bytes;
    b->bound[t - b->g->tensors] = true;
    b->model->n_parameters += t->dims[0] * t->dims[1];
    b->model->weight_bytes += t->size;
    return true;
}

static bool bind_rules(struct binder *b, const struct weight_rule *rules, size_t count, void *base, int layer) {
    for (size_t i = 0; i < count; i++)
        if (!bind_weight(b, &rules[i], base, layer)) return false;
    return true;
}

// A tensor that nothing binds would change what the model computes: better refused than left out.
static bool check_all_bound(const struct binder *b) {
    for (uint64_t i = 0; i < b->g->n_tensors; i++) {
        struct span name = b->g->tensors[i].name;
        if (!b->bound[i])
            return status_fail(b->st, STATUS_UNSUPPORTED, "%s: the tensor %.*s has no place in a %s model of %d layers",
                               b->g->path, (int)name.size, name.data, b->family->architecture, b->model->spec.n_layer);
    }
    return true;
}

static bool check_rope_freqs(const struct binder *b) {
    const struct weight *w = &b->model->rope_freqs;
    const float *divisors = w->data;
    for (int64_t i = 0; w->format && i < w->columns; i++)
        if (!isfinite(divisors[i]) || divisors[i] <= 0)
            return status_fail(b->st, STATUS_FORMAT, "%s: rope_freqs.weight has %g at %lld; divisors must be positive",
                               b->g->path, (double)divisors[i], (long long)i);
    return true;
}

static bool bind_weights(struct binder *b) {
    struct model *m = b->model;
    b->bound = arena_array(&m->arena, b->g->n_tensors, sizeof *b->bound, b->st);
    m->layers = arena_array(&m->arena, (uint64_t)m->spec.n_layer, sizeof *m->layers, b->st);
    if (!b->bound || !m->layers) return false;
    if (!bind_rules(b, model_rules, sizeof model_rules / sizeof *model_rules, m, NO_LAYER)) return false;
    for (int i = 0; i < m->spec.n_layer; i++)
        if (!bind_rules(b, layer_rules, sizeof layer_rules / sizeof *layer_rules, &m->layers[i], i)) return false;
    if (!check_all_bound(b) || !check_rope_freqs(b)) return false;
    m->tied = !m->output.format;
    if (m->tied) m->output = m->token_embd;
    return true;
}

static bool settle_vocab(struct model_spec *spec, const struct gguf *g, int32_t n_vocab, struct status *st) {
    const struct gguf_tensor *t = gguf_tensor_find(g, "token_embd.weight");
    if (!t) return status_fail(st, STATUS_FORMAT, "%s: the tensor token_embd.weight is missing", g->path);
    if (t->dims[1] > VOCAB_LIMIT)
        return status_fail(st, STATUS_LIMIT, "%s: a vocabulary of %llu tokens; at most %d are supported", g->path,
                           (unsigned long long)t->dims[1], VOCAB_LIMIT);
    if (n_vocab && t->dims[1] != (uint64_t)n_vocab)
        return status_fail(st, STATUS_FORMAT, "%s: token_embd.weight has %llu rows for %d tokens", g->path,
                           (unsigned long long)t->dims[1], n_vocab);
    spec->n_vocab = (int)t->dims[1];
    return true;
}

static const struct model_family *find_family(const struct gguf *g, struct status *st) {
    struct span name;
    if (!gguf_get_string(g, "general.architecture", GGUF_REQUIRED, &name, st)) return NULL;
    char known[128] = "";
    for (const struct model_family *const *f = model_families; *f; f++) {
        if (span_equals(name, (*f)->architecture)) return *f;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*f)->architecture);
    }
    status_fail(st, STATUS_UNSUPPORTED, "%s: models of the architecture \"%.*s\" are not supported; known are %s",
                g->path, name.size < 64 ? (int)name.size : 64, name.data, known);
    return NULL;
}

static bool check_whole(const struct gguf *g, struct status *st) {
    int64_t n_parts = 1;
    if (g->n_tensors == 0) return status_fail(st, STATUS_UNSUPPORTED, "%s: holds a vocabulary but no weights", g->path);
    if (!gguf_get_int(g, "split.count", GGUF_OPTIONAL, 0, UINT16_MAX, &n_parts, st)) return false;
    return n_parts <= 1 ||
           status_fail(st, STATUS_UNSUPPORTED, "%s: is one of %lld parts; split models are not supported", g->path,
                       (long long)n_parts);
}

bool model_open(struct model *m, const struct gguf *g, int32_t n_vocab, struct status *st) {
    *m = (struct model){0};
    struct binder b = {.g = g, .family = find_family(g, st), .model = m, .st = st};
    if (b.family && check_whole(g, st) && model_spec_read(&m->spec, b.family, g, st) &&
        settle_vocab(&m->spec, g, n_vocab, st) && bind_weights(&b))
        return true;
    model_close(m);
    return false;
}

void model_close(struct model *m) {
    arena_free(&m->arena);
    *m = (struct model){0};
}
