// Binds tensors by tables of rules: one per tensor, with the field of each of its pieces.
#include "engine/model/model_weights.h"

#include <stdio.h>
#include <string.h>

// Dimensions of weights.
enum length {
    LENGTH_NONE,
    LENGTH_ONE,
    LENGTH_EMBD,
    LENGTH_VOCAB,
    LENGTH_HEADS,
    LENGTH_HEADS_KV,
    LENGTH_HEAD,
    LENGTH_QUERY,
    LENGTH_VALUE,
    LENGTH_FF,
    LENGTH_PAIRS,
    LENGTH_EXPERTS,
    LENGTH_EXPERT_FF,
    LENGTH_SHARED_FF,
};

enum form {
    FORM_MATRIX,  // [rows, columns]
    FORM_VECTOR,  // F32 [rows]
    FORM_LIST,    // F32 [rows, columns], one vector per head or expert
    FORM_EXPERTS, // [experts, rows, columns], bound as an array of matrices
};

enum { MAX_PIECES = 3 };

struct weight_rule {
    const char *name; // after "blk.N." in a layer
    unsigned part;    // enum model_part
    enum form form;
    enum length columns; // unless FORM_VECTOR
    // In order; several for fused tensors.
    struct weight_piece {
        size_t field; // of struct model or struct model_layer: a weight, or a pointer to weights with FORM_EXPERTS
        enum length rows;
    } pieces[MAX_PIECES];
    bool optional;      // even if its part is needed
    const char *singly; // FORM_EXPERTS: the name after "blk.N." in files with one tensor per expert
};

