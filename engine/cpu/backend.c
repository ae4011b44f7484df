// Opening, closing and running the CPU backend.
#include "engine/backend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/cpu/cpu.h"
#include "engine/model/rope.h"

static void open_frequencies(struct backend *b) {
    for (int i = 0; i < b->spec->n_layer; i++) {
        const enum rope_table table = b->layers[i].spec->rope;
        if (table == ROPE_TABLE_NONE || b->frequency[table]) continue;
        b->frequency[table] = arena_alloc(&b->arena, (size_t)b->spec->rope.n_rot / 2 * sizeof **b->frequency + 1);
        b->magnitude[table] = rope_frequencies(b->model, table, b->asked_context, b->frequency[table]);
    }
}

static void cost_add(struct stage_cost *cost, const struct matrix *m, bool outputs_only) {
    *(outputs_only ? &cost->output_bytes : &cost->bytes) += matrix_bytes(m);
    *(outputs_only ? &cost->output_operations : &cost->operations) += 2.0 * m->rows * m->columns;
}

// Of the last layer only what keys and values come from is needed of every row.
static void count_weights(struct backend *b) {
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct cpu_layer *l = &b->layers[i];
        const bool last = i == b->spec->n_layer - 1;
        const struct matrix *before[] = {&l->query, &l->key, &l->value};
        const struct matrix *feed[] = {&l->gate, &l->up, &l->down, &l->experts.router};
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            cost_add(&b->costs[STAGE_PROJECT], before[k], false);
        cost_add(&b->costs[STAGE_PROJECT], &l->output, last);
        for (size_t k = 0; k < sizeof feed / sizeof *feed; k++) cost_add(&b->costs[STAGE_FEED], feed[k], last);
    }
    cost_add(&b->costs[STAGE_LOGITS], &b->output, true);
}

// --- the table of operations -----------------------------------------------------------------------------------------

static void cpu_close(struct backend *b) {
    if (!b) return;
    for (int i = 0; i < b->n_regions; i++) region_free(b->regions[i].data, b->regions[i].size);
    arena_free(&b->arena);
    free(b);
}

static struct backend *cpu_open(const struct backend_params *params, struct status *st) {
    struct backend *b = xcalloc(1, sizeof *b);
    b->model = params->model;
    b->spec = &params->model->spec;
    b->pool = params->pool;
    b->n_workers = params->pool ? thread_pool_size(params->pool) : params->n_workers;
    b->n_pages = params->n_pages;
    b->max_rows = params->max_rows;
    b->max_outputs = params->max_outputs;
    b->context = params->context ? params->context : b->spec->n_context;
    b->asked_context = params->asked_context ? params->asked_context : b->spec->n_context;
    b->exact = params->options.exact;
    b->small_pages = params->options.small_pages;
    b->kv_layout = kv_layout_of(params->options.kv_type, params->options.exact, b->spec->head_size);
    b->kernels = params->options.exact ? &kernels_exact : kernels_choose();
    snprintf(b->description, sizeof b->description, "%s, %d thread%s", b->kernels->name, b->n_workers,
             b->n_workers == 1 ? "" : "s");
    bool opened = weights_open(b, &params->options, st);
    if (opened) open_frequencies(b);
    if (!opened || !buffers_open(b, st)) {
        cpu_close(b);
        return NULL;
    }
    count_weights(b);
    return b;
}

// Large buffers are address space only, until they are written to.
static bool cpu_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    assert(!params->pool);
    struct backend *b = cpu_open(params, st);
    if (!b) return false;
    *out = (struct backend_memory){.weights = b->weights_taken, .in_place = b->in_place, .kv = b->kv_bytes};
    out->buffers = b->taken - out->weights - out->kv;
    cpu_close(b);
    return true;
}

// Cuts the rows [first, first + n) of a segment into ranges that lie in one page and have at most max_rows rows.
static int cut_ranges(struct row_range *out, const struct batch_segment *s, int first, int n, int result,
                      int max_rows) {
    int count = 0;
    for (int row = first; row < first + n; count++) {
        const int position = s->position + row - s->first_row;
        int size = KV_PAGE_TOKENS - position % KV_PAGE_TOKENS;
        if (size > max_rows) size = max_rows;
        if (size > first + n - row) size = first + n - row;
        out[count] =
            (struct row_range){.segment = s, .row = row, .n_rows = size, .position = position, .result = result};
        row += size;
        result += size;
    }
    return count;
}

