// The pass: embed; for every layer attend and feed; logits. Every worker runs all of it.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/cpu/cpu.h"

static void end_stage(struct pass *p, const struct worker *w, enum backend_stage stage) {
    if (w->index) return;
    double now = clock_seconds();
    p->work->stages[stage].seconds += now - p->stage_began;
    p->stage_began = now;
}

// --- rows ------------------------------------------------------------------------------------------------------------

// This worker's rows of the residual stream, normed, to an input. The caller puts a barrier after it.
static void norm_rows(const struct pass *p, const struct worker *w, const struct norm *norm, const struct input *out) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct share share = row_share(w, out->rows);
    float *normed = worker_scratch(b, w);
    for (int row = share.first; row < share.end; row++) {
        const float *x = residual(b, row);
        if (norm->weight) b->kernels->norm[s->norm](x, norm->weight, norm->bias, normed, s->n_embd, s->norm_epsilon);
        input_store(out, b->kernels, row, 0, s->n_embd, norm->weight ? normed : x);
    }
}

void forward_add(const struct backend *b, int row, float *added, const struct norm *post_norm) {
    const struct model_spec *s = b->spec;
    if (post_norm->weight)
        b->kernels->norm[s->norm](added, post_norm->weight, post_norm->bias, added, s->n_embd, s->norm_epsilon);
    b->kernels->accumulate(residual(b, row), added, s->n_embd, s->residual_scale);
}

// The last product of a branch: onto the residual stream at once, or first to where its post norm finds it.
static struct product branch_end(const struct backend *b, const struct matrix *m, const struct input *in,
                                 const float *bias, const struct norm *post_norm) {
    const bool later = post_norm->weight != NULL;
    return (struct product){.matrix = m,
                            .in = in,
                            .out = later ? b->added : b->x,
                            .stride = b->spec->n_embd,
                            .bias = bias,
                            .scale = later ? 1 : b->spec->residual_scale,
                            .add = !later};
}

static void add_later(const struct pass *p, const struct worker *w, int n, const struct norm *post_norm) {
    if (!post_norm->weight) return;
    const struct share share = row_share(w, n);
    for (int row = share.first; row < share.end; row++)
        forward_add(p->b, row, p->b->added + (size_t)row * (size_t)p->b->spec->n_embd, post_norm);
}

// --- stages ----------------------------------------------------------------------------------------------------------

static void embed_row(const struct pass *p, int row, int position) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct weight *embedding = &b->model->token_embd;
    const int token = p->batch->tokens[row];
    float *x = residual(b, row);
    assert(token >= 0 && token < s->n_vocab);
    embedding->format->decode((const uint8_t *)embedding->data + (size_t)token * embedding->row_bytes, x,
                              (size_t)s->n_embd);
    if (s->embedding_scale != 1)
        for (int i = 0; i < s->n_embd; i++) x[i] *= s->embedding_scale;
    for (int t = 0; t < ROPE_TABLES; t++) {
        if (!b->rope[t]) continue;
        float *table = b->rope[t] + (size_t)row * (size_t)s->rope.n_rot;
        for (int k = 0; k < s->rope.n_rot / 2; k++) {
            const double angle = position * b->frequency[t][k];
            table[2 * k] = (float)(cos(angle) * b->magnitude[t]);
            table[2 * k + 1] = (float)(sin(angle) * b->magnitude[t]);
        }
    }
}

static void embed(struct pass *p, struct worker *w) {
    for (int i = w->index; i < p->n_page_ranges; i += w->count) {
        const struct row_range *range = &p->b->page_ranges[i];
        for (int j = 0; j < range->n_rows; j++) embed_row(p, range->row + j, range->position + j);
    }
    worker_barrier(w);
    end_stage(p, w, STAGE_EMBED);
}

// Norms over all heads of a row together.
static void norm_heads(const struct pass *p, struct worker *w, const struct cpu_layer *layer) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct share share = row_share(w, p->batch->n_rows);
    for (int row = share.first; row < share.end; row++) {
        float *query = b->qkv + (size_t)row * (size_t)b->qkv_stride, *key = query + query_size(b, layer->spec);
        if (layer->query_norm.weight)
            b->kernels->norm[s->norm](query, layer->query_norm.weight, NULL, query, query_size(b, layer->spec),
                                      s->norm_epsilon);
        if (layer->key_norm.weight)
            b->kernels->norm[s->norm](key, layer->key_norm.weight, NULL, key, kv_size(b, layer->spec), s->norm_epsilon);
    }
    worker_barrier(w);
}

static void project(const struct pass *p, struct worker *w, const struct cpu_layer *layer) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&layer->inputs[INPUT_ATTENTION], p->batch->n_rows);
    const struct matrix *matrices[] = {&layer->query, &layer->key, &layer->value};
    const int starts[] = {0, query_size(b, layer->spec), query_size(b, layer->spec) + kv_size(b, layer->spec)};
    struct product products[3];
    for (int i = 0; i < 3; i++)
        products[i] = (struct product){.matrix = matrices[i],
                                       .in = &in,
                                       .out = b->qkv + starts[i],
                                       .stride = b->qkv_stride,
                                       .bias = layer->bias ? layer->bias + starts[i] : NULL,
                                       .scale = 1};
    norm_rows(p, w, &layer->attention_norm, &in);
    worker_barrier(w);
    products_run(w, b->kernels, products, 3);
    if (b->spec->head_norm == HEAD_NORM_WHOLE) norm_heads(p, w, layer);
}

