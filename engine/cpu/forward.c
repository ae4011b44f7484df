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

// Whether rows are sooner done by one worker than shared out, which takes a barrier more: a row takes about as long as
// one of 16 workers.
static bool few(const struct worker *w, int n) { return n <= 1 + w->count / 16; }

// Something that is done row by row between two shared steps.
typedef void row_step(const struct pass *p, int layer, struct share rows, float *scratch);

// Ends a step, does what follows it for n rows, and makes that known to all, and whether the pass goes on. What
// precedes it must be through for all rows, but a worker's own rows follow each other without a barrier.
static void meet(struct pass *p, struct worker *w, row_step *step, int layer, int n) {
    const bool at_once = few(w, n);
    if (worker_arrive(w)) {
        if (p->batch->stop && !p->stopped) p->stopped = p->batch->stop(p->batch->stop_context);
        if (at_once) step(p, layer, (struct share){0, n}, worker_scratch(p->b, w));
        worker_release(w);
    }
    if (at_once) return;
    step(p, layer, row_share(w, n), worker_scratch(p->b, w));
    worker_barrier(w);
}

// Rows of the residual stream, normed, to an input.
static void norm_rows(const struct backend *b, const struct norm *norm, const struct input *out, struct share rows,
                      float *scratch) {
    const struct model_spec *s = b->spec;
    for (int row = rows.first; row < rows.end; row++) {
        const float *x = residual(b, row);
        if (norm->weight) b->kernels->norm[s->norm](x, norm->weight, norm->bias, scratch, s->n_embd, s->norm_epsilon);
        input_store(out, b->kernels, row, 0, s->n_embd, norm->weight ? scratch : x);
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
                            .stride = b->embd_stride,
                            .bias = bias,
                            .scale = later ? 1 : b->spec->residual_scale,
                            .add = !later};
}

static void add_later(const struct backend *b, const struct norm *post_norm, struct share rows) {
    if (!post_norm->weight) return;
    for (int row = rows.first; row < rows.end; row++) forward_add(b, row, embd_row(b, b->added, row), post_norm);
}

static int rows_after(const struct pass *p, int layer) {
    return layer < p->b->spec->n_layer - 1 ? p->batch->n_rows : p->n_kept;
}

static void norm_feed_rows(const struct pass *p, int layer, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const struct input in = input_sized(&l->inputs[INPUT_FEED], rows_after(p, layer));
    const bool same = b->spec->parallel && !l->feed_norm.weight;
    norm_rows(b, same ? &l->attention_norm : &l->feed_norm, &in, rows, scratch);
}

// What is wanted of rows behind the last layer: normed, to the output matrix, or to be handed on.
static void norm_kept_rows(const struct pass *p, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct norm *norm = &b->output_norm;
    const struct input in = input_sized(&b->logits_in, p->n_logits);
    for (int i = rows.first; i < rows.end; i++) {
        const float *x = residual(b, i);
        if (norm->weight) {
            b->kernels->norm[s->norm](x, norm->weight, norm->bias, scratch, s->n_embd, s->norm_epsilon);
            x = scratch;
        }
        const struct kept_row *kept = &b->kept[i];
        if (kept->logits >= 0) input_store(&in, b->kernels, kept->logits, 0, s->n_embd, x);
        if (kept->hidden >= 0)
            memcpy(b->hidden + (size_t)kept->hidden * (size_t)s->n_embd, x, (size_t)s->n_embd * sizeof *x);
    }
}

// What the first product of a layer reads, or after the last that of the logits.
static void begin_layer(const struct pass *p, int layer, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    if (layer == b->end_layer) {
        if (has_last_layer(b)) norm_kept_rows(p, rows, scratch);
        return;
    }
    const struct input in = input_sized(&b->layers[layer].inputs[INPUT_ATTENTION], p->batch->n_rows);
    norm_rows(b, &b->layers[layer].attention_norm, &in, rows, scratch);
    if (b->spec->parallel && layer < b->spec->n_layer - 1) norm_feed_rows(p, layer, rows, scratch);
}