#define MODEL(field)  offsetof(struct model, field)
#define LAYER(field)  offsetof(struct model_layer, field)
#define EXPERT(field) offsetof(struct model_layer, experts.field)
#define PIECE(field, rows)                                                                                             \
    { field, LENGTH_##rows }
#define RULE(a_name, a_part, a_form, a_columns, ...)                                                                   \
    .name = a_name, .part = a_part, .form = a_form, .columns = LENGTH_##a_columns, .pieces = {__VA_ARGS__}
#define MATRIX(name, part, columns, ...)                                                                               \
    { RULE(name ".weight", part, FORM_MATRIX, columns, __VA_ARGS__) }
#define MATRIX_IF(name, part, columns, ...)                                                                            \
    { RULE(name ".weight", part, FORM_MATRIX, columns, __VA_ARGS__), .optional = true }
#define VECTOR(name, part, ...)                                                                                        \
    { RULE(name, part, FORM_VECTOR, NONE, __VA_ARGS__) }
#define VECTOR_IF(name, part, ...)                                                                                     \
    { RULE(name, part, FORM_VECTOR, NONE, __VA_ARGS__), .optional = true }
#define NORM(name, part, field) VECTOR(name ".weight", part, PIECE(field, EMBD))
#define LIST(name, part, columns, ...)                                                                                 \
    { RULE(name, part, FORM_LIST, columns, __VA_ARGS__) }
#define EXPERTS(stem, part, columns, ...)                                                                              \
    { RULE(stem "_exps.weight", part, FORM_EXPERTS, columns, __VA_ARGS__), .singly = stem }
#define EXPERTS_IF(stem, part, columns, ...)                                                                           \
    { RULE(stem "_exps.weight", part, FORM_EXPERTS, columns, __VA_ARGS__), .optional = true }

static const struct weight_rule model_rules[] = {
    MATRIX("token_embd", PART_COMMON, EMBD, PIECE(MODEL(token_embd), VOCAB)),
    NORM("output_norm", PART_COMMON, MODEL(output_norm)),
    VECTOR("output_norm.bias", PART_NORM_BIAS, PIECE(MODEL(output_norm_bias), EMBD)),
    MATRIX_IF("output", PART_COMMON, EMBD, PIECE(MODEL(output), VOCAB)),
    VECTOR("output.bias", PART_OUTPUT_BIAS, PIECE(MODEL(output_bias), VOCAB)),
    VECTOR("rope_freqs.weight", PART_ROPE_FREQS, PIECE(MODEL(rope_freqs), PAIRS)),
    VECTOR("rope_factors_long.weight", PART_ROPE_FACTORS, PIECE(MODEL(rope_factors_long), PAIRS)),
    VECTOR("rope_factors_short.weight", PART_ROPE_FACTORS, PIECE(MODEL(rope_factors_short), PAIRS)),
};

// If two rules fill a field, the first whose tensor exists wins; fused tensors come first.
static const struct weight_rule layer_rules[] = {
    NORM("attn_norm", PART_ATTN_NORM, LAYER(attn_norm)),
    VECTOR("attn_norm.bias", PART_NORM_BIAS, PIECE(LAYER(attn_norm_bias), EMBD)),
    MATRIX_IF("attn_qkv", PART_COMMON, EMBD, PIECE(LAYER(attn_q), QUERY), PIECE(LAYER(attn_k), VALUE),
              PIECE(LAYER(attn_v), VALUE)),
    MATRIX("attn_q", PART_COMMON, EMBD, PIECE(LAYER(attn_q), QUERY)),
    MATRIX("attn_k", PART_COMMON, EMBD, PIECE(LAYER(attn_k), VALUE)),
    MATRIX("attn_v", PART_COMMON, EMBD, PIECE(LAYER(attn_v), VALUE)),
    VECTOR_IF("attn_qkv.bias", PART_QKV_BIAS, PIECE(LAYER(attn_q_bias), QUERY), PIECE(LAYER(attn_k_bias), VALUE),
              PIECE(LAYER(attn_v_bias), VALUE)),
    VECTOR("attn_q.bias", PART_QKV_BIAS, PIECE(LAYER(attn_q_bias), QUERY)),
    VECTOR("attn_k.bias", PART_QKV_BIAS, PIECE(LAYER(attn_k_bias), VALUE)),
    VECTOR("attn_v.bias", PART_QKV_BIAS, PIECE(LAYER(attn_v_bias), VALUE)),
    VECTOR("attn_q_norm.weight", PART_HEAD_NORM_SHARED, PIECE(LAYER(attn_q_norm), HEAD)),
    VECTOR("attn_k_norm.weight", PART_HEAD_NORM_SHARED, PIECE(LAYER(attn_k_norm), HEAD)),
    VECTOR("attn_q_norm.weight", PART_HEAD_NORM_WHOLE, PIECE(LAYER(attn_q_norm), QUERY)),
    VECTOR("attn_k_norm.weight", PART_HEAD_NORM_WHOLE, PIECE(LAYER(attn_k_norm), VALUE)),
    LIST("attn_q_norm.weight", PART_HEAD_NORM_OWN, HEAD, PIECE(LAYER(attn_q_norm), HEADS)),
    LIST("attn_k_norm.weight", PART_HEAD_NORM_OWN, HEAD, PIECE(LAYER(attn_k_norm), HEADS_KV)),
    VECTOR("attn_sinks.weight", PART_SINKS, PIECE(LAYER(attn_sinks), HEADS)),
    MATRIX("attn_output", PART_COMMON, QUERY, PIECE(LAYER(attn_output), EMBD)),
    VECTOR("attn_output.bias", PART_ATTN_OUTPUT_BIAS, PIECE(LAYER(attn_output_bias), EMBD)),
    NORM("post_attention_norm", PART_POST_NORMS, LAYER(attn_post_norm)),
    NORM("post_attention_norm", PART_FFN_NORM_LATE, LAYER(ffn_norm)),
    NORM("ffn_norm", PART_FFN_NORM, LAYER(ffn_norm)),
    VECTOR("ffn_norm.bias", PART_FFN_NORM_BIAS, PIECE(LAYER(ffn_norm_bias), EMBD)),
    MATRIX("ffn_up", PART_GATE_IN_UP, EMBD, PIECE(LAYER(ffn_gate), FF), PIECE(LAYER(ffn_up), FF)),
    MATRIX("ffn_gate", PART_GATE, EMBD, PIECE(LAYER(ffn_gate), FF)),
    VECTOR("ffn_gate.bias", PART_GATE_BIAS, PIECE(LAYER(ffn_gate_bias), FF)),
    MATRIX("ffn_up", PART_UP_DOWN, EMBD, PIECE(LAYER(ffn_up), FF)),
    VECTOR("ffn_up.bias", PART_FFN_BIAS, PIECE(LAYER(ffn_up_bias), FF)),
    MATRIX("ffn_down", PART_UP_DOWN, FF, PIECE(LAYER(ffn_down), EMBD)),
    VECTOR("ffn_down.bias", PART_FFN_BIAS, PIECE(LAYER(ffn_down_bias), EMBD)),
    NORM("post_ffw_norm", PART_POST_NORMS, LAYER(ffn_post_norm)),
    MATRIX("ffn_gate_inp", PART_EXPERTS, EMBD, PIECE(EXPERT(router), EXPERTS)),
    VECTOR("ffn_gate_inp.bias", PART_ROUTER_BIAS, PIECE(EXPERT(router_bias), EXPERTS)),
    VECTOR("exp_probs_b.bias", PART_CHOICE_BIAS, PIECE(EXPERT(choice_bias), EXPERTS)),
    EXPERTS_IF("ffn_gate_up", PART_EXPERTS, EMBD, PIECE(EXPERT(gate), EXPERT_FF), PIECE(EXPERT(up), EXPERT_FF)),
    EXPERTS("ffn_gate", PART_EXPERTS, EMBD, PIECE(EXPERT(gate), EXPERT_FF)),
    EXPERTS("ffn_up", PART_EXPERTS, EMBD, PIECE(EXPERT(up), EXPERT_FF)),
    EXPERTS("ffn_down", PART_EXPERTS, EXPERT_FF, PIECE(EXPERT(down), EMBD)),
    LIST("ffn_gate_exps.bias", PART_EXPERT_BIAS, EXPERT_FF, PIECE(EXPERT(gate_bias), EXPERTS)),
    LIST("ffn_up_exps.bias", PART_EXPERT_BIAS, EXPERT_FF, PIECE(EXPERT(up_bias), EXPERTS)),
    LIST("ffn_down_exps.bias", PART_EXPERT_BIAS, EMBD, PIECE(EXPERT(down_bias), EXPERTS)),
    MATRIX("ffn_gate_shexp", PART_SHARED_EXPERT, EMBD, PIECE(EXPERT(shared_gate), SHARED_FF)),
    MATRIX("ffn_up_shexp", PART_SHARED_EXPERT, EMBD, PIECE(EXPERT(shared_up), SHARED_FF)),
    MATRIX("ffn_down_shexp", PART_SHARED_EXPERT, SHARED_FF, PIECE(EXPERT(shared_down), EMBD)),
    MATRIX("ffn_gate_inp_shexp", PART_SHARED_ROUTER, EMBD, PIECE(EXPERT(shared_router), ONE)),
};

// State while binding, a layer at a time.
struct binder {
    const struct gguf *g;
    const struct model_family *family;
    struct model *model;
    const struct layer_spec *layer; // NULL outside the layers
    int layer_index;
    void *base;            // struct model or struct model_layer
    unsigned needs, knows; // parts of this layer
    bool *bound;           // [g->n_tensors]
    struct status *st;
};

static uint64_t length_of(const struct binder *b, enum length length) {
    const struct model_spec *s = &b->model->spec;
    const struct layer_spec *l = b->layer;
    switch (length) {
    case LENGTH_NONE: return 0;
    case LENGTH_ONE: return 1;
    case LENGTH_EMBD: return (uint64_t)s->n_embd;
    case LENGTH_VOCAB: return (uint64_t)s->n_vocab;
    case LENGTH_HEADS: return (uint64_t)l->n_head;
    case LENGTH_HEADS_KV: return (uint64_t)l->n_head_kv;
    case LENGTH_HEAD: return (uint64_t)s->head_size;
    case LENGTH_QUERY: return (uint64_t)l->n_head * (uint64_t)s->head_size;
    case LENGTH_VALUE: return (uint64_t)l->n_head_kv * (uint64_t)s->head_size;
    case LENGTH_FF: return (uint64_t)l->n_ff;
    case LENGTH_PAIRS: return (uint64_t)s->rope.n_rot / 2;
    case LENGTH_EXPERTS: return (uint64_t)s->experts.count;
    case LENGTH_EXPERT_FF: return (uint64_t)s->experts.n_ff;
    case LENGTH_SHARED_FF: return (uint64_t)s->experts.n_ff_shared;
    }
    return 0;
}

static uint64_t rows_of(const struct binder *b, const struct weight_rule *rule) {
    uint64_t rows = 0;
    for (int i = 0; i < MAX_PIECES; i++) rows += length_of(b, rule->pieces[i].rows);
    return rows;
}

struct tensor_name {
    char text[64];
};

static struct tensor_name name_of(const struct binder *b, const char *name) {
    struct tensor_name full;
    if (b->layer) snprintf(full.text, sizeof full.text, "blk.%d.%s", b->layer_index, name);
    else snprintf(full.text, sizeof full.text, "%s", name);
    return full;
}

static struct tensor_name expert_name_of(const struct binder *b, const struct weight_rule *rule, int expert) {
    struct tensor_name full;
    snprintf(full.text, sizeof full.text, "blk.%d.%s.%d.weight", b->layer_index, rule->singly, expert);
    return full;
}

// ---- checks ----

static bool check_shape(const struct binder *b, const struct gguf_tensor *t, uint64_t columns, uint64_t rows,
                        uint64_t count) {
    if (t->dims[0] == columns && t->dims[1] == rows && t->dims[2] == count && t->dims[3] == 1) return true;
    char third[32] = "";
    if (count > 1) snprintf(third, sizeof third, ", %llu", (unsigned long long)count);
    return status_fail(b->st, STATUS_FORMAT, "%s: %.*s is [%llu, %llu, %llu, %llu], expected [%llu, %llu%s]",
                       b->g->path, (int)t->name.size, t->name.data, (unsigned long long)t->dims[0],
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[2], (unsigned long long)t->dims[3],
                       (unsigned long long)columns, (unsigned long long)rows, third);
}

static bool check_tensor(const struct binder *b, const struct weight_rule *rule, const struct gguf_tensor *t) {
    const uint64_t rows = rows_of(b, rule), columns = length_of(b, rule->columns);
    const bool vector = rule->form == FORM_VECTOR;
    const uint64_t count = rule->form == FORM_EXPERTS ? length_of(b, LENGTH_EXPERTS) : 1;
    if (!check_shape(b, t, vector ? rows : columns, vector ? 1 : rows, count)) return false;
    return rule->form == FORM_MATRIX || rule->form == FORM_EXPERTS || t->format->id == BLOCK_F32 ||
           status_fail(b->st, STATUS_UNSUPPORTED, "%s: %.*s: norms and biases must be F32, not %s", b->g->path,
                       (int)t->name.size, t->name.data, t->format->name);
}

// ---- binding ----

static void note_bound(struct binder *b, const struct gguf_tensor *t) {
    b->bound[t - b->g->tensors] = true;
    b->model->n_parameters += t->dims[0] * t->dims[1] * t->dims[2];
    b->model->weight_bytes += t->size;
}

// `rows` rows of a tensor, starting at row `first`, counted across its matrices.
static struct weight rows_of_tensor(const struct gguf_tensor *t, uint64_t first, uint64_t rows) {
    const size_t row_bytes = t->dims[0] / t->format->elements * t->format->bytes;
    return (struct weight){.format = t->format,
                           .data = (const uint8_t *)t->data + first * row_bytes,
                           .rows = (int64_t)rows,
                           .columns = (int64_t)t->dims[0],
                           .row_bytes = row_bytes};
}

// `count` elements of a vector.
static struct weight elements_of_tensor(const struct gguf_tensor *t, uint64_t first, uint64_t count) {
    return (struct weight){.format = t->format,
                           .data = (const uint8_t *)t->data + first * sizeof(float),
                           .rows = 1,
                           .columns = (int64_t)count,
                           .row_bytes = count * sizeof(float)};
}

static struct weight *weight_at(const struct binder *b, const struct weight_piece *piece) {
    return (struct weight *)((char *)b->base + piece->field);
}

static const struct weight **experts_at(const struct binder *b, const struct weight_piece *piece) {
    return (const struct weight **)((char *)b->base + piece->field);
}

static bool is_filled(const struct binder *b, const struct weight_rule *rule) {
    return rule->form == FORM_EXPERTS ? *experts_at(b, rule->pieces) != NULL
                                      : weight_at(b, rule->pieces)->format != NULL;
}

static struct weight *new_experts(struct binder *b, const struct weight_piece *piece) {
    struct weight *experts = arena_alloc(&b->model->arena, (size_t)length_of(b, LENGTH_EXPERTS) * sizeof *experts);
    *experts_at(b, piece) = experts;
    return experts;
}

static void place_pieces(struct binder *b, const struct weight_rule *rule, const struct gguf_tensor *t) {
    uint64_t first = 0;
    for (int i = 0; i < MAX_PIECES && rule->pieces[i].rows; i++) {
        const struct weight_piece *piece = &rule->pieces[i];
        const uint64_t rows = length_of(b, piece->rows);
        if (rule->form == FORM_VECTOR) *weight_at(b, piece) = elements_of_tensor(t, first, rows);
        else if (rule->form != FORM_EXPERTS) *weight_at(b, piece) = rows_of_tensor(t, first, rows);
        else {
            struct weight *experts = new_experts(b, piece);
            for (uint64_t e = 0; e < t->dims[2]; e++) experts[e] = rows_of_tensor(t, e * t->dims[1] + first, rows);
        }
        first += rows;
    }
}

// Binds experts stored as one tensor each.
static bool bind_singly(struct binder *b, const struct weight_rule *rule) {
    const struct weight_piece *piece = rule->pieces;
    const uint64_t columns = length_of(b, rule->columns), rows = length_of(b, piece->rows);
    struct weight *experts = new_experts(b, piece);
    for (int e = 0; e < b->model->spec.experts.count; e++) {
        struct tensor_name name = expert_name_of(b, rule, e);
        const struct gguf_tensor *t = gguf_tensor_find(b->g, name.text);
        if (!t) return status_fail(b->st, STATUS_FORMAT, "%s: missing tensor %s", b->g->path, name.text);
        if (!check_shape(b, t, columns, rows, 1)) return false;
        experts[e] = rows_of_tensor(t, 0, rows);
        note_bound(b, t);
    }
    return true;
}

static bool bind_rule(struct binder *b, const struct weight_rule *rule) {
    if (!(rule->part & b->knows) || is_filled(b, rule)) return true;
    struct tensor_name name = name_of(b, rule->name);
    const struct gguf_tensor *t = gguf_tensor_find(b->g, name.text);
    if (!t && rule->singly && gguf_tensor_find(b->g, expert_name_of(b, rule, 0).text)) return bind_singly(b, rule);
    if (!t)
        return rule->optional || !(rule->part & b->needs) ||
               status_fail(b->st, STATUS_FORMAT, "%s: missing tensor %s", b->g->path, name.text);
    if (!check_tensor(b, rule, t)) return false;
    place_pieces(b, rule, t);
    note_bound(b, t);
    return true;
}

static bool bind_rules(struct binder *b, const struct weight_rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!bind_rule(b, &rules[i])) return false;
    return true;
}