// Moves the residuals of the rows whose logits are wanted to the front: from here on only they matter.
static void keep_output_rows(const struct pass *p) {
    const size_t bytes = (size_t)p->b->spec->n_embd * sizeof(float);
    for (int i = 0; i < p->batch->n_outputs; i++)
        memmove(residual(p->b, i), residual(p->b, p->batch->output_rows[i]), bytes);
}

static const struct norm *feed_norm(const struct backend *b, const struct cpu_layer *layer) {
    return b->spec->parallel && !layer->feed_norm.weight ? &layer->attention_norm : &layer->feed_norm;
}

static void attend(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const bool last = layer == b->spec->n_layer - 1;
    const int heads = l->spec->n_head_kv, parts = attention_parts(b, layer);
    project(p, w, l);
    end_stage(p, w, STAGE_PROJECT);
    for (int item; (item = worker_next(w, p->n_page_ranges * heads)) >= 0;)
        attention_store(p, layer, &b->page_ranges[item / heads], item % heads, worker_scratch(b, w));
    if (last && w->index == 0) keep_output_rows(p);
    worker_barrier(w);
    if (b->spec->parallel) { // while x is still the layer's input
        const struct input feed_in = input_sized(&l->inputs[INPUT_FEED], n);
        norm_rows(p, w, feed_norm(b, l), &feed_in);
    }
    const struct input out = input_sized(&l->inputs[INPUT_ATTENDED], n);
    const struct row_range *ranges = last ? b->output_ranges : b->query_ranges;
    const int n_ranges = last ? p->n_output_ranges : p->n_query_ranges;
    for (int item; (item = worker_next(w, n_ranges * parts)) >= 0;)
        attention_attend(p, layer, &ranges[item % n_ranges], item / n_ranges, &out, worker_scratch(b, w));
    worker_barrier(w);
    end_stage(p, w, STAGE_ATTEND);
    const struct product end = branch_end(b, &l->output, &out, l->output_bias, &l->attention_post_norm);
    products_run(w, b->kernels, &end, 1);
    add_later(p, w, n, &l->attention_post_norm);
    end_stage(p, w, STAGE_PROJECT);
}

static void feed_dense(const struct pass *p, struct worker *w, const struct cpu_layer *layer, int n) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&layer->inputs[INPUT_FEED], n);
    const struct input middle = input_sized(&layer->inputs[INPUT_FEED_MIDDLE], n);
    const struct gated gated = {&layer->gate, &layer->up, layer->gate_bias, layer->up_bias, &in, &middle};
    const struct product down = branch_end(b, &layer->down, &middle, layer->down_bias, &layer->feed_post_norm);
    gated_run(w, b->kernels, b->spec->activation, &gated, 1);
    products_run(w, b->kernels, &down, 1);
    add_later(p, w, n, &layer->feed_post_norm);
}

static void feed_experts(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    experts_choose(p, w, layer, n);
    worker_barrier(w);
    if (w->index == 0) experts_sort(p, layer, n);
    worker_barrier(w);
    experts_gather(p, w, layer, n);
    worker_barrier(w);
    gated_run(w, b->kernels, b->spec->activation, b->feed.gated, b->feed.n);
    products_run(w, b->kernels, b->feed.down, b->feed.n);
    experts_add(p, w, layer, n);
}

static void feed(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    if (!b->spec->parallel) {
        const struct input in = input_sized(&l->inputs[INPUT_FEED], n);
        norm_rows(p, w, feed_norm(b, l), &in);
        if (!l->spec->experts) worker_barrier(w); // experts are chosen row by row
    }
    if (l->spec->experts) feed_experts(p, w, layer, n);
    else feed_dense(p, w, l, n);
    end_stage(p, w, STAGE_FEED);
}

static void logits(struct pass *p, struct worker *w, int n) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&b->logits_in, n);
    const struct product product = {.matrix = &b->output,
                                    .in = &in,
                                    .out = b->logits,
                                    .stride = b->spec->n_vocab,
                                    .bias = b->output_bias,
                                    .scale = b->spec->logit_scale,
                                    .softcap = b->spec->logit_softcap};
    norm_rows(p, w, &b->output_norm, &in);
    worker_barrier(w);
    products_run(w, b->kernels, &product, 1);
    end_stage(p, w, STAGE_LOGITS);
}

void forward(struct worker *w, void *pass) {
    struct pass *p = pass;
    const int n_layer = p->b->spec->n_layer;
    embed(p, w);
    for (int i = 0; i < n_layer; i++) {
        const int n = i < n_layer - 1 ? p->batch->n_rows : p->batch->n_outputs;
        attend(p, w, i, n);
        feed(p, w, i, n);
    }
    logits(p, w, p->batch->n_outputs);
}
