// write_model SHAPE OUT [TYPE]: writes a GGUF file for benchmarks, with random weights, the same every time.
//
// Without a TYPE weights are 16-bit floats, which `confab quantize` converts. With one, the formats of the tensors are
// those that `confab quantize` chooses, except that MXFP4 is for experts and Q8_0 for everything else, as in gpt-oss.
// Blocks are drawn from a pool of encoded ones, so that gigabytes take seconds.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/block_encode.h"
#include "engine/quantize/quantize_plan.h"
#include "tests/unit/tiny_shape.h"
#include "tests/unit/xorshift.h"

enum {
    N_CONTEXT = 40960,
    ALIGNMENT = 32,
    MAX_TENSORS = 512,
    MAX_POOLS = 32,
    FLOAT_POOL_BITS = 16, // the numbers of blocks in a pool are powers of two
    BLOCK_POOL_BITS = 12,
    N_DRAWS = 256 << BLOCK_POOL_BITS, // the largest block has 256 weights
    BUFFER_BYTES = 1 << 20,
};

#define EPSILON TINY_FLOAT("attention.layer_norm_rms_epsilon", 1e-5)

struct bench_shape {
    struct tiny_shape tiny;
    int n_vocab;
};

#define LLAMA  .architecture = "llama", .n_context = N_CONTEXT
#define LLAMA3 LLAMA, .keys = {EPSILON, TINY_FLOAT("rope.freq_base", 500000)}
#define GPT_OSS                                                                                                        \
    .architecture = "gpt-oss",                                                                                         \
    .parts =                                                                                                           \
        PART_QKV_BIAS | PART_ATTN_OUTPUT_BIAS | PART_SINKS | PART_FFN_NORM_LATE | PART_ROUTER_BIAS | PART_EXPERT_BIAS, \
    .n_context = 131072,                                                                                               \
    .keys = {EPSILON,                                                                                                  \
             TINY_FLOAT("rope.freq_base", 150000),                                                                     \
             TINY_INT("attention.sliding_window", 128),                                                                \
             TINY_STRING("rope.scaling.type", "yarn"),                                                                 \
             TINY_FLOAT("rope.scaling.factor", 32),                                                                    \
             TINY_INT("rope.scaling.original_context_length", 4096)}

// clang-format off
static const struct bench_shape shapes[] = {
    // 0.5 B parameters, as wide as TinyLlama
    {{.name = "llama", LLAMA, .n_layer = 8, .n_embd = 2048, .n_head = 32, .n_head_kv = 4, .head_size = 64, .n_ff = 5632,
      .keys = {EPSILON}}, 32000},
    // 0.5 B parameters, 0.1 B of them active per token
    {{.name = "experts", .architecture = "qwen3moe", .parts = PART_HEAD_NORM_SHARED, .n_context = N_CONTEXT,
      .n_layer = 8, .n_embd = 1024, .n_head = 16, .n_head_kv = 4, .head_size = 64, .n_ff = 512, .experts = 32,
      .used = 4, .n_ff_expert = 512, .keys = {EPSILON}}, 32000},
    // real models
    {{.name = "tinyllama-1.1b", LLAMA, .n_layer = 22, .n_embd = 2048, .n_head = 32, .n_head_kv = 4, .head_size = 64,
      .n_ff = 5632, .keys = {EPSILON}}, 32000},
    {{.name = "llama3-8b", LLAMA3, .n_layer = 32, .n_embd = 4096, .n_head = 32, .n_head_kv = 8, .head_size = 128,
      .n_ff = 14336}, 128256},
    {{.name = "gpt-oss-20b", GPT_OSS, .n_layer = 24, .n_embd = 2880, .n_head = 64, .n_head_kv = 8, .head_size = 64,
      .n_ff = 2880, .experts = 32, .used = 4, .n_ff_expert = 2880}, 201088},
    // the same with everything small, to try a benchmark on any machine
    {{.name = "tinyllama-small", LLAMA, .n_layer = 2, .n_embd = 256, .n_head = 4, .n_head_kv = 2, .head_size = 64,
      .n_ff = 512, .keys = {EPSILON}}, 1000},
    {{.name = "llama3-small", LLAMA3, .n_layer = 2, .n_embd = 512, .n_head = 4, .n_head_kv = 1, .head_size = 128,
      .n_ff = 768}, 2000},
    {{.name = "gpt-oss-small", GPT_OSS, .n_layer = 2, .n_embd = 288, .n_head = 8, .n_head_kv = 1, .head_size = 64,
      .n_ff = 288, .experts = 8, .used = 4, .n_ff_expert = 288}, 2000},
};
// clang-format on

