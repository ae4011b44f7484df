// write_model SHAPE OUT: writes a GGUF file for benchmarks, with random weights in 16-bit floats, larger than any cache
// and the same every time. `confab quantize` converts it to the other formats.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/block.h"
#include "tests/unit/tiny_shape.h"
#include "tests/unit/xorshift.h"

enum { N_VOCAB = 32000, N_CONTEXT = 40960, ALIGNMENT = 32, MAX_TENSORS = 256, N_DRAWS = 1 << 16 };

#define EPSILON TINY_FLOAT("attention.layer_norm_rms_epsilon", 1e-5)

// clang-format off
static const struct tiny_shape shapes[] = {
    // 0.5 B parameters, as wide as TinyLlama
    {.name = "llama", .architecture = "llama", .n_context = N_CONTEXT, .n_layer = 8, .n_embd = 2048, .n_head = 32,
     .n_head_kv = 4, .head_size = 64, .n_ff = 5632, .keys = {EPSILON}},
    // 0.5 B parameters, 0.1 B of them active per token
    {.name = "experts", .architecture = "qwen3moe", .parts = PART_HEAD_NORM_SHARED, .n_context = N_CONTEXT,
     .n_layer = 8, .n_embd = 1024, .n_head = 16, .n_head_kv = 4, .head_size = 64, .n_ff = 512, .experts = 32, .used = 4,
     .n_ff_expert = 512, .keys = {EPSILON}},
};
// clang-format on

struct tensor {
    char name[48];
    uint64_t dims[3]; // innermost first
    uint32_t n_dims;
    bool vector;  // of ones, in 32-bit floats; otherwise a random matrix
    float spread; // standard deviation of the matmul's results for inputs of about 1
    uint64_t offset, bytes;
};

struct model_writer {
    const struct tiny_shape *shape;
    struct gguf_writer header;
    struct tensor tensors[MAX_TENSORS];
    int n_tensors;
    uint64_t size; // of the data
};

// ---- tensors ----

static struct tensor *add(struct model_writer *m, int layer, const char *name) {
    if (m->n_tensors == MAX_TENSORS) panic("too many tensors (maximum %d)", MAX_TENSORS);
    struct tensor *t = &m->tensors[m->n_tensors++];
    if (layer < 0) snprintf(t->name, sizeof t->name, "%s.weight", name);
    else snprintf(t->name, sizeof t->name, "blk.%d.%s.weight", layer, name);
    return t;
}

static void place(struct model_writer *m, struct tensor *t) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) n *= t->dims[i];
    t->bytes = n * (t->vector ? sizeof(float) : sizeof(uint16_t));
    t->offset = m->size;
    m->size += (t->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    gguf_writer_entry(&m->header, t->name, t->vector ? 0 : 1, t->n_dims, t->dims, t->offset);
}

static void add_norm(struct model_writer *m, int layer, const char *name, int size) {
    struct tensor *t = add(m, layer, name);
    t->vector = true;
    t->n_dims = 1;
    t->dims[0] = (uint64_t)size;
    place(m, t);
}

// count: of matrices in a three-dimensional tensor; 0: a single matrix of two dimensions.
static void add_matrix(struct model_writer *m, int layer, const char *name, int rows, int columns, int count,
                       float spread) {
    struct tensor *t = add(m, layer, name);
    t->n_dims = count ? 3 : 2;
    t->dims[0] = (uint64_t)columns, t->dims[1] = (uint64_t)rows, t->dims[2] = (uint64_t)count;
    t->spread = spread / sqrtf((float)columns);
    place(m, t);
}

