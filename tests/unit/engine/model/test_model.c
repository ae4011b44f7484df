// Models: specs of families, bound weights, and errors for everything that does not fit.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/panic.h"
#include "engine/model/model.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/shared_files.h"
#include "tests/unit/tiny_model.h"

// ---- a small llama with one change ----

enum { EMBD = 32, HEADS = 4, HEADS_KV = 2, HEAD = 8, FF = 64, VOCAB = 16, LAYERS = 2 };

static const struct {
    const char *name;
    uint32_t value;
} plain_keys[] = {
    {"block_count", LAYERS},     {"context_length", 128},         {"embedding_length", EMBD},
    {"feed_forward_length", FF}, {"attention.head_count", HEADS}, {"attention.head_count_kv", HEADS_KV},
};

static const struct {
    const char *name;
    uint64_t columns, rows; // rows 0: a vector
} plain_tensors[] = {
    {"token_embd.weight", EMBD, VOCAB},
    {"output_norm.weight", EMBD, 0},
    {"output.weight", EMBD, VOCAB},
    {"rope_freqs.weight", HEAD / 2, 0},
    {"blk.0.attn_norm.weight", EMBD, 0},
    {"blk.0.attn_q.weight", EMBD, HEADS *HEAD},
    {"blk.0.attn_k.weight", EMBD, HEADS_KV *HEAD},
    {"blk.0.attn_v.weight", EMBD, HEADS_KV *HEAD},
    {"blk.0.attn_output.weight", HEADS *HEAD, EMBD},
    {"blk.0.ffn_norm.weight", EMBD, 0},
    {"blk.0.ffn_gate.weight", EMBD, FF},
    {"blk.0.ffn_up.weight", EMBD, FF},
    {"blk.0.ffn_down.weight", FF, EMBD},
    {"blk.1.attn_norm.weight", EMBD, 0},
    {"blk.1.attn_q.weight", EMBD, HEADS *HEAD},
    {"blk.1.attn_k.weight", EMBD, HEADS_KV *HEAD},
    {"blk.1.attn_v.weight", EMBD, HEADS_KV *HEAD},
    {"blk.1.attn_output.weight", HEADS *HEAD, EMBD},
    {"blk.1.ffn_norm.weight", EMBD, 0},
    {"blk.1.ffn_gate.weight", EMBD, FF},
    {"blk.1.ffn_up.weight", EMBD, FF},
    {"blk.1.ffn_down.weight", FF, EMBD},
};
enum { TENSORS = sizeof plain_tensors / sizeof *plain_tensors, KEYS = sizeof plain_keys / sizeof *plain_keys };

struct change {
    const char *architecture;      // NULL: llama
    const char *without_key, *key; // omit a key; set a key to this u32
    uint32_t value;
    const char *float_key; // add a key with a float
    float number;
    const char *string_key, *text; // or a string
    const char *array_key;         // or an array of u32
    uint32_t array[3];
    int n_array;
    const char *without_tensor, *tensor; // omit a tensor; set a tensor to these dims and this type
    uint64_t dims[3];
    uint32_t type;
    float more;      // added to every value, which is 1
    int32_t n_vocab; // of the tokenizer; 0: unknown
};

static bool is_named(const char *name, const char *other) { return other && !strcmp(name, other); }

static const char *prefixed(const struct change *c, const char *name) {
    static char key[96];
    snprintf(key, sizeof key, "%s.%s", c->architecture ? c->architecture : "llama", name);
    return key;
}

static void write_changed_keys(struct gguf_writer *w, const struct change *c) {
    if (!is_named("general.architecture", c->without_key))
        gguf_writer_string(w, "general.architecture", c->architecture ? c->architecture : "llama");
    for (int i = 0; i < KEYS; i++) {
        const char *name = plain_keys[i].name;
        if (is_named(name, c->without_key) || is_named(name, c->key) || is_named(name, c->array_key)) continue;
        gguf_writer_u32(w, prefixed(c, name), plain_keys[i].value);
    }
    if (!is_named("attention.layer_norm_rms_epsilon", c->without_key) &&
        !is_named("attention.layer_norm_rms_epsilon", c->float_key))
        gguf_writer_float(w, prefixed(c, "attention.layer_norm_rms_epsilon"), 1e-5f);
    if (c->key) gguf_writer_u32(w, prefixed(c, c->key), c->value);
    if (c->float_key) gguf_writer_float(w, prefixed(c, c->float_key), c->number);
    if (c->string_key) gguf_writer_string(w, prefixed(c, c->string_key), c->text);
    if (c->array_key)
        gguf_writer_array(w, prefixed(c, c->array_key), GGUF_U32, (uint64_t)c->n_array, c->array,
                          (size_t)c->n_array * sizeof *c->array);
}