struct tensor {
    char name[48];
    uint64_t dims[4]; // innermost first
    int n_dims;
    const struct block_format *format;
    float spread; // standard deviation of the weights; 0: all are 1
    uint64_t offset, bytes;
};

// Encoded random weights. A format and spread share one, which saves most of the encoding.
struct pool {
    const struct block_format *format;
    float spread;
    int bits; // of an index
    uint8_t *blocks;
};

struct model_writer {
    const struct tiny_shape *shape;
    int n_vocab;
    bool quantised; // otherwise 16-bit floats
    struct quantize_plan plan, experts_plan;
    struct gguf_writer header;
    struct tensor tensors[MAX_TENSORS];
    int n_tensors;
    uint64_t size; // of the data
    struct pool pools[MAX_POOLS];
    int n_pools;
};

// ---- tensors ----

static struct tensor *add(struct model_writer *m, int layer, const char *name) {
    if (m->n_tensors == MAX_TENSORS) panic("too many tensors (maximum %d)", MAX_TENSORS);
    struct tensor *t = &m->tensors[m->n_tensors++];
    const char *suffix = strchr(name, '.') ? "" : ".weight";
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s%s", name, suffix);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s%s", layer, name, suffix);
    return t;
}

static const struct block_format *choose_format(const struct model_writer *m, const struct tensor *t) {
    if (!m->quantised) return &block_formats[BLOCK_F16];
    struct gguf_tensor like = {.name = {t->name, strlen(t->name)}, .n_dims = t->n_dims};
    memcpy(like.dims, t->dims, sizeof like.dims);
    return quantize_plan_choose(strstr(t->name, "_exps.") ? &m->experts_plan : &m->plan, &like).format;
}

