// The pass: embed; for every layer attend and feed; logits. Every worker runs all of it.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/cpu/cpu.h"

static void end_stage(struct pass *p, const struct worker *w, enum backend_stage stage) {
    if (w->index) return;
    double now = clock_seconds();
    p->work->seconds[stage] += now - p->stage_began;
    p->stage_began = now;
}

static struct input sized(const struct input *in, int rows) {
    struct input out = *in;
    out.rows = rows;
    out.width = panel_width(rows);
    return out;
}

static void norm_row(const struct backend *b, const float *x, const float *weight, const struct input *out, int row,
                     float *scratch) {
    b->kernels->rms_norm(x, weight, scratch, b->spec->n_embd, b->spec->norm_epsilon);
    input_store(out, b->kernels, row, 0, b->spec->n_embd, scratch);
}

static void norm(const struct pass *p, struct worker *w, const float *weight, const struct input *out) {
    const struct backend *b = p->b;
    for (int row = w->index; row < out->rows; row += w->count)
        norm_row(b, b->x + (size_t)row * (size_t)b->spec->n_embd, weight, out, row, worker_scratch(b, w));
    worker_barrier(w);
}

// --- matrix products -------------------------------------------------------------------------------------------------

// Where a product's results go: out[row × stride + i] (+)= result i + bias[i].
struct product {
    const struct matrix *matrix;
    float *out;
    int stride;
    const float *bias; // or NULL
    bool add;
};

static void put_tile(const struct product *to, const float *tile, int strip, int first, int width) {
    const int left = to->matrix->rows - strip * STRIP_ROWS, n = left < STRIP_ROWS ? left : STRIP_ROWS;
    for (int c = 0; c < width; c++, tile += STRIP_ROWS) {
        float *out = to->out + (size_t)(first + c) * (size_t)to->stride + strip * STRIP_ROWS;
        const float *bias = to->bias ? to->bias + strip * STRIP_ROWS : NULL;
        if (to->add)
            for (int r = 0; r < n; r++) out[r] += tile[r];
        else if (bias)
            for (int r = 0; r < n; r++) out[r] = tile[r] + bias[r];
        else memcpy(out, tile, (size_t)n * sizeof *out);
    }
}

// Results lie far apart in memory: fetches them while the product is computed.
static void prefetch_tile(const struct product *to, int strip, int first, int width) {
    for (int c = 0; c < width; c++) {
        const float *out = to->out + (size_t)(first + c) * (size_t)to->stride + strip * STRIP_ROWS;
        __builtin_prefetch(out, 1);
        __builtin_prefetch(out + STRIP_ROWS / 2, 1);
    }
}

static void multiply_strip(const struct pass *p, const struct product *to, int strip, const struct input *in) {
    float tile[PANEL_COLUMNS * STRIP_ROWS];
    for (int first = 0; first < in->rows; first += in->width) {
        int width = in->rows - first < in->width ? in->rows - first : in->width;
        prefetch_tile(to, strip, first, width);
        matrix_strip(to->matrix, p->b->kernels, strip, in, first, width, tile);
        put_tile(to, tile, strip, first, width);
    }
}

// Strips that a worker takes at once: few enough that all finish together.
static int chunk_size(int n_strips, const struct worker *w) {
    int size = n_strips / (8 * w->count);
    return size < 1 ? 1 : size > 8 ? 8 : size;
}

// Several matrices that read one input, as one range of work.
static void multiply(const struct pass *p, struct worker *w, const struct product *products, int n_products,
                     const struct input *in) {
    int n_strips = 0;
    for (int i = 0; i < n_products; i++) n_strips += matrix_strips(products[i].matrix);
    const int chunk = chunk_size(n_strips, w), n_items = (n_strips + chunk - 1) / chunk;
    for (int item; (item = worker_next(w, n_items)) >= 0;) {
        const int end = (item + 1) * chunk < n_strips ? (item + 1) * chunk : n_strips;
        for (int i = item * chunk; i < end; i++) {
            const struct product *to = products;
            int strip = i;
            for (; strip >= matrix_strips(to->matrix); to++) strip -= matrix_strips(to->matrix);
            multiply_strip(p, to, strip, in);
        }
    }
    worker_barrier(w);
}

static void gate_strip(const struct pass *p, const struct cpu_layer *layer, int strip, const struct input *in,
                       const struct input *out) {
    const struct cpu_kernels *k = p->b->kernels;
    float gate[PANEL_COLUMNS * STRIP_ROWS], up[PANEL_COLUMNS * STRIP_ROWS];
    const int left = layer->gate.rows - strip * STRIP_ROWS, n = left < STRIP_ROWS ? left : STRIP_ROWS;
    for (int first = 0; first < in->rows; first += in->width) {
        int width = in->rows - first < in->width ? in->rows - first : in->width;
        memset(gate, 0, sizeof gate); // rows that a last strip lacks
        memset(up, 0, sizeof up);
        matrix_strip(&layer->gate, k, strip, in, first, width, gate);
        matrix_strip(&layer->up, k, strip, in, first, width, up);
        k->swiglu(gate, up, width * STRIP_ROWS);
        for (int c = 0; c < width; c++) input_store(out, k, first + c, strip * STRIP_ROWS, n, gate + c * STRIP_ROWS);
    }
}

