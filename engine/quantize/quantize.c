// Quantizing: reads a model, chooses formats (quantize_plan.h), writes a GGUF file.
//
// A tensor is split into pieces of whole blocks, regardless of its rows. Workers encode pieces; the calling thread
// writes them in batches. Errors are summed in the order of the pieces, so neither bytes nor errors depend on the
// number of threads.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/thread_pool.h"
#include "engine/format/block_encode.h"
#include "engine/format/gguf_write.h"
#include "engine/format/model_files.h"
#include "engine/quantize.h"
#include "engine/quantize/quantize_plan.h"

enum {
    PIECE = 8192,             // weights, a multiple of every block
    BATCH_PIECES = 512,       // per write
    QUANTIZATION_VERSION = 2, // general.quantization_version of these block formats
};

struct piece {
    double squared_error, squares;
    uint64_t bad; // the first weight of the piece that is not finite; UINT64_MAX: none
    bool bad_input;
};

struct owned_report {
    struct quantize_report report; // first, so that a pointer to it also points to the whole
    struct arena arena;
    struct quantize_tensor *tensors; // report.tensors
};

struct job {
    const struct quantize_params *params;
    struct gguf model;
    struct gguf_tensor *inputs, *outputs; // [n_tensors] in the order they are written
    struct owned_report *owned;
    struct thread_pool *pool;
    struct output_file file;
    struct gguf_write write;
    uint64_t n_weights, weights_done;
    // The current batch.
    const struct gguf_tensor *input, *output;
    uint64_t first, count; // weights
    uint8_t *blocks;       // room for a batch in any format
    struct piece pieces[BATCH_PIECES];
};

// ---- encoding ----

static uint64_t first_not_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return i;
    return UINT64_MAX;
}

static size_t bytes_of(const struct block_format *f, uint64_t n) { return (size_t)(n / f->elements * f->bytes); }

static void encode_piece(const struct block_format *from, const struct block_format *to, const uint8_t *in,
                         uint8_t *out, size_t n, struct piece *piece) {
    float x[PIECE], y[PIECE];
    *piece = (struct piece){.bad_input = true};
    from->decode(in, x, n);
    piece->bad = first_not_finite(x, n);
    if (piece->bad != UINT64_MAX) return;
    if (from == to) memcpy(out, in, bytes_of(to, n));
    else block_encoders[to->id](x, n, out);
    to->decode(out, y, n);
    piece->bad_input = false;
    piece->bad = first_not_finite(y, n);
    for (size_t i = 0; i < n; i++) {
        double error = (double)y[i] - (double)x[i];
        piece->squared_error += error * error;
        piece->squares += (double)x[i] * (double)x[i];
    }
}

static void encode_pieces(struct worker *w, void *argument) {
    struct job *job = argument;
    const struct block_format *from = job->input->format, *to = job->output->format;
    const uint8_t *in = (const uint8_t *)job->input->data + bytes_of(from, job->first);
    int n_pieces = (int)((job->count + PIECE - 1) / PIECE);
    for (int i; (i = worker_next(w, n_pieces)) >= 0;) {
        uint64_t at = (uint64_t)i * PIECE, n = job->count - at < PIECE ? job->count - at : PIECE;
        encode_piece(from, to, in + bytes_of(from, at), job->blocks + bytes_of(to, at), (size_t)n, &job->pieces[i]);
    }
}

static bool not_finite(const struct job *job, const struct piece *piece, uint64_t at, struct status *st) {
    const struct gguf_tensor *t = job->input;
    float value[256];
    uint64_t index = job->first + at + piece->bad, block = index / t->format->elements;
    if (piece->bad_input)
        return status_fail(st, STATUS_NUMERIC, "%s: %.*s: weight %llu is not finite", job->model.path,
                           (int)t->name.size, t->name.data, (unsigned long long)index);
    t->format->decode((const uint8_t *)t->data + block * t->format->bytes, value, t->format->elements);
    return status_fail(st, STATUS_NUMERIC, "%s: %.*s: weight %llu: %g is out of range for %s", job->model.path,
                       (int)t->name.size, t->name.data, (unsigned long long)index,
                       (double)value[index % t->format->elements], job->output->format->name);
}

