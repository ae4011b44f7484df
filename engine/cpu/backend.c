// Opening, closing and running the CPU backend.
#include "engine/backend.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/cpu/cpu.h"

// --- buffers ---------------------------------------------------------------------------------------------------------

static bool open_buffers(struct backend *b, struct status *st) {
    const struct model_spec *s = b->spec;
    const uint64_t rows = (uint64_t)b->max_rows, workers = (uint64_t)thread_pool_size(b->pool);
    const size_t wide = (size_t)(s->n_embd > query_size(s) ? s->n_embd : query_size(s));
    b->scratch_size = (wide + attention_scratch(s) + 15) & ~(size_t)15;
    b->page_bytes = attention_page_bytes(s, b->exact);
    return (b->x = buffer_take(b, rows, (uint64_t)s->n_embd * sizeof *b->x, "residuals", st)) &&
           (b->qkv = buffer_take(b, rows, (uint64_t)qkv_size(s) * sizeof *b->qkv, "queries", st)) &&
           (b->rope = buffer_take(b, rows, (uint64_t)s->n_rot * sizeof *b->rope, "rotations", st)) &&
           (b->logits =
                buffer_take(b, (uint64_t)b->max_outputs, (uint64_t)s->n_vocab * sizeof *b->logits, "logits", st)) &&
           (b->page_ranges = buffer_take(b, rows, sizeof *b->page_ranges, "ranges", st)) &&
           (b->query_ranges = buffer_take(b, rows, sizeof *b->query_ranges, "ranges", st)) &&
           (b->output_ranges = buffer_take(b, rows, sizeof *b->output_ranges, "ranges", st)) &&
           (b->scratch = buffer_take(b, workers, b->scratch_size * sizeof *b->scratch, "scratch", st)) &&
           (b->kv = buffer_take(b, (uint64_t)b->n_pages, b->page_bytes * (uint64_t)s->n_layer, "the KV cache", st));
}

// The forms in which an input is kept follow from what reads it.
static void note_reader(struct input *in, const struct matrix *m) {
    in->columns = m->columns;
    in->wants_blocks |= m->prepared;
    in->wants_values |= !m->prepared;
}

static bool open_input(struct backend *b, struct input *in, int rows, struct status *st) {
    const uint64_t columns = (uint64_t)in->columns;
    if (in->wants_values && !(in->values = buffer_take(b, (uint64_t)rows, columns * sizeof(float), "activations", st)))
        return false;
    const uint64_t blocks = columns / BLOCK_COLUMNS * sizeof(struct activation_block);
    return !in->wants_blocks || (in->blocks = buffer_take(b, (uint64_t)rows, blocks, "activations", st));
}

static bool open_inputs(struct backend *b, struct status *st) {
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct cpu_layer *l = &b->layers[i];
        note_reader(&b->attention_in, &l->query);
        note_reader(&b->attention_in, &l->key);
        note_reader(&b->attention_in, &l->value);
        note_reader(&b->attention_out, &l->output);
        note_reader(&b->feed_in, &l->gate);
        note_reader(&b->feed_in, &l->up);
        note_reader(&b->feed_down, &l->down);
    }
    note_reader(&b->logits_in, &b->output);
    b->attention_out.wants_values |= attention_parts(b) != b->spec->n_head_kv;
    return open_input(b, &b->attention_in, b->max_rows, st) && open_input(b, &b->attention_out, b->max_rows, st) &&
           open_input(b, &b->feed_in, b->max_rows, st) && open_input(b, &b->feed_down, b->max_rows, st) &&
           open_input(b, &b->logits_in, b->max_outputs, st);
}

static void open_frequencies(struct backend *b) {
    const struct model_spec *s = b->spec;
    const struct weight *divisors = &b->model->rope_freqs;
    b->frequency = arena_alloc(&b->arena, (size_t)s->n_rot / 2 * sizeof *b->frequency + 1);
    for (int i = 0; i < s->n_rot / 2; i++) {
        float divisor = 1;
        if (divisors->format)
            memcpy(&divisor, (const uint8_t *)divisors->data + (size_t)i * sizeof divisor, sizeof divisor);
        b->frequency[i] = pow(s->rope_base, -2.0 * i / s->n_rot) / s->rope_scale / divisor;
    }
}

