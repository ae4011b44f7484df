// Binds a model's weights to the backend: vectors are copied, quantised matrices put into packed blocks, at once or,
// after a quick start, as soon as there is time.
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "engine/base/reader.h"
#include "engine/cpu/cpu.h"

enum { SMALLEST_PACKED = 1 << 20 }; // bytes of a buffer for packed blocks, so that it is a region of its own

// --- vectors ---------------------------------------------------------------------------------------------------------

static const float *copy_vector(struct backend *b, const struct weight *w) {
    if (!w->format) return NULL;
    const size_t n = (size_t)w->rows * (size_t)w->columns;
    float *copy = arena_alloc(&b->memory.arena, n * sizeof *copy);
    if (b->pool) memcpy(copy, w->data, n * sizeof *copy);
    return copy;
}

static struct norm copy_norm(struct backend *b, const struct weight *weight, const struct weight *bias) {
    return (struct norm){copy_vector(b, weight), bias ? copy_vector(b, bias) : NULL};
}

// The biases of queries, keys and values in one.
static const float *copy_bias(struct backend *b, const struct layer_spec *s, const struct model_layer *l) {
    if (!l->attn_q_bias.format && !l->attn_k_bias.format && !l->attn_v_bias.format) return NULL;
    float *bias = arena_alloc(&b->memory.arena, (size_t)qkv_size(b, s) * sizeof *bias); // what is absent is zero
    const struct {
        const struct weight *weight;
        int at;
    } parts[] = {
        {&l->attn_q_bias, 0},
        {&l->attn_k_bias, query_size(b, s)},
        {&l->attn_v_bias, query_size(b, s) + kv_size(b, s)},
    };
    for (int i = 0; i < 3; i++)
        if (b->pool && parts[i].weight->format)
            memcpy(bias + parts[i].at, parts[i].weight->data, (size_t)parts[i].weight->columns * sizeof *bias);
    return bias;
}

// A router is small and decides much: it is F32 whatever the file has.
static struct matrix copy_router(struct backend *b, const struct weight *w) {
    if (!w->format) return (struct matrix){0};
    float *values = arena_alloc(&b->memory.arena, (size_t)w->rows * (size_t)w->columns * sizeof *values);
    for (int64_t r = 0; b->pool && r < w->rows; r++)
        w->format->decode((const uint8_t *)w->data + (size_t)r * w->row_bytes, values + r * w->columns,
                          (size_t)w->columns);
    return matrix_in_place(
        &(struct weight){&block_formats[BLOCK_F32], values, w->rows, w->columns, (size_t)w->columns * sizeof *values});
}

static struct cpu_experts copy_experts(struct backend *b, const struct expert_weights *from) {
    const size_t bytes = (size_t)b->spec->experts.count * sizeof(struct matrix);
    return (struct cpu_experts){
        .router = copy_router(b, &from->router),
        .shared_router = copy_router(b, &from->shared_router),
        .router_bias = copy_vector(b, &from->router_bias),
        .choice_bias = copy_vector(b, &from->choice_bias),
        .gate = arena_alloc(&b->memory.arena, bytes),
        .up = arena_alloc(&b->memory.arena, bytes),
        .down = arena_alloc(&b->memory.arena, bytes),
        .gate_bias = copy_vector(b, &from->gate_bias),
        .up_bias = copy_vector(b, &from->up_bias),
        .down_bias = copy_vector(b, &from->down_bias),
    };
}

static struct cpu_layer copy_layer(struct backend *b, const struct layer_spec *spec, const struct model_layer *from) {
    return (struct cpu_layer){
        .spec = spec,
        .attention_norm = copy_norm(b, &from->attn_norm, &from->attn_norm_bias),
        .attention_post_norm = copy_norm(b, &from->attn_post_norm, NULL),
        .ffn_norm = copy_norm(b, &from->ffn_norm, &from->ffn_norm_bias),
        .ffn_post_norm = copy_norm(b, &from->ffn_post_norm, NULL),
        .query_norm = copy_norm(b, &from->attn_q_norm, NULL),
        .key_norm = copy_norm(b, &from->attn_k_norm, NULL),
        .bias = copy_bias(b, spec, from),
        .output_bias = copy_vector(b, &from->attn_output_bias),
        .gate_bias = copy_vector(b, &from->ffn_gate_bias),
        .up_bias = copy_vector(b, &from->ffn_up_bias),
        .down_bias = copy_vector(b, &from->ffn_down_bias),
        .sinks = copy_vector(b, &from->attn_sinks),
    };
}