static void write_values(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *dims,
                         float value) {
    const struct block_format *f = block_format_find(type);
    size_t n = dims[0] * (n_dims > 1 ? dims[1] : 1) * (n_dims > 2 ? dims[2] : 1);
    float *values = xcalloc(n + 8, sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = value;
    gguf_writer_tensor(w, name, type, n_dims, dims, values, n / f->elements * f->bytes);
    free(values);
}

static void write_changed_tensors(struct gguf_writer *w, const struct change *c) {
    for (int i = 0; i < TENSORS; i++) {
        const char *name = plain_tensors[i].name;
        if (is_named(name, c->without_tensor) || is_named(name, c->tensor)) continue;
        uint64_t dims[2] = {plain_tensors[i].columns, plain_tensors[i].rows};
        write_values(w, name, 0, dims[1] ? 2 : 1, dims, 1 + c->more);
    }
    if (c->tensor) write_values(w, c->tensor, c->type, c->dims[2] ? 3 : c->dims[1] ? 2 : 1, c->dims, 1);
}

static bool open_changed(const struct change *c, struct model *m, struct gguf *g, uint8_t **data, struct status *st) {
    struct gguf_writer w = {0};
    write_changed_keys(&w, c);
    write_changed_tensors(&w, c);
    size_t size;
    *data = gguf_writer_finish(&w, &size);
    if (!gguf_open_memory(g, "m.gguf", *data, size, st)) fail_msg("%s", st->text);
    return model_open(m, g, c->n_vocab, st);
}

static void check_rejected(enum status_code code, const char *why, struct change c) {
    struct model m;
    struct gguf g;
    struct status st = {0};
    uint8_t *data;
    if (open_changed(&c, &m, &g, &data, &st)) fail_msg("opened; expected '%s'", why);
    char expected[300];
    snprintf(expected, sizeof expected, "m.gguf: %s", why);
    if (strncmp(st.text, expected, strlen(expected)) != 0) fail_msg("'%s' does not start with '%s'", st.text, expected);
    assert_int_equal(st.code, code);
    assert_null(m.arena.chunks);
    gguf_close(&g);
    free(data);
}

static struct layer_spec layers_seen[LAYERS]; // of the last spec_with

// The spec of a file with a valid change.
static struct model_spec spec_with(struct change c) {
    struct model m;
    struct gguf g;
    struct status st = {0};
    uint8_t *data;
    if (!open_changed(&c, &m, &g, &data, &st)) fail_msg("%s", st.text);
    struct model_spec spec = m.spec;
    memcpy(layers_seen, m.spec.layers, sizeof layers_seen);
    model_close(&m);
    gguf_close(&g);
    free(data);
    return spec;
}

// ---- valid models ----

static void defaults_apply_to_missing_keys(void **state) {
    (void)state;
    struct model_spec s = spec_with((struct change){0});
    assert_string_equal(s.family, "llama");
    assert_int_equal(s.n_layer, LAYERS);
    assert_int_equal(s.n_embd, EMBD);
    assert_int_equal(s.n_vocab, VOCAB);
    assert_int_equal(s.n_context, 128);
    assert_int_equal(s.head_size, HEAD);
    for (int i = 0; i < LAYERS; i++) {
        assert_int_equal(layers_seen[i].n_head, HEADS);
        assert_int_equal(layers_seen[i].n_head_kv, HEADS_KV);
        assert_int_equal(layers_seen[i].n_ff, FF);
        assert_int_equal(layers_seen[i].rope, ROPE_TABLE_FULL);
        assert_false(layers_seen[i].window || layers_seen[i].experts);
    }
    assert_int_equal(s.rope.n_rot, HEAD);
    assert_int_equal(s.rope.kind, ROPE_NORM);
    assert_int_equal(s.norm, NORM_RMS);
    assert_int_equal(s.head_norm, HEAD_NORM_NONE);
    assert_int_equal(s.activation, ACTIVATION_SILU);
    assert_false(s.parallel || s.experts.count);
    assert_true(s.norm_epsilon == 1e-5f && s.rope.base[0] == 10000 && s.rope.base[1] == 10000);
    assert_true(s.rope.factor == 1 && s.rope.magnitude == 1 && s.rope.original_context == 128);
    assert_true(fabsf(s.attention_scale - 1 / sqrtf(HEAD)) < 1e-7f);
    assert_true(s.attention_softcap == 0 && s.logit_softcap == 0 && s.position_scale == 0);
    assert_true(s.embedding_scale == 1 && s.residual_scale == 1 && s.logit_scale == 1);
}

static void keys_override_the_defaults(void **state) {
    (void)state;
    struct change c = {.key = "rope.dimension_count", .value = 8, .float_key = "rope.freq_base", .number = 500000};
    assert_true(spec_with(c).rope.base[ROPE_TABLE_FULL] == 500000);
    c = (struct change){.key = "rope.dimension_count", .value = 4, .without_tensor = "rope_freqs.weight"};
    assert_int_equal(spec_with(c).rope.n_rot, 4);
    c = (struct change){.float_key = "attention.scale", .number = 0.25f};
    assert_true(spec_with(c).attention_scale == 0.25f);
    assert_int_equal(spec_with((struct change){.n_vocab = VOCAB}).n_vocab, VOCAB);
}

static void a_factor_alone_scales_rope_linearly(void **state) {
    (void)state;
    struct change c = {.float_key = "rope.scaling.factor", .number = 4};
    assert_true(spec_with(c).rope.factor == 4);
    c.string_key = "rope.scaling.type", c.text = "linear";
    assert_true(spec_with(c).rope.factor == 4);
    assert_int_equal(spec_with(c).rope.scaling, ROPE_SCALING_LINEAR);
    c.text = "none";
    assert_true(spec_with(c).rope.factor == 1);
    c.text = "yarn";
    assert_int_equal(spec_with(c).rope.scaling, ROPE_SCALING_YARN);
    assert_true(fabsf(spec_with(c).rope.magnitude - (0.1f * logf(4) + 1)) < 1e-6f);
    c = (struct change){.float_key = "rope.scale_linear", .number = 2};
    assert_true(spec_with(c).rope.factor == 2);
    c = (struct change){.float_key = "rope.scaling.factor", .number = 0};
    assert_true(spec_with(c).rope.factor == 1);
}

static void layers_may_differ(void **state) {
    (void)state;
    struct change c = {.array_key = "attention.head_count_kv",
                       .array = {2, 4},
                       .n_array = 2,
                       .tensor = "blk.1.attn_k.weight",
                       .dims = {EMBD, HEADS * HEAD},
                       .without_tensor = "blk.1.attn_v.weight"};
    check_rejected(STATUS_FORMAT, "missing tensor blk.1.attn_v.weight", c);
    c = (struct change){.array_key = "feed_forward_length", .array = {FF, FF}, .n_array = 2};
    spec_with(c);
    assert_int_equal(layers_seen[1].n_ff, FF);
    c = (struct change){.array_key = "attention.head_count", .array = {4, 4}, .n_array = 2};
    spec_with(c);
    assert_int_equal(layers_seen[1].n_head, 4);
}

static void a_model_without_output_is_tied(void **state) {
    (void)state;
    struct change c = {.without_tensor = "output.weight"};
    struct model m;
    struct gguf g;
    struct status st = {0};
    uint8_t *data;
    assert_true(open_changed(&c, &m, &g, &data, &st));
    assert_true(m.tied);
    assert_ptr_equal(m.output.data, m.token_embd.data);
    assert_int_equal(m.output.rows, VOCAB);
    uint64_t layer = 2 * EMBD + 2 * EMBD * HEADS * HEAD + 2 * EMBD * HEADS_KV * HEAD + 3 * EMBD * FF;
    assert_int_equal(m.n_parameters, VOCAB * EMBD + EMBD + HEAD / 2 + LAYERS * layer);
    assert_int_equal(m.weight_bytes, 4 * m.n_parameters);
    model_close(&m);
    gguf_close(&g);
    free(data);
}

// ---- tiny models of every family and format ----

static void check_shape(const struct weight *w, enum block_id format, int64_t rows, int64_t columns) {
    assert_non_null(w->format);
    assert_int_equal(w->format->id, format);
    assert_int_equal(w->rows, rows);
    assert_int_equal(w->columns, columns);
    assert_int_equal(w->row_bytes, (uint64_t)columns / w->format->elements * w->format->bytes);
}

static void check_layer(const struct model_layer *l, const struct model_spec *s, enum block_id format, bool bias) {
    const bool head_norm = s->head_norm == HEAD_NORM_SHARED;
    const int n_ff = s->layers[0].n_ff;
    int64_t query = s->layers[0].n_head * s->head_size, value = s->layers[0].n_head_kv * s->head_size;
    check_shape(&l->attn_norm, BLOCK_F32, 1, s->n_embd);
    check_shape(&l->attn_q, format, query, s->n_embd);
    check_shape(&l->attn_k, format, value, s->n_embd);
    check_shape(&l->attn_v, format, value, s->n_embd);
    check_shape(&l->attn_output, format, s->n_embd, query);
    check_shape(&l->ffn_norm, BLOCK_F32, 1, s->n_embd);
    check_shape(&l->ffn_gate, format, n_ff, s->n_embd);
    check_shape(&l->ffn_up, format, n_ff, s->n_embd);
    check_shape(&l->ffn_down, format, s->n_embd, n_ff);
    assert_int_equal(l->attn_q_bias.format != NULL, bias);
    if (bias) check_shape(&l->attn_q_bias, BLOCK_F32, 1, query);
    if (bias) check_shape(&l->attn_k_bias, BLOCK_F32, 1, value);
    if (bias) check_shape(&l->attn_v_bias, BLOCK_F32, 1, value);
    assert_int_equal(l->attn_q_norm.format != NULL, head_norm);
    if (head_norm) check_shape(&l->attn_q_norm, BLOCK_F32, 1, s->head_size);
    if (head_norm) check_shape(&l->attn_k_norm, BLOCK_F32, 1, s->head_size);
}

static void check_tiny(enum tiny_family family, enum block_id format, bool tied) {
    struct tiny_model_options o = {.family = family, .format = format, .tied = tied, .pre = tied ? "qwen2" : NULL};
    size_t size;
    void *data = tiny_model_bytes(o, &size);
    struct gguf g;
    struct model m;
    struct status st = {0};
    if (!gguf_open_memory(&g, "tiny", data, size, &st) || !model_open(&m, &g, 0, &st)) fail_msg("%s", st.text);
    static const char *const names[] = {"llama", "llama", "qwen2", "qwen3"};
    assert_string_equal(m.spec.family, names[family]);
    assert_int_equal(m.spec.rope.kind, family <= TINY_LLAMA_ROPE_FREQS ? ROPE_NORM : ROPE_NEOX);
    assert_int_equal(m.spec.head_norm, family == TINY_QWEN3 ? HEAD_NORM_SHARED : HEAD_NORM_NONE);
    if (family == TINY_QWEN3) assert_true(m.spec.head_size * m.spec.layers[0].n_head == 2 * m.spec.n_embd);
    assert_int_equal(m.tied, tied);
    assert_int_equal(m.rope_freqs.format != NULL, family == TINY_LLAMA_ROPE_FREQS);
    check_shape(&m.token_embd, format, m.spec.n_vocab, m.spec.n_embd);
    check_shape(&m.output, format, m.spec.n_vocab, m.spec.n_embd);
    for (int i = 0; i < m.spec.n_layer; i++) check_layer(&m.layers[i], &m.spec, format, family == TINY_QWEN2);
    assert_int_equal(gguf_find(&g, "tokenizer.ggml.tokens")->count, m.spec.n_vocab);
    model_close(&m);
    gguf_close(&g);
    free(data);
}

static void tiny_models_of_every_kind_open(void **state) {
    (void)state;
    for (int family = 0; family < TINY_FAMILY_COUNT; family++)
        for (int format = 0; format < BLOCK_FORMAT_COUNT; format++)
            for (int tied = 0; tied < 2; tied++) check_tiny((enum tiny_family)family, (enum block_id)format, tied);
}

static void tiny_models_depend_on_their_seed_alone(void **state) {
    (void)state;
    size_t size, again, other;
    void *a = tiny_model_bytes((struct tiny_model_options){.seed = 1}, &size);
    void *b = tiny_model_bytes((struct tiny_model_options){.seed = 1}, &again);
    void *c = tiny_model_bytes((struct tiny_model_options){.seed = 2}, &other);
    assert_int_equal(size, again);
    assert_int_equal(size, other);
    assert_memory_equal(a, b, size);
    assert_memory_not_equal(a, c, size);
    free(a);
    free(b);
    free(c);
}

// Every merge must join two tokens to a token, and tokens must be unique; otherwise tests with them prove little.
static void check_vocabulary(const char *pre) {
    size_t size;
    void *data = tiny_model_bytes((struct tiny_model_options){.pre = pre}, &size);
    struct gguf g;
    struct status st = {0};
    assert_true(gguf_open_memory(&g, "tiny", data, size, &st));
    uint64_t n, n_merges;
    struct span *tokens = gguf_get_strings(&g, "tokenizer.ggml.tokens", &g.arena, &n, &st);
    struct span *merges = gguf_get_strings(&g, "tokenizer.ggml.merges", &g.arena, &n_merges, &st);
    assert_in_range(n, 320, 512);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < i; k++)
            assert_false(tokens[i].size == tokens[k].size && !memcmp(tokens[i].data, tokens[k].data, tokens[i].size));
    assert_int_equal(n_merges > 60, pre != NULL);
    for (uint64_t i = 0; i < n_merges; i++) {
        char left[32], right[32], both[64];
        int found = 0;
        snprintf(both, sizeof both, "%.*s", (int)merges[i].size, merges[i].data);
        assert_int_equal(sscanf(both, "%31s", left), 1);
        snprintf(right, sizeof right, "%.*s", (int)(merges[i].size - strlen(left) - 1), both + strlen(left) + 1);
        snprintf(both, sizeof both, "%s%s", left, right);
        for (uint64_t k = 0; k < 256 + i; k++)
            found |= span_equals(tokens[k], left) | span_equals(tokens[k], right) << 1;
        assert_int_equal(found, 3);
        assert_true(span_equals(tokens[256 + i], both));
    }
    gguf_close(&g);
    free(data);
}

