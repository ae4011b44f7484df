// The pass: embed; then every layer, attention and feed-forward; logits. Every worker runs all of it.
#include <assert.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/cpu/cpu.h"

static void end_stage(struct pass *p, const struct worker *w, enum backend_stage stage) {
    if (w->index) return;
    double now = clock_seconds();
    p->work->stages[stage].seconds += now - p->stage_began;
    p->stage_began = now;
}

// --- rows between two shared steps -----------------------------------------------------------------------------------

// What a worker does of so many rows: a share of them, the same each time, or all or none where they are few.
struct own_rows {
    struct share rows;
    bool few, leads; // leads: of the workers the one that does what cannot be shared out
};

// Ends a shared step: what it wrote is there. A few rows, which take about as long as a barrier of 16 workers, are left
// to one worker: the others wait here until it ends them, and have none.
static struct own_rows begin_rows(struct pass *p, struct worker *w, int n) {
    const bool few = n <= 1 + w->count / 16;
    if (!worker_arrive(w)) return (struct own_rows){few ? (struct share){0, 0} : row_share(w, n), few, false};
    if (p->batch->stop && !p->stopped) p->stopped = p->batch->stop(p->batch->stop_context);
    if (few) return (struct own_rows){{0, n}, true, true};
    worker_release(w);
    return (struct own_rows){row_share(w, n), false, true};
}

static void end_rows(struct worker *w, const struct own_rows *own) {
    if (!own->few) worker_barrier(w);
    else if (own->leads) worker_release(w);
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

// The last matmul of a branch: onto the residual stream at once, or first to where its post norm finds it.
static struct matmul branch_end(const struct backend *b, const struct matrix *m, const struct input *in,
                                const float *bias, const struct norm *post_norm) {
    const bool later = post_norm->weight != NULL;
    return (struct matmul){.matrix = m,
                           .in = in,
                           .out = later ? b->work.added : b->work.x,
                           .stride = b->work.embd_stride,
                           .bias = bias,
                           .scale = later ? 1 : b->spec->residual_scale,
                           .add = !later};
}

static void add_later(const struct backend *b, const struct norm *post_norm, struct share rows) {
    if (!post_norm->weight) return;
    for (int row = rows.first; row < rows.end; row++) forward_add(b, row, embd_row(b, b->work.added, row), post_norm);
}

static int rows_after(const struct pass *p, int layer) {
    return layer < p->b->spec->n_layer - 1 ? p->batch->n_rows : p->n_kept;
}

// What a layer's feed-forward reads.
static void norm_ffn_rows(const struct pass *p, int layer, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const struct input in = input_sized(&b->work.inputs[layer][INPUT_FFN], rows_after(p, layer));
    const bool same = b->spec->parallel && !l->ffn_norm.weight;
    norm_rows(b, same ? &l->attention_norm : &l->ffn_norm, &in, rows, scratch);
}

// What is wanted of rows behind the last layer: normed, to the output matrix, or to be handed on.
static void norm_kept_rows(const struct pass *p, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const struct norm *norm = &b->weights.output_norm;
    const struct input in = input_sized(&b->work.logits_in, p->n_logits);
    for (int i = rows.first; i < rows.end; i++) {
        const float *x = residual(b, i);
        if (norm->weight) {
            b->kernels->norm[s->norm](x, norm->weight, norm->bias, scratch, s->n_embd, s->norm_epsilon);
            x = scratch;
        }
        const struct kept_row *kept = &b->work.kept[i];
        if (kept->logits >= 0) input_store(&in, b->kernels, kept->logits, 0, s->n_embd, x);
        if (kept->hidden >= 0)
            memcpy(b->work.hidden + (size_t)kept->hidden * (size_t)s->n_embd, x, (size_t)s->n_embd * sizeof *x);
    }
}

// What a layer's attention reads, or behind the last layer what is wanted of rows.
static void begin_layer(const struct pass *p, int layer, struct share rows, float *scratch) {
    const struct backend *b = p->b;
    if (layer == b->end_layer) {
        if (has_last_layer(b)) norm_kept_rows(p, rows, scratch);
        return;
    }
    const struct input in = input_sized(&b->work.inputs[layer][INPUT_ATTENTION], p->batch->n_rows);
    norm_rows(b, &b->weights.layers[layer].attention_norm, &in, rows, scratch);
    if (b->spec->parallel && layer < b->spec->n_layer - 1) norm_ffn_rows(p, layer, rows, scratch);
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
    for (int t = 0; t < ROPE_TABLES; t++)
        if (b->work.rope[t])
            rope_rotation(&b->weights.rope, (enum rope_table)t, s->rope.n_rot, position,
                          b->work.rope[t] + (size_t)row * (size_t)s->rope.n_rot);
}

static void embed(struct pass *p, struct worker *w) {
    for (int i = w->index; i < p->n_page_ranges; i += w->count) {
        const struct row_range *range = &p->b->work.page_ranges[i];
        for (int j = 0; j < range->n_rows; j++) embed_row(p, range->row + j, range->position + j);
    }
    const struct own_rows own = begin_rows(p, w, p->batch->n_rows);
    begin_layer(p, p->b->first_layer, own.rows, worker_scratch(p->b, w));
    end_rows(w, &own);
    end_stage(p, w, STAGE_EMBED);
}

// Norms over all heads of a row together.
static void norm_heads(const struct pass *p, const struct cpu_layer *layer, struct share rows) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    for (int row = rows.first; row < rows.end; row++) {
        float *query = b->work.qkv + (size_t)row * (size_t)b->work.qkv_stride,
              *key = query + query_size(b, layer->spec);
        if (layer->query_norm.weight)
            b->kernels->norm[s->norm](query, layer->query_norm.weight, NULL, query, query_size(b, layer->spec),
                                      s->norm_epsilon);
        if (layer->key_norm.weight)
            b->kernels->norm[s->norm](key, layer->key_norm.weight, NULL, key, kv_size(b, layer->spec), s->norm_epsilon);
    }
}