static void end_attention(const struct pass *p, int layer, struct share rows, float *scratch) {
    add_later(p->b, &p->b->layers[layer].attention_post_norm, rows);
    if (!p->b->spec->parallel) norm_feed_rows(p, layer, rows, scratch);
}

static void end_feed(const struct pass *p, int layer, struct share rows, float *scratch) {
    const struct cpu_layer *l = &p->b->layers[layer];
    if (l->spec->experts) experts_add(p, layer, rows, scratch);
    else add_later(p->b, &l->feed_post_norm, rows);
    begin_layer(p, layer + 1, rows, scratch);
}

// --- stages ----------------------------------------------------------------------------------------------------------

static void embed_row(const struct pass *p, int row, int position) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct weight *embedding = &b->model->token_embd;
    const struct batch_row *from = &p->batch->rows[row];
    float *x = residual(b, row);
    if (b->first_layer)
        memcpy(x, p->batch->hidden + (size_t)row * (size_t)p->batch->hidden_stride, (size_t)s->n_embd * sizeof *x);
    else if (from->embedding) memcpy(x, from->embedding, (size_t)s->n_embd * sizeof *x);
    else {
        assert(from->token >= 0 && from->token < s->n_vocab);
        embedding->format->decode((const uint8_t *)embedding->data + (size_t)from->token * embedding->row_bytes, x,
                                  (size_t)s->n_embd);
        if (s->embedding_scale != 1)
            for (int i = 0; i < s->n_embd; i++) x[i] *= s->embedding_scale;
    }
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
    meet(p, w, begin_layer, p->b->first_layer, p->batch->n_rows);
    end_stage(p, w, STAGE_EMBED);
}

// Norms over all heads of a row together.
static void norm_heads(const struct pass *p, const struct cpu_layer *layer, struct share rows) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    for (int row = rows.first; row < rows.end; row++) {
        float *query = b->qkv + (size_t)row * (size_t)b->qkv_stride, *key = query + query_size(b, layer->spec);
        if (layer->query_norm.weight)
            b->kernels->norm[s->norm](query, layer->query_norm.weight, NULL, query, query_size(b, layer->spec),
                                      s->norm_epsilon);
        if (layer->key_norm.weight)
            b->kernels->norm[s->norm](key, layer->key_norm.weight, NULL, key, kv_size(b, layer->spec), s->norm_epsilon);
    }
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
    products_run(w, b->kernels, products, 3);
}

// Moves the residuals of the rows of which something is wanted to the front: from here on only they matter.
static void keep_output_rows(const struct pass *p, float *scratch) {
    const struct backend *b = p->b;
    for (int i = 0; i < p->n_kept; i++)
        memmove(residual(b, i), residual(b, b->kept[i].row), (size_t)b->spec->n_embd * sizeof(float));
    if (b->spec->parallel) norm_feed_rows(p, b->spec->n_layer - 1, (struct share){0, p->n_kept}, scratch);
}

static void store_item(const struct pass *p, int layer, int item, float *scratch) {
    const int heads = p->b->layers[layer].spec->n_head_kv;
    attention_store(p, layer, &p->b->page_ranges[item / heads], item % heads, scratch);
}

// Ends the projection, and stores keys and values.
static void store(struct pass *p, struct worker *w, int layer) {
    const struct cpu_layer *l = &p->b->layers[layer];
    const int n = p->batch->n_rows, n_items = p->n_page_ranges * l->spec->n_head_kv;
    const bool at_once = few(w, n), whole = p->b->spec->head_norm == HEAD_NORM_WHOLE;
    float *scratch = worker_scratch(p->b, w);
    if (worker_arrive(w)) {
        if (layer == p->b->spec->n_layer - 1) keep_output_rows(p, scratch);
        if (at_once && whole) norm_heads(p, l, (struct share){0, n});
        for (int item = 0; at_once && item < n_items; item++) store_item(p, layer, item, scratch);
        worker_release(w);
    }
    end_stage(p, w, STAGE_PROJECT);
    if (at_once) return;
    if (whole) {
        norm_heads(p, l, row_share(w, n));
        worker_barrier(w);
    }
    for (int item; (item = worker_next(w, n_items)) >= 0;) store_item(p, layer, item, scratch);
    worker_barrier(w);
}