static double matrix_file_bytes(const struct matrix *m) { return (double)m->strip_bytes / STRIP_ROWS * m->rows; }

// What a pass reads and computes of the weights.
static void count_work(struct backend *b) {
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct cpu_layer *l = &b->layers[i];
        const struct matrix *all[] = {&l->query, &l->key, &l->value, &l->output, &l->gate, &l->up, &l->down};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            b->weight_bytes += matrix_file_bytes(all[k]);
            b->operations_a_row += 2.0 * all[k]->rows * all[k]->columns;
        }
    }
    b->output_bytes = matrix_file_bytes(&b->output);
    b->operations_an_output = 2.0 * b->output.rows * b->output.columns;
}

// --- the table of operations -----------------------------------------------------------------------------------------

static size_t cpu_page_bytes(const struct model_spec *spec, bool exact) {
    return attention_page_bytes(spec, exact) * (size_t)spec->n_layer;
}

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
    b->n_pages = params->n_pages;
    b->max_rows = params->max_rows;
    b->max_outputs = params->max_outputs;
    b->exact = params->exact;
    b->kernels = params->exact ? &kernels_exact : kernels_choose();
    snprintf(b->description, sizeof b->description, "%s, %d thread%s", b->kernels->name, thread_pool_size(b->pool),
             thread_pool_size(b->pool) == 1 ? "" : "s");
    open_frequencies(b);
    if (!weights_open(b, st) || !open_buffers(b, st) || !open_inputs(b, st)) {
        cpu_close(b);
        return NULL;
    }
    count_work(b);
    return b;
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
    const int most = attention_range_rows(b->spec);
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
}

static void count_pass(const struct pass *p) {
    const struct backend *b = p->b;
    const struct model_spec *s = b->spec;
    const double rows = p->batch->n_rows, outputs = p->batch->n_outputs;
    p->work->bytes = b->weight_bytes + (outputs > 0 ? b->output_bytes : 0);
    p->work->operations = b->operations_a_row * rows + b->operations_an_output * outputs;
    for (int i = 0; i < p->n_query_ranges; i++) {
        const struct row_range *range = &b->query_ranges[i];
        const double context = range->position + (range->n_rows + 1) / 2.0;
        p->work->bytes += (double)attention_bytes(b, range->position) * s->n_layer;
        p->work->operations += 4.0 * context * range->n_rows * query_size(s) * s->n_layer;
    }
}

static float *cpu_run(struct backend *b, const struct batch *batch, struct backend_work *work, struct status *st) {
    (void)st; // the CPU does not fail
    assert(batch->n_rows > 0 && batch->n_rows <= b->max_rows && batch->n_outputs <= b->max_outputs);
    *work = (struct backend_work){0};
    struct pass pass = {.b = b, .batch = batch, .work = work, .stage_began = clock_seconds()};
    plan_pass(&pass);
    count_pass(&pass);
    thread_pool_run(b->pool, forward, &pass);
    return b->logits;
}

static void cpu_copy_page(struct backend *b, int32_t to, int32_t from, int n_tokens) {
    (void)n_tokens; // slots past them are never read, and whole pages copy fastest
    assert(to != from && to >= 0 && to < b->n_pages && from >= 0 && from < b->n_pages);
    for (int i = 0; i < b->spec->n_layer; i++) {
        uint8_t *layer = b->kv + (size_t)i * (size_t)b->n_pages * b->page_bytes;
        memcpy(layer + (size_t)to * b->page_bytes, layer + (size_t)from * b->page_bytes, b->page_bytes);
    }
}

static const char *cpu_describe(const struct backend *b) { return b->description; }

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .page_bytes = cpu_page_bytes,
    .open = cpu_open,
    .close = cpu_close,
    .run = cpu_run,
    .copy_page = cpu_copy_page,
    .describe = cpu_describe,
};
