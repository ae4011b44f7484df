// Opening, closing and running the CPU backend.
#include "engine/backend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/cpu/cpu.h"

static void cost_add(struct stage_cost *cost, const struct matrix *m, bool outputs_only) {
    *(outputs_only ? &cost->output_bytes : &cost->bytes) += matrix_bytes(m);
    *(outputs_only ? &cost->output_operations : &cost->operations) += 2.0 * m->rows * m->columns;
}

// Of the last layer only what keys and values come from is needed of every row.
static void count_weights(struct backend *b) {
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct cpu_layer *l = &b->weights.layers[i];
        const bool last = i == b->spec->n_layer - 1;
        const struct matrix *before[] = {&l->query, &l->key, &l->value};
        const struct matrix *ffn[] = {&l->gate, &l->up, &l->down, &l->experts.router};
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            cost_add(&b->weights.costs[STAGE_PROJECT], before[k], false);
        cost_add(&b->weights.costs[STAGE_PROJECT], &l->output, last);
        for (size_t k = 0; k < sizeof ffn / sizeof *ffn; k++) cost_add(&b->weights.costs[STAGE_FEED], ffn[k], last);
    }
    cost_add(&b->weights.costs[STAGE_LOGITS], &b->weights.output, true);
}

// --- opening and closing ---------------------------------------------------------------------------------------------

// Small models run on one thread unless more are asked for. Threads meet some seven times a layer; where another
// program holds one core, each meeting may wait for its time slice. Tokens a second of one and eight conversations on
// two cores, by one thread and by two:
//              alone on the machine             beside other programs
//      3 MiB   12400 → 17400, 20200 → 28200     9100 → 150,   9200 → 1600
//     20 MiB    3300 →  2500,  5200 →  9500     2000 → 1100,  3400 → 1500
//     52 MiB     540 →   670,  2100 →  3100      350 → 140,   1100 → 560
// Below the bound one thread is faster than anybody reads, in any company.
static int threads_for(const struct backend_params *params) {
    if (params->n_threads > 0) return params->n_threads;
    return params->model->weight_bytes <= MODEL_SMALL_BYTES ? 1 : thread_pool_default_size();
}

static void cpu_close(struct backend *b) {
    if (!b) return;
    for (int i = 0; i < b->memory.n_regions; i++) region_free(b->memory.regions[i].data, b->memory.regions[i].size);
    arena_free(&b->memory.arena);
    thread_pool_close(b->pool);
    free(b);
}

static void describe(struct backend *b) {
    static const char *const layouts[KV_LAYOUTS] = {"f16", "bf16", "q8_0", "q4_0", "f32"};
    struct backend_info *info = &b->info;
    *info = (struct backend_info){.n_threads = b->n_workers, .n_workers = b->n_workers};
    info->rows_equal = !b->kernels->rows_differ;
    snprintf(info->description, sizeof info->description, "%s, %d thread%s", b->kernels->name, b->n_workers,
             b->n_workers == 1 ? "" : "s");
    snprintf(info->page_layout, sizeof info->page_layout, "cpu %s", layouts[b->kv.layout.layout]);
    info->page_bytes = b->kv.page_bytes;
}

// Without a pool: only to be measured. Large buffers are address space only, until they are written to.
static struct backend *open_with(struct thread_pool *pool, const struct backend_params *params, struct status *st) {
    struct backend *b = xcalloc(1, sizeof *b);
    b->model = params->model;
    b->spec = &params->model->spec;
    b->pool = pool;
    b->n_workers = threads_for(params);
    b->first_layer = params->first_layer;
    b->end_layer = params->end_layer ? params->end_layer : b->spec->n_layer;
    b->max_rows = params->max_rows;
    b->max_logits = params->max_logits;
    b->max_hidden = params->max_hidden;
    b->context = params->context ? params->context : b->spec->n_context;
    b->asked_context = params->asked_context ? params->asked_context : b->spec->n_context;
    b->exact = params->options.exact;
    b->memory.small_pages = params->options.small_pages;
    b->kv = (struct cpu_kv){.n_pages = params->n_pages,
                            .layout = kv_layout_of(params->options.kv_type, params->options.exact, b->spec->head_size)};
    b->kernels = params->options.exact ? &kernels_exact : kernels_choose();
    bool opened = weights_open(b, &params->options, st);
    if (opened)
        rope_tables_open(&b->weights.rope, b->model, b->first_layer, b->end_layer, b->asked_context, &b->memory.arena);
    if (!opened || !buffers_open(b, st)) {
        cpu_close(b);
        return NULL;
    }
    count_weights(b);
    describe(b);
    return b;
}

static struct backend *cpu_open(const struct backend_params *params, struct status *st) {
    struct thread_pool *pool = thread_pool_open(threads_for(params), st);
    return pool ? open_with(pool, params, st) : NULL;
}

static bool cpu_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    struct backend *b = open_with(NULL, params, st);
    if (!b) return false;
    *out = (struct backend_memory){.weights = b->weights.taken, .in_place = b->weights.in_place, .kv = b->kv.bytes};
    out->buffers = b->memory.taken - out->weights - out->kv;
    cpu_close(b);
    return true;
}

// --- a pass ----------------------------------------------------------------------------------------------------------

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