static void store_item(const struct pass *p, int layer, int item, float *scratch) {
    const int heads = p->b->spec->layers[layer].n_head_kv;
    attention_store(p, layer, &p->b->work.page_ranges[item / heads], item % heads, scratch);
}

static void attend(struct pass *p, struct worker *w, int layer) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const struct input *inputs = b->work.inputs[layer];
    const bool last = layer == b->spec->n_layer - 1, whole_norm = b->spec->head_norm == HEAD_NORM_WHOLE;
    const int n = p->batch->n_rows, n_after = rows_after(p, layer);
    float *scratch = worker_scratch(b, w);

    const struct input normed = input_sized(&inputs[INPUT_ATTENTION], n);
    const struct matrix *matrices[] = {&l->query, &l->key, &l->value};
    const int starts[] = {0, query_size(b, l->spec), query_size(b, l->spec) + kv_size(b, l->spec)};
    struct matmul qkv[3];
    for (int i = 0; i < 3; i++)
        qkv[i] = (struct matmul){.matrix = matrices[i],
                                 .in = &normed,
                                 .out = b->work.qkv + starts[i],
                                 .stride = b->work.qkv_stride,
                                 .bias = l->bias ? l->bias + starts[i] : NULL,
                                 .scale = 1};
    matmul_run(w, b->kernels, qkv, 3);

    // Keys and values go to their pages. Behind those of the last layer only rows matter of which something is wanted:
    // their residuals move to the front.
    struct own_rows own = begin_rows(p, w, n);
    end_stage(p, w, STAGE_PROJECT);
    if (last && own.leads) {
        for (int i = 0; i < p->n_kept; i++)
            memmove(residual(b, i), residual(b, b->work.kept[i].row), (size_t)b->spec->n_embd * sizeof(float));
        if (b->spec->parallel) norm_ffn_rows(p, layer, (struct share){0, p->n_kept}, scratch);
    }
    if (whole_norm) {
        norm_heads(p, l, own.rows);
        if (!own.few) worker_barrier(w);
    }
    const int n_stores = p->n_page_ranges * l->spec->n_head_kv;
    if (!own.few)
        for (int item; (item = worker_next(w, n_stores)) >= 0;) store_item(p, layer, item, scratch);
    else if (own.leads)
        for (int item = 0; item < n_stores; item++) store_item(p, layer, item, scratch);
    end_rows(w, &own);

    const struct input attended = input_sized(&inputs[INPUT_ATTENDED], n_after);
    const struct attention_item *items = last ? b->work.output_items : b->work.query_items;
    const int n_items = last ? p->n_output_items : p->n_query_items, parts = attention_parts(b, layer);
    for (int item; (item = worker_next(w, n_items * parts)) >= 0;)
        attention_attend(p, layer, &items[item / parts], item % parts, &attended, scratch);
    worker_barrier(w);
    end_stage(p, w, STAGE_ATTEND);

    const struct matmul output = branch_end(b, &l->output, &attended, l->output_bias, &l->attention_post_norm);
    matmul_run(w, b->kernels, &output, 1);
    own = begin_rows(p, w, n_after);
    add_later(b, &l->attention_post_norm, own.rows);
    if (!b->spec->parallel) norm_ffn_rows(p, layer, own.rows, scratch);
    end_rows(w, &own);
    end_stage(p, w, STAGE_PROJECT);
}

