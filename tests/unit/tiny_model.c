#include "tests/unit/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/tiny_blocks.h"
#include "tests/unit/tiny_vocab.h"

struct tiny_writer {
    struct gguf_writer file;
    struct tiny_model_options o;
    const char *architecture;
    int n_vocab;
    uint64_t random;
};

static const char *const architectures[TINY_FAMILY_COUNT] = {
    [TINY_LLAMA] = "llama", [TINY_LLAMA_ROPE_FREQS] = "llama", [TINY_QWEN2] = "qwen2", [TINY_QWEN3] = "qwen3"};

static uint64_t next_random(uint64_t *state) { // xorshift64
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Near enough to a standard normal: the sum of four uniform values.
static float next_normal(uint64_t *state) {
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += (float)(next_random(state) >> 40) * 0x1p-24f;
    return (sum - 2) * 1.7320508f;
}

static void choose(int *value, int otherwise) {
    if (*value == 0) *value = otherwise;
}

static struct tiny_model_options with_defaults(struct tiny_model_options o) {
    bool wide = block_formats[o.format].elements == 256;
    choose(&o.n_layer, 2);
    choose(&o.n_embd, wide ? 256 : 64);
    choose(&o.n_ff, wide ? 256 : 128);
    choose(&o.n_head, 4);
    choose(&o.n_head_kv, 2);
    choose(&o.head_size, o.n_embd / o.n_head * (o.family == TINY_QWEN3 ? 2 : 1));
    choose(&o.n_context, 512);
    return o;
}

static const char *family_key(const struct tiny_writer *t, const char *name) {
    static _Thread_local char key[64];
    snprintf(key, sizeof key, "%s.%s", t->architecture, name);
    return key;
}

static void write_keys(struct tiny_writer *t) {
    struct gguf_writer *w = &t->file;
    const struct tiny_model_options *o = &t->o;
    gguf_writer_string(w, "general.architecture", t->architecture);
    gguf_writer_string(w, "general.name", "tiny");
    gguf_writer_u32(w, family_key(t, "context_length"), (uint32_t)o->n_context);
    gguf_writer_u32(w, family_key(t, "embedding_length"), (uint32_t)o->n_embd);
    gguf_writer_u32(w, family_key(t, "block_count"), (uint32_t)o->n_layer);
    gguf_writer_u32(w, family_key(t, "feed_forward_length"), (uint32_t)o->n_ff);
    gguf_writer_u32(w, family_key(t, "attention.head_count"), (uint32_t)o->n_head);
    gguf_writer_u32(w, family_key(t, "attention.head_count_kv"), (uint32_t)o->n_head_kv);
    gguf_writer_float(w, family_key(t, "attention.layer_norm_rms_epsilon"), 1e-5f);
    gguf_writer_float(w, family_key(t, "rope.freq_base"), o->family == TINY_LLAMA ? 10000 : 500000);
    if (o->head_size * o->n_head != o->n_embd) {
        gguf_writer_u32(w, family_key(t, "attention.key_length"), (uint32_t)o->head_size);
        gguf_writer_u32(w, family_key(t, "attention.value_length"), (uint32_t)o->head_size);
    }
    t->n_vocab = o->pre ? tiny_vocab_byte_level(w, o->pre) : tiny_vocab_sentencepiece(w);
    if (o->chat_template) gguf_writer_string(w, "tokenizer.chat_template", o->chat_template);
}

// Random values of a mean and a spread, as a matrix of rows × columns; a vector has rows = 0.
static void write_random(struct tiny_writer *t, const char *name, enum block_id format, int rows, int columns,
                         float mean, float spread) {
    size_t n = (size_t)(rows ? rows : 1) * (size_t)columns;
    const struct block_format *f = &block_formats[format];
    float *values = xmalloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = mean + spread * next_normal(&t->random);
    size_t size = n / f->elements * f->bytes;
    void *blocks = xmalloc(size);
    tiny_quantise(format, values, n, blocks);
    uint64_t dims[2] = {(uint64_t)columns, (uint64_t)rows};
    gguf_writer_tensor(&t->file, name, f->gguf_type, rows ? 2 : 1, dims, blocks, size);
    free(blocks);
    free(values);
}

static void write_matrix(struct tiny_writer *t, const char *name, int rows, int columns) {
    write_random(t, name, t->o.format, rows, columns, 0, 1 / sqrtf((float)columns));
}

static void write_norm(struct tiny_writer *t, const char *name, int columns) {
    write_random(t, name, BLOCK_F32, 0, columns, 1, 0.1f);
}

static const char *layer_name(int layer, const char *name) {
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "blk.%d.%s", layer, name);
    return text;
}