// Keeps the rows from this one on of which something is wanted, up to one of which nothing is; returns how many.
static int keep_rows(struct pass *p, int row, int end) {
    const struct batch_row *rows = p->batch->rows;
    int n = 0;
    for (; row + n < end && rows[row + n].output; n++)
        p->b->work.kept[p->n_kept++] =
            (struct kept_row){.row = row + n,
                              .logits = rows[row + n].output & ROW_LOGITS ? p->n_logits++ : -1,
                              .hidden = rows[row + n].output & ROW_HIDDEN ? p->n_hidden++ : -1};
    return n;
}

static void plan_pass(struct pass *p) {
    struct backend *b = p->b;
    const int most = b->work.range_rows;
    for (int i = 0; i < p->batch->n_segments; i++) {
        const struct batch_segment *s = &p->batch->segments[i];
        p->n_page_ranges += cut_ranges(b->work.page_ranges + p->n_page_ranges, s, s->first_row, s->n_rows, s->first_row,
                                       KV_PAGE_TOKENS);
        p->n_query_ranges +=
            cut_ranges(b->work.query_ranges + p->n_query_ranges, s, s->first_row, s->n_rows, s->first_row, most);
        for (int row = s->first_row, end = row + s->n_rows; row < end && has_last_layer(b); row++) {
            const int first = p->n_kept, n = keep_rows(p, row, end);
            p->n_output_ranges += cut_ranges(b->work.output_ranges + p->n_output_ranges, s, row, n, first, most);
            row += n;
        }
    }
    p->n_query_items = attention_plan(b, b->work.query_ranges, p->n_query_ranges, b->work.query_items);
    p->n_output_items = attention_plan(b, b->work.output_ranges, p->n_output_ranges, b->work.output_items);
    assert(p->n_logits <= b->max_logits && p->n_hidden <= b->max_hidden);
}

static void count_attention(const struct pass *p, int layer) {
    const struct backend *b = p->b;
    const struct cpu_layer *l = &b->weights.layers[layer];
    const bool last = layer == b->spec->n_layer - 1;
    const struct row_range *ranges = last ? b->work.output_ranges : b->work.query_ranges;
    const int n = last ? p->n_output_ranges : p->n_query_ranges;
    struct stage_work *work = &p->work->stages[STAGE_ATTEND];
    for (int i = 0; i < n; i++) {
        const double keys = attention_keys(l->spec, ranges[i].position);
        work->bytes += (double)b->kv.layers[layer].page_bytes / KV_PAGE_TOKENS * (keys + ranges[i].n_rows - 1);
        work->operations += 4.0 * keys * ranges[i].n_rows * query_size(b, l->spec);
    }
}

static void count_pass(const struct pass *p) {
    const struct backend *b = p->b;
    const double rows = p->batch->n_rows;
    for (int i = 0; i < STAGE_COUNT; i++) {
        const struct stage_cost *cost = &b->weights.costs[i];
        const double outputs = i == STAGE_LOGITS ? p->n_logits : p->n_kept;
        p->work->stages[i].bytes = cost->bytes + (outputs > 0 ? cost->output_bytes : 0);
        p->work->stages[i].operations = cost->operations * rows + cost->output_operations * outputs;
    }
    if (!b->first_layer) p->work->stages[STAGE_EMBED].bytes = rows * (double)b->model->token_embd.row_bytes;
    for (int i = b->first_layer; i < b->end_layer; i++) count_attention(p, i);
}

static void forward_with_cache(struct worker *w, void *pass) {
    matrix_use_cache(&((struct pass *)pass)->b->weights.caches[w->index]);
    forward(w, pass);
}

// --- a run -----------------------------------------------------------------------------------------------------------

static bool cpu_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    assert(batch->n_rows >= 0 && batch->n_rows <= b->max_rows);
    *out =
        (struct backend_result){.logits = b->work.logits, .hidden = b->work.hidden, .hidden_stride = b->spec->n_embd};
    if (!has_last_layer(b)) out->hidden = b->work.x, out->hidden_stride = b->work.embd_stride;
    struct pass pass = {.b = b, .batch = batch, .work = &out->work, .stage_began = clock_seconds()};
    if (batch->n_reads + batch->n_writes + batch->n_copies) thread_pool_run(b->pool, kv_move, &pass);
    if (!batch->n_rows) return true;
    plan_pass(&pass);
    count_pass(&pass);
    thread_pool_run(b->pool, b->weights.repack ? forward_with_cache : forward, &pass);
    if (!pass.stopped) return true;
    return status_fail(st, STATUS_CANCELLED, "the batch was given up");
}

// --- the table of operations -----------------------------------------------------------------------------------------

static void cpu_for_each(struct backend *b, int n, void (*item)(void *context, int i, int worker), void *context) {
    thread_pool_for_each(b->pool, n, item, context);
}

static const struct backend_info *cpu_info(const struct backend *b) { return &b->info; }

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .devices = cpu_devices,
    .heaps = cpu_heaps,
    .measure = cpu_measure,
    .open = cpu_open,
    .close = cpu_close,
    .repack = weights_repack,
    .run = cpu_run,
    .for_each = cpu_for_each,
    .info = cpu_info,
};