static bool sum_errors(const struct job *job, struct quantize_tensor *report, struct status *st) {
    for (uint64_t at = 0, i = 0; at < job->count; at += PIECE, i++) {
        const struct piece *piece = &job->pieces[i];
        if (piece->bad != UINT64_MAX) return not_finite(job, piece, at, st);
        report->squared_error += piece->squared_error;
        report->squares += piece->squares;
    }
    return true;
}

static bool report_progress(struct job *job, struct status *st) {
    const struct quantize_params *p = job->params;
    double done = job->n_weights ? (double)job->weights_done / (double)job->n_weights : 1;
    if (!p->progress || p->progress(p->progress_context, &job->owned->report, done)) return true;
    return status_fail(st, STATUS_CANCELLED, "cancelled: %s was not written", p->out);
}

static bool write_tensor(struct job *job, uint64_t i, struct status *st) {
    struct quantize_tensor *report = &job->owned->tensors[i];
    job->input = &job->inputs[i];
    job->output = &job->outputs[i];
    for (job->first = 0; job->first < report->n_weights; job->first += job->count) {
        uint64_t left = report->n_weights - job->first, batch = (uint64_t)PIECE * BATCH_PIECES;
        job->count = left < batch ? left : batch;
        thread_pool_run(job->pool, encode_pieces, job);
        if (!sum_errors(job, report, st) ||
            !gguf_write_data(&job->write, job->blocks, bytes_of(job->output->format, job->count), st))
            return false;
        job->weights_done += job->count;
        if (job->first + job->count < report->n_weights && !report_progress(job, st)) return false;
    }
    job->owned->report.n_done = i + 1;
    return gguf_write_pad(&job->write, st) && report_progress(job, st);
}

// ---- planning ----

static int compare_tensors(const void *a, const void *b) {
    const struct gguf_tensor *x = a, *y = b;
    int p = quantize_layer_of(x->name), q = quantize_layer_of(y->name);
    if (p != q) return p < q ? -1 : 1;
    return span_compare(x->name, y->name);
}

static bool plan_tensor(struct job *job, const struct quantize_plan *plan, uint64_t i, struct status *st) {
    struct gguf_tensor *in = &job->inputs[i], *out = &job->outputs[i];
    struct quantize_choice choice = quantize_plan_choose(plan, in);
    bool again = in->format->elements > 1 && choice.format->elements > 1 && in->format != choice.format;
    if (again && !job->params->requantize)
        return status_fail(st, STATUS_UNSUPPORTED,
                           "%s: %.*s is already quantised as %s (use the original model, or --requantize)",
                           job->model.path, (int)in->name.size, in->name.data, in->format->name);
    *out = *in;
    out->format = choice.format;
    out->size = gguf_tensor_bytes(out);
    struct owned_report *owned = job->owned;
    owned->tensors[i] = (struct quantize_tensor){
        .name = arena_copy(&owned->arena, in->name.data, in->name.size),
        .from = in->format->name,
        .to = out->format->name,
        .note = choice.note,
        .n_dims = in->n_dims,
        .dims = {in->dims[0], in->dims[1], in->dims[2], in->dims[3]},
        .n_weights = in->dims[0] * in->dims[1] * in->dims[2] * in->dims[3],
        .bytes = out->size,
    };
    owned->report.bytes_read += in->size;
    owned->report.bytes_written += out->size;
    job->n_weights += owned->tensors[i].n_weights;
    return true;
}

