#include "tests/unit/tiny_shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/unit/gguf_writer.h"
#include "tests/unit/tiny_blocks.h"
#include "tests/unit/tiny_vocab.h"
#include "tests/unit/xorshift.h"

struct shape_writer {
    struct gguf_writer file;
    const struct tiny_shape *shape;
    int n_vocab, layer; // layer −1: outside the layers
    uint64_t random;
};

// ---- random numbers ----

// Near enough to a standard normal: the sum of four uniform values.
static float next_normal(uint64_t *state) {
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += (float)(xorshift(state) >> 40) * 0x1p-24f;
    return (sum - 2) * 1.7320508f;
}

// ---- tensors ----

static const char *full_name(const struct shape_writer *w, const char *name) {
    static _Thread_local char text[64];
    if (w->layer < 0) return name;
    snprintf(text, sizeof text, "blk.%d.%s", w->layer, name);
    return text;
}

static float *draw(struct shape_writer *w, size_t n, float mean, float spread) {
    float *values = xmalloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = mean + spread * next_normal(&w->random);
    return values;
}

// dims innermost first, up to the first 0.
static void write_values(struct shape_writer *w, const char *name, enum block_id format, const int dims[3],
                         const float *values) {
    uint64_t sizes[3];
    size_t n = 1;
    int n_dims = 0;
    for (; n_dims < 3 && dims[n_dims]; n_dims++) n *= sizes[n_dims] = (uint64_t)dims[n_dims];
    const struct block_format *f = &block_formats[format];
    const size_t size = n / f->elements * f->bytes;
    void *blocks = xmalloc(size);
    tiny_quantise(format, values, n, blocks);
    gguf_writer_tensor(&w->file, full_name(w, name), f->gguf_type, n_dims, sizes, blocks, size);
    free(blocks);
}

// A vector, or several.
static void write_vectors(struct shape_writer *w, const char *name, int columns, int rows, float mean, float spread) {
    float *values = draw(w, (size_t)columns * (size_t)(rows ? rows : 1), mean, spread);
    write_values(w, name, BLOCK_F32, (int[]){columns, rows, 0}, values);
    free(values);
}

static enum block_id format_for(const struct shape_writer *w, int columns) {
    const enum block_id wanted = w->shape->format;
    return (size_t)columns % block_formats[wanted].elements == 0 ? wanted : columns % 32 == 0 ? BLOCK_Q8_0 : BLOCK_F16;
}

// What a file may store as a matrix of its own or as some rows of a larger one.
struct piece {
    int rows, columns;
    float spread;              // over √columns
    int row_room, column_room; // what they are padded to with zeros; 0: not
};

static int room(int room, int size) { return room ? room : size; }

// Draws a piece of each of `count` matrices into out [count][rows of all pieces][columns], from row `first` on.
static void draw_piece(struct shape_writer *w, const struct piece *p, size_t count, size_t rows, size_t first,
                       float *out) {
    const size_t columns = (size_t)p->columns, width = (size_t)room(p->column_room, p->columns);
    float *values = draw(w, count * (size_t)p->rows * columns, 0, p->spread / sqrtf((float)p->columns));
    for (size_t m = 0, from = 0; m < count; m++)
        for (size_t r = 0; r < (size_t)p->rows; r++, from += columns)
            memcpy(out + (m * rows + first + r) * width, values + from, columns * sizeof *values);
    free(values);
}

// `count` matrices (0: one, of two dimensions), each of the pieces' rows, which have the same columns. The values do
// not depend on how pieces are put together: they are drawn piece by piece.
static void write_pieces(struct shape_writer *w, const char *name, int count, const struct piece *pieces,
                         int n_pieces) {
    const int width = room(pieces->column_room, pieces->columns);
    size_t rows = 0, first = 0, matrices = count ? (size_t)count : 1;
    for (int i = 0; i < n_pieces; i++) rows += (size_t)room(pieces[i].row_room, pieces[i].rows);
    float *all = xcalloc(matrices * rows * (size_t)width, sizeof *all);
    for (int i = 0; i < n_pieces; i++) {
        draw_piece(w, &pieces[i], matrices, rows, first, all);
        first += (size_t)room(pieces[i].row_room, pieces[i].rows);
    }
    write_values(w, name, format_for(w, width), (int[]){width, (int)rows, count}, all);
    free(all);
}

static void write_piece(struct shape_writer *w, const char *name, struct piece piece) {
    write_pieces(w, name, 0, &piece, 1);
}

static void write_matrix(struct shape_writer *w, const char *name, int rows, int columns) {
    write_piece(w, name, (struct piece){.rows = rows, .columns = columns, .spread = 1});
}

static void write_norm(struct shape_writer *w, const char *name, int columns, int rows) {
    write_vectors(w, name, columns, rows, 1, 0.3f);
}

static void write_bias(struct shape_writer *w, const char *name, int columns, int rows) {
    write_vectors(w, name, columns, rows, 0, 0.3f);
}