static void add_layer(struct model_writer *m, int l) {
    const struct tiny_shape *s = m->shape;
    const int query = s->n_head * s->head_size, value = s->n_head_kv * s->head_size;
    add_norm(m, l, "attn_norm", s->n_embd);
    add_matrix(m, l, "attn_q", query, s->n_embd, 0, 1);
    add_matrix(m, l, "attn_k", value, s->n_embd, 0, 1);
    add_matrix(m, l, "attn_v", value, s->n_embd, 0, 1);
    if (s->parts & PART_HEAD_NORM_SHARED) add_norm(m, l, "attn_q_norm", s->head_size);
    if (s->parts & PART_HEAD_NORM_SHARED) add_norm(m, l, "attn_k_norm", s->head_size);
    add_matrix(m, l, "attn_output", s->n_embd, query, 0, 1);
    add_norm(m, l, "ffn_norm", s->n_embd);
    if (s->experts) add_matrix(m, l, "ffn_gate_inp", s->experts, s->n_embd, 0, 2);
    add_matrix(m, l, s->experts ? "ffn_gate_exps" : "ffn_gate", s->n_ff, s->n_embd, s->experts, 1);
    add_matrix(m, l, s->experts ? "ffn_up_exps" : "ffn_up", s->n_ff, s->n_embd, s->experts, 1);
    add_matrix(m, l, s->experts ? "ffn_down_exps" : "ffn_down", s->n_embd, s->n_ff, s->experts, 1);
}

static void add_tensors(struct model_writer *m) {
    const int n_embd = m->shape->n_embd;
    add_matrix(m, -1, "token_embd", N_VOCAB, n_embd, 0, sqrtf((float)n_embd));
    for (int l = 0; l < m->shape->n_layer; l++) add_layer(m, l);
    add_norm(m, -1, "output_norm", n_embd);
    add_matrix(m, -1, "output", N_VOCAB, n_embd, 0, 3); // as peaked as the probabilities of a trained model
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
    struct bytes texts = {0};
    static float scores[N_VOCAB];
    static int32_t types[N_VOCAB];
    char text[16];
    for (int i = 0; i < N_VOCAB; i++) {
        types[i] = name_token(i, text);
        scores[i] = (float)-i;
        bytes_string(&texts, text);
    }
    gguf_writer_string(&m->header, "tokenizer.ggml.model", "llama");
    gguf_writer_array(&m->header, "tokenizer.ggml.tokens", GGUF_STRING, N_VOCAB, texts.data, texts.size);
    gguf_writer_array(&m->header, "tokenizer.ggml.scores", GGUF_F32, N_VOCAB, scores, sizeof scores);
    gguf_writer_array(&m->header, "tokenizer.ggml.token_type", GGUF_I32, N_VOCAB, types, sizeof types);
    gguf_writer_u32(&m->header, "tokenizer.ggml.bos_token_id", 1);
    gguf_writer_u32(&m->header, "tokenizer.ggml.eos_token_id", 2);
    free(texts.data);
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

static void put(FILE *out, const void *data, size_t size) {
    if (fwrite(data, 1, size, out) != size) panic("cannot write: %s", strerror(errno));
}

static void write_tensor(FILE *out, const struct tensor *t, const float draws[N_DRAWS], uint64_t *random) {
    static uint16_t scaled[N_DRAWS], values[N_DRAWS];
    const float one = 1;
    static const char zeros[ALIGNMENT];
    for (uint64_t i = 0; t->vector && i < t->dims[0]; i++) put(out, &one, sizeof one);
    for (int i = 0; !t->vector && i < N_DRAWS; i++) scaled[i] = f16_from_f32(t->spread * draws[i]);
    for (uint64_t left = t->vector ? 0 : t->bytes / sizeof *values; left;) {
        const uint64_t n = left < N_DRAWS ? left : N_DRAWS;
        for (uint64_t i = 0; i < n; i++) values[i] = scaled[xorshift(random) >> 48];
        put(out, values, n * sizeof *values);
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
    for (int i = 0; i < m->n_tensors; i++) write_tensor(out, &m->tensors[i], draws, &random);
    if (fclose(out)) panic("%s: %s", path, strerror(errno));
    free(header);
}

int main(int argc, char **argv) {
    static struct model_writer m;
    for (size_t i = 0; argc == 3 && i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(argv[1], shapes[i].name)) m.shape = &shapes[i];
    if (!m.shape) {
        fprintf(stderr, "usage: write_model llama|experts OUT\n");
        return 2;
    }
    write_model(&m, argv[2]);
    return 0;
}