// The parts of a layer depend on the family and on whether it has experts.
static bool bind_layer(struct binder *b, int index) {
    const bool experts = b->model->spec.layers[index].experts, shared = b->model->spec.experts.n_ff_shared > 0;
    unsigned absent = experts ? PARTS_DENSE : PARTS_EXPERTS, present = experts ? PART_EXPERTS : PART_UP_DOWN;
    if (experts && shared) present |= PART_SHARED_EXPERT;
    if (!shared) absent |= PART_SHARED_EXPERT;
    b->layer = &b->model->spec.layers[index];
    b->layer_index = index;
    b->base = &b->model->layers[index];
    b->needs = (b->family->needs & ~absent) | present | PART_COMMON;
    b->knows = (b->family->allows & ~absent) | b->needs;
    return bind_rules(b, layer_rules, sizeof layer_rules / sizeof *layer_rules);
}

// Rejects unbound tensors: without them the model would compute something else.
static bool check_all_bound(const struct binder *b) {
    for (uint64_t i = 0; i < b->g->n_tensors; i++) {
        struct span name = b->g->tensors[i].name;
        if (!b->bound[i])
            return status_fail(b->st, STATUS_UNSUPPORTED, "%s: unexpected tensor %.*s in a %s model of %d layers",
                               b->g->path, (int)name.size, name.data, b->family->architecture, b->model->spec.n_layer);
    }
    return true;
}

bool model_weights_bind(struct model *m, const struct model_family *family, const struct gguf *g, struct status *st) {
    struct binder b = {.g = g, .family = family, .model = m, .base = m, .st = st};
    b.bound = arena_array(&m->arena, g->n_tensors, sizeof *b.bound, st);
    m->layers = arena_array(&m->arena, (uint64_t)m->spec.n_layer, sizeof *m->layers, st);
    if (!b.bound || !m->layers) return false;
    b.needs = family->needs | PART_COMMON;
    b.knows = family->allows | b.needs;
    if (!bind_rules(&b, model_rules, sizeof model_rules / sizeof *model_rules)) return false;
    for (int i = 0; i < m->spec.n_layer; i++)
        if (!bind_layer(&b, i)) return false;
    return check_all_bound(&b);
}