static void plan_pass(struct pass *p) {
    struct backend *b = p->b;
    const struct batch *batch = p->batch;
    const int most = b->range_rows;
    for (int i = 0, output = 0; i < batch->n_segments; i++) {
        const struct batch_segment *s = &batch->segments[i];
        p->n_page_ranges +=
            cut_ranges(b->page_ranges + p->n_page_ranges, s, s->first_row, s->n_rows, s->first_row, KV_PAGE_TOKENS);
        p->n_query_ranges +=
            cut_ranges(b->query_ranges + p->n_query_ranges, s, s->first_row, s->n_rows, s->first_row, most);
        while (output < batch->n_outputs && batch->output_rows[output] < s->first_row + s->n_rows) {
            int first = output++; // consecutive rows together
            while (output < batch->n_outputs && batch->output_rows[output] < s->first_row + s->n_rows &&
                   batch->output_rows[output] == batch->output_rows[output - 1] + 1)
                output++;
            p->n_output_ranges += cut_ranges(b->output_ranges + p->n_output_ranges, s, batch->output_rows[first],
                                             output - first, first, most);
        }
    }
    p->n_query_items = attention_plan(b, b->query_ranges, p->n_query_ranges, b->query_items);
    p->n_output_items = attention_plan(b, b->output_ranges, p->n_output_ranges, b->output_items);
}

static void count_attention(const struct pass *p, int layer) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->layers[layer];
    const bool last = layer == b->spec->n_layer - 1;
    const struct row_range *ranges = last ? b->output_ranges : b->query_ranges;
    const int n = last ? p->n_output_ranges : p->n_query_ranges;
    struct stage_work *work = &p->work->stages[STAGE_ATTEND];
    for (int i = 0; i < n; i++) {
        const double keys = attention_keys(l->spec, ranges[i].position);
        work->bytes += (double)l->page_bytes / KV_PAGE_TOKENS * (keys + ranges[i].n_rows - 1);
        work->operations += 4.0 * keys * ranges[i].n_rows * query_size(b, l->spec);
    }
}

static void count_pass(const struct pass *p) {
    const struct backend *b = p->b;
    const double rows = p->batch->n_rows, outputs = p->batch->n_outputs;
    for (int i = 0; i < STAGE_COUNT; i++) {
        const struct stage_cost *cost = &b->costs[i];
        p->work->stages[i].bytes = cost->bytes + (outputs > 0 ? cost->output_bytes : 0);
        p->work->stages[i].operations = cost->operations * rows + cost->output_operations * outputs;
    }
    p->work->stages[STAGE_EMBED].bytes = rows * (double)b->model->token_embd.row_bytes;
    for (int i = 0; i < b->spec->n_layer; i++) count_attention(p, i);
}

static void forward_with_cache(struct worker *w, void *pass) {
    matrix_use_cache(&((struct pass *)pass)->b->caches[w->index]);
    forward(w, pass);
}

static float *cpu_run(struct backend *b, const struct batch *batch, struct backend_work *work, struct status *st) {
    assert(batch->n_rows > 0 && batch->n_rows <= b->max_rows && batch->n_outputs <= b->max_outputs);
    *work = (struct backend_work){0};
    struct pass pass = {.b = b, .batch = batch, .work = work, .stage_began = clock_seconds()};
    plan_pass(&pass);
    count_pass(&pass);
    thread_pool_run(b->pool, b->preparation ? forward_with_cache : forward, &pass);
    if (!pass.stopped) return b->logits;
    status_fail(st, STATUS_CANCELLED, "the batch was given up");
    return NULL;
}

static void cpu_copy_page(struct backend *b, int32_t to, int32_t from, int n_tokens) {
    (void)n_tokens; // slots past them are never read, and whole pages copy fastest
    assert(to != from && to >= 0 && to < b->n_pages && from >= 0 && from < b->n_pages);
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct cpu_layer *l = &b->layers[i];
        const int heads = l->spec->n_head_kv;
        for (int head = 0; head < heads; head++)
            memcpy(kv_keys(&b->kv_layout, l->kv, b->n_pages, heads, to, head),
                   kv_keys(&b->kv_layout, l->kv, b->n_pages, heads, from, head), kv_head_bytes(&b->kv_layout));
    }
}

static const char *cpu_describe(const struct backend *b) { return b->description; }

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .measure = cpu_measure,
    .open = cpu_open,
    .close = cpu_close,
    .prepare = weights_prepare,
    .run = cpu_run,
    .copy_page = cpu_copy_page,
    .describe = cpu_describe,
};