static void tiny_vocabularies_are_valid(void **state) {
    (void)state;
    check_vocabulary(NULL);
    check_vocabulary("gpt-2");
}

// ---- shared models ----

static void shared_models_open(void **state) {
    (void)state;
    static const struct {
        const char *file, *family;
        int n_layer, n_embd, n_head, n_head_kv, head_size, n_ff, n_context;
        bool rope_freqs;
    } models[] = {
        {"models/stories260K-f32.gguf", "llama", 5, 64, 8, 4, 8, 172, 128, false},
        {"models/tiny-llama-f32.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-f16.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-bf16.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-q8_0.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-q4_0.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-q4_k.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama-q6_k.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-llama3-f32.gguf", "llama", 3, 256, 8, 2, 32, 512, 4096, true},
        {"models/tiny-qwen2-f32.gguf", "qwen2", 3, 256, 8, 2, 32, 512, 4096, false},
        {"models/tiny-qwen3-f32.gguf", "qwen3", 3, 256, 8, 2, 64, 512, 4096, false},
        {"models/tiny-gpt-oss-mxfp4.gguf", "gpt-oss", 4, 256, 8, 2, 64, 0, 8192, false},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct gguf g;
        struct model m;
        struct status st = {0};
        if (!gguf_open(&g, shared_file(models[i].file), &st) || !model_open(&m, &g, 512, &st)) fail_msg("%s", st.text);
        assert_string_equal(m.spec.family, models[i].family);
        assert_int_equal(m.spec.n_layer, models[i].n_layer);
        assert_int_equal(m.spec.n_embd, models[i].n_embd);
        assert_int_equal(m.spec.layers[0].n_head, models[i].n_head);
        assert_int_equal(m.spec.layers[0].n_head_kv, models[i].n_head_kv);
        assert_int_equal(m.spec.head_size, models[i].head_size);
        assert_int_equal(m.spec.layers[0].n_ff, models[i].n_ff);
        assert_int_equal(m.spec.n_context, models[i].n_context);
        assert_int_equal(m.rope_freqs.format != NULL, models[i].rope_freqs);
        model_close(&m);
        gguf_close(&g);
    }
}