// --- stages ----------------------------------------------------------------------------------------------------------

static void embed(struct pass *p, struct worker *w) {
    const struct backend *b = p->b;
    const struct weight *embedding = &b->model->token_embd;
    const int half = b->spec->n_rot / 2;
    for (int i = w->index; i < p->n_page_ranges; i += w->count) {
        const struct row_range *s = &b->page_ranges[i];
        for (int j = 0; j < s->n_rows; j++) {
            const int row = s->row + j, token = p->batch->tokens[row];
            assert(token >= 0 && token < b->spec->n_vocab);
            embedding->format->decode((const uint8_t *)embedding->data + (size_t)token * embedding->row_bytes,
                                      b->x + (size_t)row * (size_t)b->spec->n_embd, (size_t)b->spec->n_embd);
            float *table = b->rope + (size_t)row * (size_t)b->spec->n_rot;
            for (int k = 0; k < half; k++) {
                double angle = (s->position + j) * b->frequency[k];
                table[2 * k] = (float)cos(angle);
                table[2 * k + 1] = (float)sin(angle);
            }
        }
    }
    worker_barrier(w);
    end_stage(p, w, STAGE_EMBED);
}

static void project_qkv(struct pass *p, struct worker *w, const struct cpu_layer *layer) {
    const struct backend *b = p->b;
    const struct input in = sized(&b->attention_in, p->batch->n_rows);
    const int stride = qkv_size(b->spec), q = query_size(b->spec), kv = kv_size(b->spec);
    const float *bias = layer->bias;
    norm(p, w, layer->attention_norm, &in);
    multiply(p, w,
             (struct product[]){{&layer->query, b->qkv, stride, bias, false},
                                {&layer->key, b->qkv + q, stride, bias ? bias + q : NULL, false},
                                {&layer->value, b->qkv + q + kv, stride, bias ? bias + q + kv : NULL, false}},
             3, &in);
}

// Moves the residuals of the rows whose logits are wanted to the front: from here on only they matter.
static void keep_output_rows(struct pass *p) {
    const size_t n = (size_t)p->b->spec->n_embd;
    for (int i = 0; i < p->batch->n_outputs; i++)
        memmove(p->b->x + (size_t)i * n, p->b->x + (size_t)p->batch->output_rows[i] * n, n * sizeof *p->b->x);
}

static void attend(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const bool last = layer == b->spec->n_layer - 1;
    const int heads = b->spec->n_head_kv, parts = attention_parts(b);
    project_qkv(p, w, &b->layers[layer]);
    for (int item; (item = worker_next(w, p->n_page_ranges * heads)) >= 0;)
        attention_store(p, layer, &b->page_ranges[item / heads], item % heads, worker_scratch(b, w));
    if (last && w->index == 0) keep_output_rows(p);
    worker_barrier(w);
    const struct input out = sized(&b->attention_out, n);
    const struct row_range *ranges = last ? b->output_ranges : b->query_ranges;
    const int n_ranges = last ? p->n_output_ranges : p->n_query_ranges;
    for (int item; (item = worker_next(w, n_ranges * parts)) >= 0;)
        attention_attend(p, layer, &ranges[item % n_ranges], item / n_ranges, &out, worker_scratch(b, w));
    worker_barrier(w);
    multiply(p, w, &(struct product){&b->layers[layer].output, b->x, b->spec->n_embd, NULL, true}, 1, &out);
    end_stage(p, w, STAGE_ATTEND);
}

static void feed(struct pass *p, struct worker *w, const struct cpu_layer *layer, int n) {
    const struct backend *b = p->b;
    const struct input in = sized(&b->feed_in, n), out = sized(&b->feed_down, n);
    norm(p, w, layer->feed_norm, &in);
    const int n_strips = matrix_strips(&layer->gate);
    for (int strip; (strip = worker_next(w, n_strips)) >= 0;) gate_strip(p, layer, strip, &in, &out);
    worker_barrier(w);
    multiply(p, w, &(struct product){&layer->down, b->x, b->spec->n_embd, NULL, true}, 1, &out);
    end_stage(p, w, STAGE_FEED);
}

static void logits(struct pass *p, struct worker *w, int n) {
    const struct backend *b = p->b;
    const struct input in = sized(&b->logits_in, n);
    norm(p, w, b->output_norm, &in);
    multiply(p, w, &(struct product){&b->output, b->logits, b->spec->n_vocab, NULL, false}, 1, &in);
    end_stage(p, w, STAGE_LOGITS);
}

void forward(struct worker *w, void *pass) {
    struct pass *p = pass;
    const int n_layer = p->b->spec->n_layer;
    embed(p, w);
    for (int i = 0; i < n_layer; i++) {
        int n = i < n_layer - 1 ? p->batch->n_rows : p->batch->n_outputs;
        attend(p, w, i, n);
        feed(p, w, &p->b->layers[i], n);
    }
    logits(p, w, p->batch->n_outputs);
}