// Divisors of RoPE's angles: they grow with the wavelength, as those of real models do.
static void write_divisors(struct shape_writer *w, const char *name, float highest) {
    int n = (w->shape->n_rot ? w->shape->n_rot : w->shape->head_size) / 2;
    float *divisors = xmalloc((size_t)n * sizeof *divisors);
    for (int i = 0; i < n; i++) divisors[i] = 1 + (highest - 1) * (float)i / (float)n;
    gguf_writer_tensor(&w->file, name, 0, 1, &(uint64_t){(uint64_t)n}, divisors, (size_t)n * sizeof *divisors);
    free(divisors);
}

static bool has(const struct shape_writer *w, unsigned part) { return w->shape->parts & part; }

static void write_head_norms(struct shape_writer *w, int heads, int heads_kv) {
    const int size = w->shape->head_size;
    if (has(w, PART_HEAD_NORM_SHARED)) {
        write_norm(w, "attn_q_norm.weight", size, 0);
        write_norm(w, "attn_k_norm.weight", size, 0);
    }
    if (has(w, PART_HEAD_NORM_OWN)) {
        write_norm(w, "attn_q_norm.weight", size, heads);
        write_norm(w, "attn_k_norm.weight", size, heads_kv);
    }
    if (has(w, PART_HEAD_NORM_WHOLE)) {
        write_norm(w, "attn_q_norm.weight", size * heads, 0);
        write_norm(w, "attn_k_norm.weight", size * heads_kv, 0);
    }
}

static void write_qkv(struct shape_writer *w, int query, int value) {
    const struct tiny_shape *s = w->shape;
    const int query_room = tiny_shape_room(s, s->heads) * s->head_size,
              value_room = tiny_shape_room(s, s->heads_kv) * s->head_size;
    const struct piece pieces[] = {{query, s->n_embd, 1.2f, query_room, 0},
                                   {value, s->n_embd, 1.2f, value_room, 0},
                                   {value, s->n_embd, 1, value_room, 0}};
    const bool bias = has(w, PART_QKV_BIAS);
    if (s->storage & TINY_FUSED_QKV) {
        write_pieces(w, "attn_qkv.weight", 0, pieces, 3);
        if (bias) write_bias(w, "attn_qkv.bias", query + 2 * value, 0);
        return;
    }
    write_piece(w, "attn_q.weight", pieces[0]);
    write_piece(w, "attn_k.weight", pieces[1]);
    write_piece(w, "attn_v.weight", pieces[2]);
    if (bias) write_bias(w, "attn_q.bias", query, 0);
    if (bias) write_bias(w, "attn_k.bias", value, 0);
    if (bias) write_bias(w, "attn_v.bias", value, 0);
}

static void write_attention(struct shape_writer *w) {
    const struct tiny_shape *s = w->shape;
    const int heads = tiny_shape_of_layer(s->heads, s->n_head, w->layer),
              heads_kv = tiny_shape_of_layer(s->heads_kv, s->n_head_kv, w->layer);
    if (has(w, PART_ATTN_NORM)) write_norm(w, "attn_norm.weight", s->n_embd, 0);
    if (has(w, PART_NORM_BIAS)) write_bias(w, "attn_norm.bias", s->n_embd, 0);
    write_qkv(w, heads * s->head_size, heads_kv * s->head_size);
    write_head_norms(w, heads, heads_kv);
    if (has(w, PART_SINKS)) write_vectors(w, "attn_sinks.weight", heads, 0, 1, 1);
    write_piece(w, "attn_output.weight",
                (struct piece){.rows = s->n_embd,
                               .columns = heads * s->head_size,
                               .spread = 1,
                               .column_room = tiny_shape_room(s, s->heads) * s->head_size});
    if (has(w, PART_ATTN_OUTPUT_BIAS)) write_bias(w, "attn_output.bias", s->n_embd, 0);
    if (has(w, PART_POST_NORMS | PART_FFN_NORM_LATE)) write_norm(w, "post_attention_norm.weight", s->n_embd, 0);
}

static void write_dense(struct shape_writer *w) {
    const struct tiny_shape *s = w->shape;
    const int n_ff = tiny_shape_of_layer(s->ffs, s->n_ff, w->layer), n_room = tiny_shape_room(s, s->ffs);
    const struct piece half = {.rows = n_ff, .columns = s->n_embd, .spread = 1, .row_room = n_room};
    if (has(w, PART_GATE)) write_piece(w, "ffn_gate.weight", half);
    if (has(w, PART_GATE_BIAS)) write_bias(w, "ffn_gate.bias", n_ff, 0);
    write_pieces(w, "ffn_up.weight", 0, (struct piece[]){half, half}, has(w, PART_GATE_IN_UP) ? 2 : 1);
    if (has(w, PART_FFN_BIAS)) write_bias(w, "ffn_up.bias", n_ff, 0);
    write_piece(w, "ffn_down.weight",
                (struct piece){.rows = s->n_embd, .columns = n_ff, .spread = 1, .column_room = n_room});
    if (has(w, PART_FFN_BIAS)) write_bias(w, "ffn_down.bias", s->n_embd, 0);
}