static void attend(struct pass *p, struct worker *w, int layer) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const bool last = layer == b->spec->n_layer - 1;
    const int n = rows_after(p, layer), parts = attention_parts(b, layer);
    const struct input out = input_sized(&l->inputs[INPUT_ATTENDED], n);
    const struct attention_item *items = last ? b->output_items : b->query_items;
    const struct product end = branch_end(b, &l->output, &out, l->output_bias, &l->attention_post_norm);
    project(p, w, l);
    store(p, w, layer);
    const int n_items = last ? p->n_output_items : p->n_query_items;
    for (int item; (item = worker_next(w, n_items * parts)) >= 0;)
        attention_attend(p, layer, &items[item / parts], item % parts, &out, worker_scratch(b, w));
    worker_barrier(w);
    end_stage(p, w, STAGE_ATTEND);
    products_run(w, b->kernels, &end, 1);
    meet(p, w, end_attention, layer, n);
    end_stage(p, w, STAGE_PROJECT);
}

static void feed_dense(const struct pass *p, struct worker *w, const struct cpu_layer *layer, int n) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&layer->inputs[INPUT_FEED], n);
    const struct input middle = input_sized(&layer->inputs[INPUT_FEED_MIDDLE], n);
    const struct gated gated = {&layer->gate, &layer->up, layer->gate_bias, layer->up_bias, &in, &middle};
    const struct product down = branch_end(b, &layer->down, &middle, layer->down_bias, &layer->feed_post_norm);
    gated_run(w, b->kernels, b->spec->activation, &gated, 1);
    worker_barrier(w);
    products_run(w, b->kernels, &down, 1);
}

static void feed_experts(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const int n_slots = n * b->spec->experts.used;
    const bool at_once = few(w, n);
    float *scratch = worker_scratch(b, w);
    experts_route(p, w, layer, n);
    if (!at_once) {
        worker_barrier(w);
        experts_choose(p, layer, row_share(w, n), scratch);
    }
    if (worker_arrive(w)) {
        if (at_once) experts_choose(p, layer, (struct share){0, n}, scratch);
        experts_sort(p, layer, n);
        if (at_once) experts_gather(p, layer, n, (struct share){0, n_slots});
        worker_release(w);
    }
    if (!at_once) {
        experts_gather(p, layer, n, row_share(w, n_slots));
        worker_barrier(w);
    }
    gated_run(w, b->kernels, b->spec->activation, b->feed.gated, b->feed.n);
    worker_barrier(w);
    products_run(w, b->kernels, b->feed.down, b->feed.n);
}

static void feed(struct pass *p, struct worker *w, int layer) {
    const struct cpu_layer *l = &p->b->layers[layer];
    const int n = rows_after(p, layer);
    if (l->spec->experts) feed_experts(p, w, layer, n);
    else feed_dense(p, w, l, n);
    meet(p, w, end_feed, layer, n);
    end_stage(p, w, STAGE_FEED);
}

static void logits(struct pass *p, struct worker *w) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&b->logits_in, p->n_logits);
    const struct product product = {.matrix = &b->output,
                                    .in = &in,
                                    .out = b->logits,
                                    .stride = b->spec->n_vocab,
                                    .bias = b->output_bias,
                                    .scale = b->spec->logit_scale,
                                    .softcap = b->spec->logit_softcap};
    products_run(w, b->kernels, &product, 1);
    worker_barrier(w);
    end_stage(p, w, STAGE_LOGITS);
}

void forward(struct worker *w, void *pass) {
    struct pass *p = pass;
    embed(p, w);
    for (int i = p->b->first_layer; i < p->b->end_layer; i++) {
        attend(p, w, i);
        feed(p, w, i);
        if (p->stopped) return;
    }
    if (has_last_layer(p->b)) logits(p, w);
}