static void ffn_dense(const struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const struct input in = input_sized(&b->work.inputs[layer][INPUT_FFN], n);
    const struct input middle = input_sized(&b->work.inputs[layer][INPUT_FFN_MIDDLE], n);
    const struct gated gated = {&l->gate, &l->up, l->gate_bias, l->up_bias, &in, &middle};
    const struct matmul down = branch_end(b, &l->down, &middle, l->down_bias, &l->ffn_post_norm);
    gated_run(w, b->kernels, b->spec->activation, &gated, 1);
    worker_barrier(w);
    matmul_run(w, b->kernels, &down, 1);
}

static void ffn_experts(struct pass *p, struct worker *w, int layer, int n) {
    const struct backend *b = p->b;
    const int n_slots = n * b->spec->experts.used;
    experts_route(p, w, layer, n);
    const struct own_rows own = begin_rows(p, w, n);
    experts_choose(p, layer, own.rows, worker_scratch(b, w));
    if (own.few && own.leads) {
        experts_sort(p, layer, n);
        experts_gather(p, layer, n, (struct share){0, n_slots});
    } else if (!own.few) {
        if (worker_arrive(w)) {
            experts_sort(p, layer, n);
            worker_release(w);
        }
        experts_gather(p, layer, n, row_share(w, n_slots));
    }
    end_rows(w, &own);
    gated_run(w, b->kernels, b->spec->activation, b->work.ffn.gated, b->work.ffn.n);
    worker_barrier(w);
    matmul_run(w, b->kernels, b->work.ffn.down, b->work.ffn.n);
}

static void ffn(struct pass *p, struct worker *w, int layer) {
    const struct cpu_layer *l = &p->b->weights.layers[layer];
    const int n = rows_after(p, layer);
    float *scratch = worker_scratch(p->b, w);
    if (l->spec->experts) ffn_experts(p, w, layer, n);
    else ffn_dense(p, w, layer, n);
    const struct own_rows own = begin_rows(p, w, n);
    if (l->spec->experts) experts_add(p, layer, own.rows, scratch);
    else add_later(p->b, &l->ffn_post_norm, own.rows);
    begin_layer(p, layer + 1, own.rows, scratch);
    end_rows(w, &own);
    end_stage(p, w, STAGE_FEED);
}

static void logits(struct pass *p, struct worker *w) {
    const struct backend *b = p->b;
    const struct input in = input_sized(&b->work.logits_in, p->n_logits);
    const struct matmul matmul = {.matrix = &b->weights.output,
                                  .in = &in,
                                  .out = b->work.logits,
                                  .stride = b->spec->n_vocab,
                                  .bias = b->weights.output_bias,
                                  .scale = b->spec->logit_scale,
                                  .softcap = b->spec->logit_softcap};
    matmul_run(w, b->kernels, &matmul, 1);
    worker_barrier(w);
    end_stage(p, w, STAGE_LOGITS);
}

void forward(struct worker *w, void *pass) {
    struct pass *p = pass;
    embed(p, w);
    for (int i = p->b->first_layer; i < p->b->end_layer; i++) {
        attend(p, w, i);
        ffn(p, w, i);
        if (p->stopped) return;
    }
    if (has_last_layer(p->b)) logits(p, w);
}