static void place(struct model_writer *m, struct tensor *t) {
    uint64_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->dims[i];
    t->bytes = n / t->format->elements * t->format->bytes;
    t->offset = m->size;
    m->size += (t->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    gguf_writer_entry(&m->header, t->name, t->format->gguf_type, (uint32_t)t->n_dims, t->dims, t->offset);
}

// count: of vectors in a two-dimensional tensor; 0: a single vector.
static void add_vectors(struct model_writer *m, int layer, const char *name, int size, int count, float spread) {
    struct tensor *t = add(m, layer, name);
    t->n_dims = count ? 2 : 1;
    t->dims[0] = (uint64_t)size, t->dims[1] = (uint64_t)count;
    t->spread = spread;
    t->format = &block_formats[BLOCK_F32];
    place(m, t);
}

static void add_norm(struct model_writer *m, int layer, const char *name, int size) {
    add_vectors(m, layer, name, size, 0, 0);
}

static void add_bias(struct model_writer *m, int layer, const char *name, int size, int count) {
    add_vectors(m, layer, name, size, count, 0.1f);
}

// count: of matrices in a three-dimensional tensor; 0: a single matrix of two dimensions. spread: of the matmul's
// results for inputs of about 1.
static void add_matrix(struct model_writer *m, int layer, const char *name, int rows, int columns, int count,
                       float spread) {
    struct tensor *t = add(m, layer, name);
    t->n_dims = count ? 3 : 2;
    t->dims[0] = (uint64_t)columns, t->dims[1] = (uint64_t)rows, t->dims[2] = (uint64_t)count;
    t->spread = spread / sqrtf((float)columns);
    t->format = choose_format(m, t);
    place(m, t);
}

static void add_attention(struct model_writer *m, int l) {
    const struct tiny_shape *s = m->shape;
    const int query = s->n_head * s->head_size, value = s->n_head_kv * s->head_size;
    add_norm(m, l, "attn_norm", s->n_embd);
    add_matrix(m, l, "attn_q", query, s->n_embd, 0, 1);
    add_matrix(m, l, "attn_k", value, s->n_embd, 0, 1);
    add_matrix(m, l, "attn_v", value, s->n_embd, 0, 1);
    if (s->parts & PART_QKV_BIAS) {
        add_bias(m, l, "attn_q.bias", query, 0);
        add_bias(m, l, "attn_k.bias", value, 0);
        add_bias(m, l, "attn_v.bias", value, 0);
    }
    if (s->parts & PART_HEAD_NORM_SHARED) {
        add_norm(m, l, "attn_q_norm", s->head_size);
        add_norm(m, l, "attn_k_norm", s->head_size);
    }
    if (s->parts & PART_SINKS) add_vectors(m, l, "attn_sinks", s->n_head, 0, 1);
    add_matrix(m, l, "attn_output", s->n_embd, query, 0, 1);
    if (s->parts & PART_ATTN_OUTPUT_BIAS) add_bias(m, l, "attn_output.bias", s->n_embd, 0);
}

static void add_layer(struct model_writer *m, int l) {
    const struct tiny_shape *s = m->shape;
    add_attention(m, l);
    add_norm(m, l, s->parts & PART_FFN_NORM_LATE ? "post_attention_norm" : "ffn_norm", s->n_embd);
    if (s->experts) add_matrix(m, l, "ffn_gate_inp", s->experts, s->n_embd, 0, 2);
    if (s->parts & PART_ROUTER_BIAS) add_bias(m, l, "ffn_gate_inp.bias", s->experts, 0);
    add_matrix(m, l, s->experts ? "ffn_gate_exps" : "ffn_gate", s->n_ff, s->n_embd, s->experts, 1);
    add_matrix(m, l, s->experts ? "ffn_up_exps" : "ffn_up", s->n_ff, s->n_embd, s->experts, 1);
    add_matrix(m, l, s->experts ? "ffn_down_exps" : "ffn_down", s->n_embd, s->n_ff, s->experts, 1);
    if (s->parts & PART_EXPERT_BIAS) {
        add_bias(m, l, "ffn_gate_exps.bias", s->n_ff, s->experts);
        add_bias(m, l, "ffn_up_exps.bias", s->n_ff, s->experts);
        add_bias(m, l, "ffn_down_exps.bias", s->n_embd, s->experts);
    }
}

static void add_tensors(struct model_writer *m) {
    const int n_embd = m->shape->n_embd;
    add_matrix(m, -1, "token_embd", m->n_vocab, n_embd, 0, sqrtf((float)n_embd));
    for (int l = 0; l < m->shape->n_layer; l++) add_layer(m, l);
    add_norm(m, -1, "output_norm", n_embd);
    add_matrix(m, -1, "output", m->n_vocab, n_embd, 0, 3); // as peaked as the probabilities of a trained model
}

// ---- keys ----

static void add_shape(struct model_writer *m) {
    char name[32];
    snprintf(name, sizeof name, "random %s", m->shape->name);
    tiny_shape_keys(&m->header, m->shape, name);
}

enum token_type { TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6 };

// Three special tokens, all bytes, the ASCII characters, then made-up words.
static enum token_type name_token(int id, char out[16]) {
    static const char *const marks[] = {"<unk>", "<s>", "</s>"};
    if (id < 3) return snprintf(out, 16, "%s", marks[id]), id ? TOKEN_CONTROL : TOKEN_UNKNOWN;
    if ((id -= 3) < 256) return snprintf(out, 16, "<0x%02X>", (unsigned)id), TOKEN_BYTE;
    if ((id -= 256) < 94) return snprintf(out, 16, "%c", '!' + id), TOKEN_NORMAL;
    size_t n = (size_t)snprintf(out, 16, "\u2581"); // stands for a space
    for (id -= 94; id > 0; id = (id - 1) / 26) out[n++] = (char)('a' + (id - 1) % 26);
    out[n] = 0;
    return TOKEN_NORMAL;
}

static void add_vocabulary(struct model_writer *m) {
    const uint64_t n = (uint64_t)m->n_vocab;
    struct bytes texts = {0};
    float *scores = xmalloc(n * sizeof *scores);
    int32_t *types = xmalloc(n * sizeof *types);
    char text[16];
    for (int i = 0; i < m->n_vocab; i++) {
        types[i] = name_token(i, text);
        scores[i] = (float)-i;
        bytes_string(&texts, text);
    }
    gguf_writer_string(&m->header, "tokenizer.ggml.model", "llama");
    gguf_writer_array(&m->header, "tokenizer.ggml.tokens", GGUF_STRING, n, texts.data, texts.size);
    gguf_writer_array(&m->header, "tokenizer.ggml.scores", GGUF_F32, n, scores, n * sizeof *scores);
    gguf_writer_array(&m->header, "tokenizer.ggml.token_type", GGUF_I32, n, types, n * sizeof *types);
    gguf_writer_u32(&m->header, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(&m->header, "tokenizer.ggml.eos_token_id", 2);
    free(texts.data), free(scores), free(types);
}

// ---- data ----

// Draws from about a standard normal distribution.
static void fill_draws(float draws[N_DRAWS]) {
    uint64_t state = 1;
    for (int i = 0; i < N_DRAWS; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) sum += (double)(xorshift(&state) >> 11) / (1ull << 53);
        draws[i] = (float)(sum - 6);
    }
}

static const struct pool *find_pool(struct model_writer *m, const struct tensor *t, const float draws[N_DRAWS]) {
    for (const struct pool *p = m->pools; p < m->pools + m->n_pools; p++)
        if (p->format == t->format && p->spread == t->spread) return p;
    if (m->n_pools == MAX_POOLS) panic("too many pools (maximum %d)", MAX_POOLS);
    struct pool *p = &m->pools[m->n_pools++];
    const struct block_format *f = t->format;
    *p = (struct pool){f, t->spread, f->elements == 1 ? FLOAT_POOL_BITS : BLOCK_POOL_BITS, NULL};
    const size_t n = f->elements << p->bits;
    float *values = xmalloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = t->spread ? t->spread * draws[i] : 1;
    p->blocks = xmalloc(f->bytes << p->bits);
    block_encoders[f->id](values, n, p->blocks);
    free(values);
    return p;
}

static void put(FILE *out, const void *data, size_t size) {
    if (fwrite(data, 1, size, out) != size) panic("cannot write: %s", strerror(errno));
}

static void write_tensor(FILE *out, const struct tensor *t, const struct pool *pool, uint64_t *random) {
    static uint8_t buffer[BUFFER_BYTES];
    static const char zeros[ALIGNMENT];
    const size_t size = t->format->bytes, most = BUFFER_BYTES / size;
    for (uint64_t left = t->bytes / size; left;) {
        const size_t n = left < most ? (size_t)left : most;
        for (size_t i = 0; i < n; i++)
            memcpy(buffer + i * size, pool->blocks + (t->spread ? xorshift(random) >> (64 - pool->bits) : 0) * size,
                   size);
        put(out, buffer, n * size);
        left -= n;
    }
    put(out, zeros, (size_t)(-t->bytes % ALIGNMENT));
}

static void write_model(struct model_writer *m, const char *path) {
    static float draws[N_DRAWS];
    uint64_t random = 2;
    size_t size;
    add_shape(m);
    add_vocabulary(m);
    add_tensors(m);
    uint8_t *header = gguf_writer_finish(&m->header, &size);
    FILE *out = fopen(path, "wb");
    if (!out) panic("%s: %s", path, strerror(errno));
    put(out, header, size);
    fill_draws(draws);
    for (struct tensor *t = m->tensors; t < m->tensors + m->n_tensors; t++)
        write_tensor(out, t, find_pool(m, t, draws), &random);
    if (fclose(out)) panic("%s: %s", path, strerror(errno));
    for (int i = 0; i < m->n_pools; i++) free(m->pools[i].blocks);
    free(header);
}

// ---- the program ----

static struct quantize_plan make_plan(const struct tiny_shape *s, const struct quantize_type *type) {
    return (struct quantize_plan){
        .type = type, .n_layers = s->n_layer, .n_experts = s->experts, .shared_heads = s->n_head_kv < s->n_head};
}

static void choose_type(struct model_writer *m, const char *name) {
    struct status st = {0};
    const struct quantize_type *type = quantize_type_find(name, &st), *others = type;
    if (!type) panic("%s", st.text);
    if (type->format == BLOCK_MXFP4) others = quantize_type_find("Q8_0", &st);
    m->quantised = true;
    m->plan = make_plan(m->shape, others);
    m->experts_plan = make_plan(m->shape, type);
}

int main(int argc, char **argv) {
    static struct model_writer m;
    const struct bench_shape *const end = shapes + sizeof shapes / sizeof *shapes;
    for (const struct bench_shape *s = shapes; (argc == 3 || argc == 4) && s < end; s++)
        if (!strcmp(argv[1], s->tiny.name)) m.shape = &s->tiny, m.n_vocab = s->n_vocab;
    if (!m.shape) {
        fprintf(stderr, "usage: write_model SHAPE OUT [TYPE]\nshapes:");
        for (const struct bench_shape *s = shapes; s < end; s++) fprintf(stderr, " %s", s->tiny.name);
        fprintf(stderr, "\n");
        return 2;
    }
    if (argc == 4) choose_type(&m, argv[3]);
    write_model(&m, argv[2]);
    return 0;
}