// --- matrices --------------------------------------------------------------------------------------------------------

static void bind(struct bindings *all, const struct weight *weight, struct matrix *matrix) {
    if (weight->format) all->list[all->n++] = (struct binding){.weight = weight, .matrix = matrix};
}

static void bind_gated(struct bindings *all, const struct weight *gate, struct matrix *gate_matrix,
                       const struct weight *up, struct matrix *up_matrix) {
    bind(all, gate, gate_matrix);
    if (gate->format && up->format && matrix_can_be_packed(gate->format) && matrix_can_be_packed(up->format))
        all->list[all->n - 1].paired = gate->rows == up->rows;
    bind(all, up, up_matrix);
}

static void bind_layer(struct bindings *all, const struct model_layer *from, struct cpu_layer *to, int n_experts) {
    bind(all, &from->attn_q, &to->query);
    bind(all, &from->attn_k, &to->key);
    bind(all, &from->attn_v, &to->value);
    bind(all, &from->attn_output, &to->output);
    bind_gated(all, &from->ffn_gate, &to->gate, &from->ffn_up, &to->up);
    bind(all, &from->ffn_down, &to->down);
    bind_gated(all, &from->experts.shared_gate, &to->experts.shared_gate, &from->experts.shared_up,
               &to->experts.shared_up);
    bind(all, &from->experts.shared_down, &to->experts.shared_down);
    for (int i = 0; to->spec->experts && i < n_experts; i++) {
        const struct weight none = {0}, *gate = from->experts.gate ? &from->experts.gate[i] : &none;
        bind_gated(all, gate, &to->experts.gate[i], &from->experts.up[i], &to->experts.up[i]);
        bind(all, &from->experts.down[i], &to->experts.down[i]);
    }
}

static struct bindings list_matrices(struct backend *b) {
    const struct model *m = b->model;
    const size_t a_layer = 10 + 3 * (size_t)b->spec->experts.count;
    struct bindings all = {
        .list = arena_alloc(&b->memory.arena, ((size_t)b->spec->n_layer * a_layer + 1) * sizeof *all.list)};
    for (int i = b->first_layer; i < b->end_layer; i++)
        bind_layer(&all, &m->layers[i], &b->weights.layers[i], b->spec->experts.count);
    if (has_last_layer(b)) bind(&all, &m->output, &b->weights.output);
    return all;
}

// Of two matrices that lie one behind the other: puts each strip of the second behind its fellow of the first. A gated
// matmul then reads one stream from end to end, which is what memory is fastest at.
static void interleave(struct binding *first, struct binding *second) {
    struct matrix *a = first->matrix, *b = second->matrix;
    a->stride = b->stride = a->strip_bytes + b->strip_bytes;
    b->data = (const uint8_t *)a->data + a->strip_bytes;
    second->place = first->place + a->strip_bytes;
}

// Decides where each matrix lies; packed blocks are still empty.
static bool place_matrices(struct backend *b, struct bindings *all, struct status *st) {
    uint64_t bytes, total = 0;
    for (int i = 0; i < all->n; i++) {
        const struct weight *w = all->list[i].weight;
        *all->list[i].matrix = matrix_in_place(w);
        if (b->kernels->in_place || !matrix_can_be_packed(w->format)) {
            b->weights.in_place += (uint64_t)w->rows * w->row_bytes;
            continue;
        }
        if (!matrix_packed_bytes(w, &bytes) || !checked_add(total, bytes, &total))
            return status_fail(st, STATUS_LIMIT, "weights of %" PRId64 " × %" PRId64 " overflow", w->rows, w->columns);
    }
    all->packed_bytes = total;
    if (!total) return true;
    uint8_t *packed = buffer_take(b, 1, total < SMALLEST_PACKED ? SMALLEST_PACKED : total, "weights", st);
    uint64_t place = 0;
    for (int i = 0; packed && i < all->n; i++) {
        const struct weight *w = all->list[i].weight;
        all->list[i].place = place;
        if (!matrix_can_be_packed(w->format)) continue;
        matrix_packed_bytes(w, &bytes);
        *all->list[i].matrix = matrix_packed(w, packed + place);
        place += bytes;
    }
    for (int i = 0; packed && i < all->n; i++)
        if (all->list[i].paired) interleave(&all->list[i], &all->list[i + 1]);
    return packed != NULL;
}