static void unsupported_shared_files_say_why(void **state) {
    (void)state;
    static const struct {
        const char *file, *why;
    } files[] = {{"vocabs/llama-bpe.gguf", "has a vocabulary but no weights"},
                 {"vocabs/phi-3.gguf", "has a vocabulary but no weights"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct gguf g;
        struct model m;
        struct status st = {0};
        assert_true(gguf_open(&g, shared_file(files[i].file), &st));
        assert_false(model_open(&m, &g, 0, &st));
        assert_non_null(strstr(st.text, files[i].why));
        gguf_close(&g);
    }
}

// ---- invalid and unsupported models ----

static void unknown_architectures_are_rejected(void **state) {
    (void)state;
    check_rejected(STATUS_UNSUPPORTED, "unsupported architecture 'mamba' (supported: llama, mistral3, exaone, ",
                   (struct change){.architecture = "mamba"});
    check_rejected(STATUS_FORMAT, "missing key general.architecture",
                   (struct change){.without_key = "general.architecture"});
}

static void missing_keys_are_rejected(void **state) {
    (void)state;
    static const char *const required[] = {"block_count",          "context_length",
                                           "embedding_length",     "feed_forward_length",
                                           "attention.head_count", "attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        char why[100];
        snprintf(why, sizeof why, "missing key llama.%s", required[i]);
        check_rejected(STATUS_FORMAT, why, (struct change){.without_key = required[i]});
    }
}

static void values_out_of_range_are_rejected(void **state) {
    (void)state;
    static const struct {
        const char *key;
        uint32_t too_high;
    } limits[] = {{"block_count", 1025},          {"context_length", (1 << 24) + 1},
                  {"embedding_length", 65537},    {"feed_forward_length", (1 << 19) + 1},
                  {"attention.head_count", 1025}, {"attention.head_count_kv", 1025},
                  {"attention.key_length", 1025}, {"rope.dimension_count", 1025}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const uint32_t values[] = {0, limits[i].too_high, UINT32_MAX};
        for (int k = 0; k < 3; k++) {
            char why[100];
            snprintf(why, sizeof why, "llama.%s: %u is out of range", limits[i].key, values[k]);
            check_rejected(STATUS_FORMAT, why, (struct change){.key = limits[i].key, .value = values[k]});
        }
    }
    static const struct {
        const char *key;
        float value;
    } floats[] = {{"rope.freq_base", -1},
                  {"rope.freq_base", NAN},
                  {"rope.freq_base", 0},
                  {"rope.freq_base", INFINITY},
                  {"rope.scaling.factor", -2},
                  {"rope.scaling.factor", NAN},
                  {"attention.scale", -1},
                  {"attention.layer_norm_rms_epsilon", -1e-5f},
                  {"attention.layer_norm_rms_epsilon", NAN}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        char why[100];
        snprintf(why, sizeof why, "llama.%s: %g is out of range", floats[i].key, (double)floats[i].value);
        check_rejected(STATUS_FORMAT, why, (struct change){.float_key = floats[i].key, .number = floats[i].value});
    }
}

static void heads_that_do_not_fit_are_rejected(void **state) {
    (void)state;
    check_rejected(STATUS_FORMAT, "embedding size 32 is not a multiple of 3 heads",
                   (struct change){.key = "attention.head_count", .value = 3});
    check_rejected(STATUS_FORMAT, "4 heads are not a multiple of 3 KV heads",
                   (struct change){.key = "attention.head_count_kv", .value = 3});
    check_rejected(STATUS_FORMAT, "4 heads are not a multiple of 8 KV heads",
                   (struct change){.key = "attention.head_count_kv", .value = 8});
    check_rejected(STATUS_FORMAT, "head size 7 is not an even number up to 1024",
                   (struct change){.key = "attention.key_length", .value = 7});
    check_rejected(
        STATUS_FORMAT, "head size 1 is not ",
        (struct change){.key = "attention.head_count", .value = 32, .without_key = "attention.head_count_kv"});
    check_rejected(STATUS_FORMAT, "head size 16384 is not ",
                   (struct change){.key = "embedding_length", .value = 65536});
    check_rejected(STATUS_FORMAT, "llama.rope.dimension_count: 10 is not an even number up to 8",
                   (struct change){.key = "rope.dimension_count", .value = 10});
    check_rejected(STATUS_FORMAT, "llama.rope.dimension_count: 5 is not an even number up to 8",
                   (struct change){.key = "rope.dimension_count", .value = 5});
    check_rejected(STATUS_UNSUPPORTED, "key and value heads of different sizes (8 and 16) are not supported",
                   (struct change){.key = "attention.value_length", .value = 16});
}

static void arrays_must_fit_the_layers(void **state) {
    (void)state;
    check_rejected(STATUS_FORMAT, "blk.1.attn_k.weight is [32, 16, 1, 1], expected [32, 32]",
                   (struct change){.array_key = "attention.head_count_kv", .array = {2, 4}, .n_array = 2});
    check_rejected(STATUS_FORMAT, "blk.1.ffn_gate.weight is [32, 64, 1, 1], expected [32, 96]",
                   (struct change){.array_key = "feed_forward_length", .array = {FF, 96}, .n_array = 2});
    check_rejected(STATUS_FORMAT, "4 heads are not a multiple of 3 KV heads",
                   (struct change){.array_key = "attention.head_count_kv", .array = {2, 3}, .n_array = 2});
    check_rejected(STATUS_FORMAT, "llama.attention.head_count_kv: 0 in layer 1 is out of range (1 to 1024)",
                   (struct change){.array_key = "attention.head_count_kv", .array = {2, 0}, .n_array = 2});
    check_rejected(STATUS_FORMAT, "llama.feed_forward_length has 3 values for 2 layers",
                   (struct change){.array_key = "feed_forward_length", .array = {64, 64, 64}, .n_array = 3});
    check_rejected(STATUS_FORMAT, "llama.feed_forward_length has 0 values for 2 layers",
                   (struct change){.array_key = "feed_forward_length", .n_array = 0});
    check_rejected(STATUS_FORMAT, "llama.embedding_length: expected an integer, got array of u32",
                   (struct change){.array_key = "embedding_length", .array = {32, 32}, .n_array = 2});
}

static void wrong_types_are_rejected(void **state) {
    (void)state;
    check_rejected(
        STATUS_FORMAT, "llama.attention.head_count: expected an integer, got string",
        (struct change){.without_key = "attention.head_count", .string_key = "attention.head_count", .text = "4"});
    check_rejected(STATUS_FORMAT, "llama.context_length: expected an integer, got f32",
                   (struct change){.without_key = "context_length", .float_key = "context_length", .number = 128});
    check_rejected(STATUS_FORMAT, "llama.rope.scaling.type: expected a string, got u32",
                   (struct change){.key = "rope.scaling.type", .value = 1});
}

static void unsupported_settings_are_rejected(void **state) {
    (void)state;
    check_rejected(STATUS_UNSUPPORTED,
                   "llama.rope.scaling.type: unsupported type 'dynamic' (expected none, linear, yarn or longrope)",
                   (struct change){.string_key = "rope.scaling.type", .text = "dynamic"});
    check_rejected(STATUS_FORMAT, "missing tensor rope_factors_long.weight",
                   (struct change){.string_key = "rope.scaling.type", .text = "longrope"});
    check_rejected(STATUS_FORMAT, "missing tensor rope_factors_long.weight",
                   (struct change){.tensor = "rope_factors_short.weight", .dims = {HEAD / 2}});
    check_rejected(STATUS_FORMAT, "missing tensor rope_factors_short.weight",
                   (struct change){.tensor = "rope_factors_long.weight", .dims = {HEAD / 2}});
    check_rejected(STATUS_UNSUPPORTED, "has rope_factors but llama.rope.scaling.type is 'yarn'",
                   (struct change){.tensor = "rope_factors_long.weight",
                                   .dims = {HEAD / 2},
                                   .string_key = "rope.scaling.type",
                                   .text = "yarn"});
    check_rejected(STATUS_UNSUPPORTED, "llama.attention.clamp_kqv: unsupported value 8 (expected 0)",
                   (struct change){.float_key = "attention.clamp_kqv", .number = 8});
    check_rejected(STATUS_UNSUPPORTED, "llama.attention.causal: unsupported value 0 (expected 1)",
                   (struct change){.key = "attention.causal", .value = 0});
    check_rejected(STATUS_UNSUPPORTED, "qwen2.expert_count: 8 is not supported (this family has no experts)",
                   (struct change){.architecture = "qwen2", .key = "expert_count", .value = 8});
    assert_int_equal(spec_with((struct change){.key = "expert_count", .value = 0}).n_layer, LAYERS);
}

static void experts_must_fit(void **state) {
    (void)state;
    check_rejected(STATUS_FORMAT, "missing key llama.expert_used_count",
                   (struct change){.key = "expert_count", .value = 8});
    check_rejected(STATUS_FORMAT, "llama.expert_count: 1025 is out of range (0 to 1024)",
                   (struct change){.key = "expert_count", .value = 1025});
    check_rejected(STATUS_FORMAT, "missing key qwen3moe.expert_count", (struct change){.architecture = "qwen3moe"});
    check_rejected(STATUS_FORMAT, "qwen3moe.expert_count: 0 is out of range (1 to 1024)",
                   (struct change){.architecture = "qwen3moe", .key = "expert_count", .value = 0});
}

static void missing_tensors_are_rejected(void **state) {
    (void)state;
    for (int i = 0; i < TENSORS; i++) {
        const char *name = plain_tensors[i].name;
        if (!strcmp(name, "output.weight") || !strcmp(name, "rope_freqs.weight")) continue;
        char why[100];
        snprintf(why, sizeof why, "missing tensor %s", name);
        check_rejected(STATUS_FORMAT, why, (struct change){.without_tensor = name});
    }
}

static void families_need_their_own_tensors(void **state) {
    (void)state;
    check_rejected(STATUS_FORMAT, "missing tensor blk.0.attn_q.bias", (struct change){.architecture = "qwen2"});
    check_rejected(STATUS_FORMAT, "missing tensor blk.0.attn_q_norm.weight", (struct change){.architecture = "qwen3"});
    check_rejected(STATUS_UNSUPPORTED, "unexpected tensor blk.0.attn_q_norm.weight in a llama model of 2 layers",
                   (struct change){.tensor = "blk.0.attn_q_norm.weight", .dims = {HEAD}});
}

static void tensors_of_a_wrong_shape_are_rejected(void **state) {
    (void)state;
    for (int i = 0; i < TENSORS; i++) {
        char why[160];
        struct change c = {.tensor = plain_tensors[i].name,
                           .dims = {plain_tensors[i].columns + 32, plain_tensors[i].rows}};
        snprintf(why, sizeof why, "%s is [%d, %d, 1, 1], expected [%d, ", c.tensor, (int)c.dims[0],
                 (int)(c.dims[1] ? c.dims[1] : 1), (int)plain_tensors[i].columns);
        check_rejected(STATUS_FORMAT, why, c);
        c.dims[0] -= 32, c.dims[1] += 2;
        if (!strcmp(c.tensor, "token_embd.weight")) continue; // its rows define the vocabulary
        snprintf(why, sizeof why, "%s is [%d, %d, 1, 1], expected [", c.tensor, (int)c.dims[0], (int)c.dims[1]);
        check_rejected(STATUS_FORMAT, why, c);
    }
    check_rejected(STATUS_FORMAT, "blk.1.attn_q.weight is [32, 32, 2, 1], expected [32, 32]",
                   (struct change){.tensor = "blk.1.attn_q.weight", .dims = {32, 32, 2}});
}

static void norms_must_be_f32(void **state) {
    (void)state;
    check_rejected(STATUS_UNSUPPORTED, "blk.1.ffn_norm.weight: norms and biases must be F32, not F16",
                   (struct change){.tensor = "blk.1.ffn_norm.weight", .dims = {EMBD}, .type = 1});
    check_rejected(STATUS_UNSUPPORTED, "blk.0.attn_k.bias: norms and biases must be F32, not BF16",
                   (struct change){.tensor = "blk.0.attn_k.bias", .dims = {HEADS_KV * HEAD}, .type = 30});
    check_rejected(STATUS_UNSUPPORTED, "output_norm.weight: norms and biases must be F32, not Q8_0",
                   (struct change){.tensor = "output_norm.weight", .dims = {EMBD}, .type = 8});
}

static void unexpected_tensors_are_rejected(void **state) {
    (void)state;
    static const char *const names[] = {
        "blk.2.attn_q.weight",     "blk.0.attn_norm.bias",    "output.bias",         "blk.0.ffn_gate_exps.weight",
        "blk.0.ffn_gate.0.weight", "blk.0.attn_sinks.weight", "blk.00.attn_q.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char why[120];
        snprintf(why, sizeof why, "unexpected tensor %s in a llama model of 2 layers", names[i]);
        check_rejected(STATUS_UNSUPPORTED, why, (struct change){.tensor = names[i], .dims = {EMBD}});
    }
}

static void rope_divisors_must_be_positive(void **state) {
    (void)state;
    static const float more[] = {-1, -1.5f, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        check_rejected(STATUS_FORMAT,
                       "rope_freqs.weight: element 0 is not positive: ", (struct change){.more = more[i]});
}

static void the_vocabulary_must_match_the_tokenizer(void **state) {
    (void)state;
    check_rejected(STATUS_FORMAT, "token_embd.weight has 16 rows for 17 tokens", (struct change){.n_vocab = 17});
    check_rejected(STATUS_FORMAT, "output.weight is [32, 15, 1, 1], expected [32, 16]",
                   (struct change){.tensor = "output.weight", .dims = {EMBD, 15}});
    check_rejected(STATUS_LIMIT, "vocabulary of 2097153 tokens is too large (maximum 2097152)",
                   (struct change){.tensor = "token_embd.weight", .dims = {1, (1 << 21) + 1}});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_apply_to_missing_keys),
        cmocka_unit_test(keys_override_the_defaults),
        cmocka_unit_test(a_factor_alone_scales_rope_linearly),
        cmocka_unit_test(layers_may_differ),
        cmocka_unit_test(a_model_without_output_is_tied),
        cmocka_unit_test(tiny_models_of_every_kind_open),
        cmocka_unit_test(tiny_models_depend_on_their_seed_alone),
        cmocka_unit_test(tiny_vocabularies_are_valid),
        cmocka_unit_test(shared_models_open),
        cmocka_unit_test(unsupported_shared_files_say_why),
        cmocka_unit_test(unknown_architectures_are_rejected),
        cmocka_unit_test(missing_keys_are_rejected),
        cmocka_unit_test(values_out_of_range_are_rejected),
        cmocka_unit_test(heads_that_do_not_fit_are_rejected),
        cmocka_unit_test(arrays_must_fit_the_layers),
        cmocka_unit_test(wrong_types_are_rejected),
        cmocka_unit_test(unsupported_settings_are_rejected),
        cmocka_unit_test(experts_must_fit),
        cmocka_unit_test(missing_tensors_are_rejected),
        cmocka_unit_test(families_need_their_own_tensors),
        cmocka_unit_test(tensors_of_a_wrong_shape_are_rejected),
        cmocka_unit_test(norms_must_be_f32),
        cmocka_unit_test(unexpected_tensors_are_rejected),
        cmocka_unit_test(rope_divisors_must_be_positive),
        cmocka_unit_test(the_vocabulary_must_match_the_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