static void write_layer(struct tiny_writer *t, int layer) {
    const struct tiny_model_options *o = &t->o;
    int n_query = o->n_head * o->head_size, n_value = o->n_head_kv * o->head_size;
    write_norm(t, layer_name(layer, "attn_norm.weight"), o->n_embd);
    write_matrix(t, layer_name(layer, "attn_q.weight"), n_query, o->n_embd);
    write_matrix(t, layer_name(layer, "attn_k.weight"), n_value, o->n_embd);
    write_matrix(t, layer_name(layer, "attn_v.weight"), n_value, o->n_embd);
    write_matrix(t, layer_name(layer, "attn_output.weight"), o->n_embd, n_query);
    if (o->family == TINY_QWEN2) {
        write_random(t, layer_name(layer, "attn_q.bias"), BLOCK_F32, 0, n_query, 0, 0.1f);
        write_random(t, layer_name(layer, "attn_k.bias"), BLOCK_F32, 0, n_value, 0, 0.1f);
        write_random(t, layer_name(layer, "attn_v.bias"), BLOCK_F32, 0, n_value, 0, 0.1f);
    }
    if (o->family == TINY_QWEN3) {
        write_norm(t, layer_name(layer, "attn_q_norm.weight"), o->head_size);
        write_norm(t, layer_name(layer, "attn_k_norm.weight"), o->head_size);
    }
    write_norm(t, layer_name(layer, "ffn_norm.weight"), o->n_embd);
    write_matrix(t, layer_name(layer, "ffn_gate.weight"), o->n_ff, o->n_embd);
    write_matrix(t, layer_name(layer, "ffn_up.weight"), o->n_ff, o->n_embd);
    write_matrix(t, layer_name(layer, "ffn_down.weight"), o->n_embd, o->n_ff);
}

// Divisors that grow with the wavelength, as llama 3 has them.
static void write_rope_freqs(struct tiny_writer *t) {
    int n = t->o.head_size / 2;
    float *divisors = xmalloc((size_t)n * sizeof *divisors);
    for (int i = 0; i < n; i++) divisors[i] = 1 + 7 * (float)i / (float)n;
    gguf_writer_tensor(&t->file, "rope_freqs.weight", 0, 1, &(uint64_t){(uint64_t)n}, divisors,
                       (size_t)n * sizeof *divisors);
    free(divisors);
}

void *tiny_model_bytes(struct tiny_model_options options, size_t *size) {
    struct tiny_writer t = {.o = with_defaults(options), .architecture = architectures[options.family]};
    t.random = (options.seed + 1) * 0x9e3779b97f4a7c15u | 1;
    write_keys(&t);
    write_random(&t, "token_embd.weight", t.o.format, t.n_vocab, t.o.n_embd, 0, 1);
    if (options.family == TINY_LLAMA_ROPE_FREQS) write_rope_freqs(&t);
    for (int layer = 0; layer < t.o.n_layer; layer++) write_layer(&t, layer);
    write_norm(&t, "output_norm.weight", t.o.n_embd);
    if (!options.tied) write_matrix(&t, "output.weight", t.n_vocab, t.o.n_embd);
    return gguf_writer_finish(&t.file, size);
}

void tiny_model_write(const char *path, struct tiny_model_options options) {
    size_t size;
    void *data = tiny_model_bytes(options, &size);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) panic("%s cannot be written", path);
    free(data);
}