// --- repack ----------------------------------------------------------------------------------------------------------

// For passes that come before it.
static bool open_caches(struct backend *b, const struct bindings *all, struct status *st) {
    uint64_t largest = 0;
    for (int i = 0; i < all->n; i++)
        if (all->list[i].matrix->packed && largest < all->list[i].matrix->strip_bytes)
            largest = all->list[i].matrix->strip_bytes;
    uint8_t *packed = buffer_take(b, 2 * (uint64_t)b->n_workers, largest, "strips", st);
    b->weights.caches = arena_alloc(&b->memory.arena, (size_t)b->n_workers * sizeof *b->weights.caches);
    for (int i = 0; packed && i < 2 * b->n_workers; i++, packed += largest)
        b->weights.caches[i / 2].strips[i % 2].packed = packed;
    return packed != NULL;
}

bool weights_repack(struct backend *b) {
    if (b->weights.repack && !repack_step(b->weights.repack, b->pool)) b->weights.repack = NULL;
    return b->weights.repack;
}

static bool repack_all(struct backend *b, const struct backend_options *options, struct status *st) {
    for (const struct repack *p; (p = b->weights.repack);) {
        weights_repack(b);
        const double done = (double)p->done / (double)p->all.packed_bytes;
        if (options->progress && !options->progress(options->progress_context, done))
            return status_fail(st, STATUS_CANCELLED, "loading was stopped");
    }
    return true;
}

// --- weights that stay in memory -------------------------------------------------------------------------------------

static bool lock(const void *data, uint64_t size, struct status *st) {
    if (!mlock(data, (size_t)size)) return true;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit)) limit.rlim_cur = 0;
    return status_fail(st, STATUS_MEMORY,
                       "cannot lock %" PRIu64 " KiB of weights in memory: %s (ulimit -l allows %ju KiB in all)",
                       size >> 10, strerror(errno), (uintmax_t)(limit.rlim_cur >> 10));
}

static bool lock_weights(const struct bindings *all, struct status *st) {
    for (int i = 0; i < all->n; i++) {
        const struct matrix *m = all->list[i].matrix;
        const uint64_t rows = (uint64_t)m->rows, last = (uint64_t)matrix_strips(m) - 1;
        if (!lock(m->data, m->packed ? last * m->stride + m->strip_bytes : rows * m->row_bytes, st)) return false;
    }
    return true;
}

bool weights_open(struct backend *b, const struct backend_options *options, struct status *st) {
    const struct model *m = b->model;
    b->weights.layers = arena_alloc(&b->memory.arena, (size_t)b->spec->n_layer * sizeof *b->weights.layers);
    for (int i = b->first_layer; i < b->end_layer; i++) {
        b->weights.layers[i] = copy_layer(b, &b->spec->layers[i], &m->layers[i]);
        if (b->spec->layers[i].experts) b->weights.layers[i].experts = copy_experts(b, &m->layers[i].experts);
    }
    if (has_last_layer(b)) {
        b->weights.output_norm = copy_norm(b, &m->output_norm, &m->output_norm_bias);
        b->weights.output_bias = copy_vector(b, &m->output_bias);
    }
    struct bindings all = list_matrices(b);
    if (!place_matrices(b, &all, st)) return false;
    b->weights.taken = b->memory.taken += b->memory.arena.used; // vectors, routers
    const bool quick = all.packed_bytes && options->quick_start && !options->lock_weights;
    if (!b->pool) return !quick || open_caches(b, &all, st);
    if (all.packed_bytes) b->weights.repack = repack_new(&b->memory.arena, &all);
    if (quick && repack_is_resident(b->weights.repack)) return open_caches(b, &all, st);
    return repack_all(b, options, st) && (!options->lock_weights || lock_weights(&all, st));
}