static void write_expert_matrices(struct shape_writer *w, const char *stem, int rows, int columns) {
    char name[48];
    if (!(w->shape->storage & TINY_SINGLE_EXPERTS)) {
        snprintf(name, sizeof name, "%s_exps.weight", stem);
        write_pieces(w, name, w->shape->experts, &(struct piece){.rows = rows, .columns = columns, .spread = 1}, 1);
        return;
    }
    for (int e = 0; e < w->shape->experts; e++) {
        snprintf(name, sizeof name, "%s.%d.weight", stem, e);
        write_matrix(w, name, rows, columns);
    }
}

static void write_shared_expert(struct shape_writer *w) {
    const struct tiny_shape *s = w->shape;
    write_matrix(w, "ffn_gate_shexp.weight", s->n_ff_shared, s->n_embd);
    write_matrix(w, "ffn_up_shexp.weight", s->n_ff_shared, s->n_embd);
    write_matrix(w, "ffn_down_shexp.weight", s->n_embd, s->n_ff_shared);
    if (has(w, PART_SHARED_ROUTER))
        write_vectors(w, "ffn_gate_inp_shexp.weight", s->n_embd, 0, 0, 1 / sqrtf((float)s->n_embd));
}

static void write_experts(struct shape_writer *w) {
    const struct tiny_shape *s = w->shape;
    const int n_ff = s->n_ff_expert ? s->n_ff_expert : s->n_ff;
    write_vectors(w, "ffn_gate_inp.weight", s->n_embd, s->experts, 0, 2 / sqrtf((float)s->n_embd));
    if (has(w, PART_ROUTER_BIAS)) write_bias(w, "ffn_gate_inp.bias", s->experts, 0);
    if (has(w, PART_CHOICE_BIAS)) write_bias(w, "exp_probs_b.bias", s->experts, 0);
    const struct piece half = {.rows = n_ff, .columns = s->n_embd, .spread = 1};
    if (s->storage & TINY_FUSED_EXPERTS)
        write_pieces(w, "ffn_gate_up_exps.weight", s->experts, (struct piece[]){half, half}, 2);
    else {
        write_expert_matrices(w, "ffn_gate", n_ff, s->n_embd);
        write_expert_matrices(w, "ffn_up", n_ff, s->n_embd);
    }
    write_expert_matrices(w, "ffn_down", s->n_embd, n_ff);
    if (has(w, PART_EXPERT_BIAS)) {
        write_bias(w, "ffn_gate_exps.bias", n_ff, s->experts);
        write_bias(w, "ffn_up_exps.bias", n_ff, s->experts);
        write_bias(w, "ffn_down_exps.bias", s->n_embd, s->experts);
    }
    if (has(w, PART_SHARED_EXPERT)) write_shared_expert(w);
}

static void write_layer(struct shape_writer *w) {
    const struct tiny_shape *s = w->shape;
    write_attention(w);
    if (has(w, PART_FFN_NORM)) write_norm(w, "ffn_norm.weight", s->n_embd, 0);
    if (has(w, PART_FFN_NORM_BIAS)) write_bias(w, "ffn_norm.bias", s->n_embd, 0);
    if (s->experts && w->layer >= s->n_dense) write_experts(w);
    else write_dense(w);
    if (has(w, PART_POST_NORMS)) write_norm(w, "post_ffw_norm.weight", s->n_embd, 0);
}

void *tiny_shape_bytes(const struct tiny_shape *shape, size_t *size) {
    struct shape_writer w = {.shape = shape, .layer = -1};
    w.random = (shape->seed + 1) * 0x9e3779b97f4a7c15u | 1;
    tiny_shape_keys(&w.file, shape, "tiny");
    w.n_vocab = shape->pre ? tiny_vocab_byte_level(&w.file, shape->pre) : tiny_vocab_sentencepiece(&w.file);
    if (shape->chat_template) gguf_writer_string(&w.file, "tokenizer.chat_template", shape->chat_template);
    write_piece(&w, "token_embd.weight",
                (struct piece){.rows = w.n_vocab, .columns = shape->n_embd, .spread = sqrtf((float)shape->n_embd)});
    if (has(&w, PART_ROPE_FREQS)) write_divisors(&w, "rope_freqs.weight", 8);
    if (has(&w, PART_ROPE_FACTORS)) {
        write_divisors(&w, "rope_factors_long.weight", 12);
        write_divisors(&w, "rope_factors_short.weight", 1.5f);
    }
    for (w.layer = 0; w.layer < shape->n_layer; w.layer++) write_layer(&w);
    w.layer = -1;
    write_norm(&w, "output_norm.weight", shape->n_embd, 0);
    if (has(&w, PART_NORM_BIAS)) write_bias(&w, "output_norm.bias", shape->n_embd, 0);
    if (!(shape->storage & TINY_TIED)) write_matrix(&w, "output.weight", w.n_vocab, shape->n_embd);
    if (has(&w, PART_OUTPUT_BIAS)) write_bias(&w, "output.bias", w.n_vocab, 0);
    return gguf_writer_finish(&w.file, size);
}