static bool plan_tensors(struct job *job, const struct quantize_type *type, struct status *st) {
    uint64_t n = job->model.n_tensors;
    if (!n) return status_fail(st, STATUS_FORMAT, "%s: no weights", job->model.path);
    struct arena *arena = &job->owned->arena;
    job->inputs = arena_array(arena, n, sizeof *job->inputs, st);
    job->outputs = arena_array(arena, n, sizeof *job->outputs, st);
    job->owned->tensors = arena_array(arena, n, sizeof *job->owned->tensors, st);
    if (!job->inputs || !job->outputs || !job->owned->tensors) return false;
    job->owned->report.tensors = job->owned->tensors;
    job->owned->report.n_tensors = n;
    memcpy(job->inputs, job->model.tensors, n * sizeof *job->inputs);
    qsort(job->inputs, n, sizeof *job->inputs, compare_tensors);
    struct quantize_plan plan = quantize_plan_make(&job->model, type);
    for (uint64_t i = 0; i < n; i++)
        if (!plan_tensor(job, &plan, i, st)) return false;
    return true;
}

// ---- writing ----

// Keys that describe the input file, not the model.
static bool is_dropped(struct span key) {
    static const char *const dropped[] = {"general.file_type", "general.quantization_version", "general.alignment"};
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (span_equals(key, dropped[i])) return true;
    return key.size > 6 && !memcmp(key.data, "split.", 6);
}

static bool write_header(struct job *job, const struct quantize_type *type, struct status *st) {
    const uint32_t file_type = type->file_type, version = QUANTIZATION_VERSION;
    const struct gguf *g = &job->model;
    struct gguf_pair *pairs = arena_array(&job->owned->arena, g->n_pairs + 2, sizeof *pairs, st);
    if (!pairs) return false;
    struct gguf_contents contents = {.pairs = pairs, .tensors = job->outputs, .n_tensors = g->n_tensors};
    for (uint64_t i = 0; i < g->n_pairs; i++)
        if (!is_dropped(g->pairs[i].key)) pairs[contents.n_pairs++] = g->pairs[i];
    pairs[contents.n_pairs++] = gguf_pair_u32("general.file_type", &file_type);
    pairs[contents.n_pairs++] = gguf_pair_u32("general.quantization_version", &version);
    return gguf_write_begin(&job->write, &job->file, &contents, st);
}

static bool write_file(struct job *job, const struct quantize_type *type, struct status *st) {
    if (!output_file_open(&job->file, job->params->out, job->params->replace, st)) return false;
    bool done = write_header(job, type, st);
    for (uint64_t i = 0; done && i < job->model.n_tensors; i++) done = write_tensor(job, i, st);
    job->owned->report.file_bytes = job->write.at;
    if (done) return output_file_keep(&job->file, st);
    output_file_discard(&job->file);
    return false;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool run(struct job *job, const struct quantize_type *type, struct status *st) {
    const struct quantize_params *p = job->params;
    if (!plan_tensors(job, type, st)) return false;
    job->blocks = region_alloc((size_t)PIECE * BATCH_PIECES * sizeof(float));
    if (!job->blocks) return status_fail(st, STATUS_MEMORY, "cannot allocate a batch of weights");
    job->pool = thread_pool_open(p->n_threads > 0 ? p->n_threads : thread_pool_default_size(), st);
    bool done = job->pool && write_file(job, type, st);
    thread_pool_close(job->pool);
    region_free(job->blocks, (size_t)PIECE * BATCH_PIECES * sizeof(float));
    return done;
}

struct quantize_report *quantize_model(const struct quantize_params *p, struct status *st) {
    const struct quantize_type *type = quantize_type_find(p->type, st);
    if (!type) return NULL;
    if (same_file(p->in, p->out)) {
        status_fail(st, STATUS_USAGE, "%s: input and output are the same file", p->out);
        return NULL;
    }
    struct job *job = xcalloc(1, sizeof *job);
    struct owned_report *owned = xcalloc(1, sizeof *owned);
    double start = clock_seconds();
    job->params = p;
    job->owned = owned;
    bool done = model_files_open(&job->model, p->in, MODEL_FILES_RUN, st);
    if (done) {
        done = run(job, type, st);
        gguf_close(&job->model);
    }
    free(job);
    owned->report.seconds = clock_seconds() - start;
    if (done) return &owned->report;
    quantize_report_free(&owned->report);
    return NULL;
}

void quantize_report_free(struct quantize_report *r) {
    if (!r) return;
    struct owned_report *owned = (struct owned_report *)r;
    arena_free(&owned->arena);
    free(owned);
}
