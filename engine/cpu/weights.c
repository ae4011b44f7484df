// Binds a model's weights to the backend: vectors are copied, quantised matrices put into tiles by the whole pool, and
// the file's pages given back as they are done with, so that memory stays at about the file's size.
//
// A quick start puts that off until the second pass: fresh memory for the tiles costs more than the first pass itself,
// which makes the strips that it needs in cache (struct strip_cache) and so answers before the weights are loaded.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/base/reader.h"
#include "engine/cpu/cpu.h"

enum {
    SMALLEST_TILES = 1 << 20,   // bytes of a buffer for tiles, so that it is a region of its own
    STEP_BYTES = 32 << 20,      // of weights that are prepared before their pages are dropped and progress is told
    AHEAD_BYTES = 128 << 20,    // of weights that are being read from the file meanwhile
    SMALLEST_MAPPING = 1 << 20, // that is worth dropping
};

// --- vectors ---------------------------------------------------------------------------------------------------------

static const float *copy_vector(struct backend *b, const struct weight *w) {
    if (!w->format) return NULL;
    const size_t n = (size_t)w->rows * (size_t)w->columns;
    float *copy = arena_alloc(&b->arena, n * sizeof *copy);
    if (b->pool) memcpy(copy, w->data, n * sizeof *copy);
    return copy;
}

static struct norm copy_norm(struct backend *b, const struct weight *weight, const struct weight *bias) {
    return (struct norm){copy_vector(b, weight), bias ? copy_vector(b, bias) : NULL};
}

// The biases of queries, keys and values in one.
static const float *copy_bias(struct backend *b, const struct layer_spec *s, const struct model_layer *l) {
    if (!l->attn_q_bias.format && !l->attn_k_bias.format && !l->attn_v_bias.format) return NULL;
    float *bias = arena_alloc(&b->arena, (size_t)qkv_size(b, s) * sizeof *bias); // what is absent is zero
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
    float *values = arena_alloc(&b->arena, (size_t)w->rows * (size_t)w->columns * sizeof *values);
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
        .gate = arena_alloc(&b->arena, bytes),
        .up = arena_alloc(&b->arena, bytes),
        .down = arena_alloc(&b->arena, bytes),
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
        .feed_norm = copy_norm(b, &from->ffn_norm, &from->ffn_norm_bias),
        .feed_post_norm = copy_norm(b, &from->ffn_post_norm, NULL),
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

// --- the file's pages ------------------------------------------------------------------------------------------------

// Read-only mappings of files: their pages can be dropped and come back on demand. Anywhere else dropping them would
// destroy what they hold.
struct mappings {
    struct mapped {
        uintptr_t begin, end;
    } list[256];
    int n;
};

static void find_mappings(struct mappings *m) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char access[5], line[512];
    unsigned long inode;
    struct mapped at;
    while (maps && m->n < (int)(sizeof m->list / sizeof *m->list) && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %lu", &at.begin, &at.end, access, &inode) == 4 &&
            access[1] == '-' && inode != 0 && at.end - at.begin >= SMALLEST_MAPPING)
            m->list[m->n++] = at;
    if (maps) fclose(maps);
}

static void advise(const struct mappings *m, const void *data, size_t size, int advice) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data;
    const uintptr_t begin = (first + page - 1) & ~(page - 1), end = (first + size) & ~(page - 1);
    for (int i = 0; i < m->n; i++)
        if (begin < end && begin >= m->list[i].begin && end <= m->list[i].end)
            madvise((void *)begin, end - begin, advice);
}

// --- matrices --------------------------------------------------------------------------------------------------------

struct binding {
    const struct weight *weight;
    struct matrix *matrix;
    bool paired; // with the next one: strips of both are read in turn, and lie so
};

struct bindings {
    struct binding *list;
    int n;
    uint64_t tile_bytes;
};

static void bind(struct bindings *all, const struct weight *weight, struct matrix *matrix) {
    if (weight->format) all->list[all->n++] = (struct binding){weight, matrix, false};
}

static void bind_gated(struct bindings *all, const struct weight *gate, struct matrix *gate_matrix,
                       const struct weight *up, struct matrix *up_matrix) {
    bind(all, gate, gate_matrix);
    if (gate->format && up->format && matrix_has_tiles(gate->format) && matrix_has_tiles(up->format))
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
    struct bindings all = {.list = arena_alloc(&b->arena, ((size_t)b->spec->n_layer * a_layer + 1) * sizeof *all.list)};
    for (int i = 0; i < b->spec->n_layer; i++) bind_layer(&all, &m->layers[i], &b->layers[i], b->spec->experts.count);
    bind(&all, &m->output, &b->output);
    return all;
}

// Of two matrices that lie one behind the other: puts each strip of the second behind its fellow of the first. A gated
// product then reads one stream from end to end, which is what memory is fastest at.
static void interleave(struct matrix *first, struct matrix *second) {
    first->stride = second->stride = first->strip_bytes + second->strip_bytes;
    second->data = (const uint8_t *)first->data + first->strip_bytes;
}

// Decides where each matrix lies; tiles are still empty.
static bool place_matrices(struct backend *b, struct bindings *all, struct status *st) {
    uint64_t bytes, total = 0;
    for (int i = 0; i < all->n; i++) {
        const struct weight *w = all->list[i].weight;
        *all->list[i].matrix = matrix_in_place(w);
        if (b->exact || !matrix_has_tiles(w->format)) continue;
        if (!matrix_tile_bytes(w, &bytes) || !checked_add(total, bytes, &total))
            return status_fail(st, STATUS_LIMIT, "weights of %" PRId64 " × %" PRId64 " overflow", w->rows, w->columns);
    }
    all->tile_bytes = total;
    if (!total) return true;
    uint8_t *tiles = buffer_take(b, 1, total < SMALLEST_TILES ? SMALLEST_TILES : total, "weights", st);
    for (int i = 0; tiles && i < all->n; i++) {
        const struct weight *w = all->list[i].weight;
        if (!matrix_has_tiles(w->format)) continue;
        matrix_tile_bytes(w, &bytes);
        *all->list[i].matrix = matrix_in_tiles(w, tiles);
        tiles += bytes;
    }
    for (int i = 0; tiles && i < all->n; i++)
        if (all->list[i].paired) interleave(all->list[i].matrix, all->list[i + 1].matrix);
    return tiles != NULL;
}

struct step { // some strips of one matrix
    const struct bindings *all;
    int binding, first, end;
};

// The next one, of at most STEP_BYTES but at least a strip; false after the last. The first follows {all, −1, 0, 0}.
static bool step_next(struct step *s) {
    if (s->binding < 0 || s->end == matrix_strips(s->all->list[s->binding].matrix)) {
        do s->binding++;
        while (s->binding < s->all->n && !s->all->list[s->binding].matrix->prepared);
        s->end = 0;
    }
    if (s->binding >= s->all->n) return false;
    const struct matrix *m = s->all->list[s->binding].matrix;
    const int most = (int)(STEP_BYTES / m->strip_bytes) + 1, left = matrix_strips(m) - s->end;
    s->first = s->end;
    s->end += left < most ? left : most;
    return true;
}

static uint64_t step_bytes(const struct step *s) {
    return (uint64_t)(s->end - s->first) * s->all->list[s->binding].matrix->strip_bytes;
}

static void step_advise(const struct step *s, const struct mappings *mappings, int advice) {
    const struct weight *w = s->all->list[s->binding].weight;
    const int64_t begin = (int64_t)s->first * STRIP_ROWS, end = (int64_t)s->end * STRIP_ROWS;
    advise(mappings, (const uint8_t *)w->data + (size_t)begin * w->row_bytes,
           (size_t)((end < w->rows ? end : w->rows) - begin) * w->row_bytes, advice);
}

static void prepare_strips(struct worker *w, void *argument) {
    const struct step *step = argument;
    const struct binding *at = &step->all->list[step->binding];
    for (int i; (i = worker_next(w, step->end - step->first)) >= 0;)
        matrix_prepare_strip(at->matrix, at->weight, step->first + i);
}

// From now on the tiles are read.
static void tiles_are_filled(const struct bindings *all) {
    for (int i = 0; i < all->n; i++) all->list[i].matrix->source = NULL;
}

// Reads ahead what comes next, so that reading goes on while strips are prepared, and drops what is done.
static bool prepare(struct backend *b, const struct bindings *all, const struct backend_options *options,
                    struct status *st) {
    struct mappings mappings = {.n = 0};
    struct step step = {all, -1, 0, 0}, ahead = step;
    uint64_t done = 0, asked = 0;
    bool more = true;
    find_mappings(&mappings);
    while (step_next(&step)) {
        while (more && asked < done + AHEAD_BYTES && (more = step_next(&ahead))) {
            step_advise(&ahead, &mappings, MADV_WILLNEED);
            asked += step_bytes(&ahead);
        }
        thread_pool_run(b->pool, prepare_strips, &step);
        step_advise(&step, &mappings, MADV_DONTNEED);
        done += step_bytes(&step);
        if (options && options->progress &&
            !options->progress(options->progress_context, (double)done / (double)all->tile_bytes))
            return status_fail(st, STATUS_CANCELLED, "loading was stopped");
    }
    tiles_are_filled(all);
    return true;
}

// --- weights that are prepared later ---------------------------------------------------------------------------------

// Whether the first page of every weight is in memory: what must come from a disk is best read ahead and prepared once.
static bool is_resident(const struct bindings *all) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char there;
    for (int i = 0; i < all->n; i++) {
        const uintptr_t at = (uintptr_t)all->list[i].weight->data;
        if (mincore((void *)(at & ~(page - 1)), 1, &there) || !(there & 1)) return false;
    }
    return true;
}

static bool open_caches(struct backend *b, const struct bindings *all, struct status *st) {
    uint64_t largest = 0;
    for (int i = 0; i < all->n; i++)
        if (all->list[i].matrix->prepared && largest < all->list[i].matrix->strip_bytes)
            largest = all->list[i].matrix->strip_bytes;
    uint8_t *tiles = buffer_take(b, 2 * (uint64_t)b->n_workers, largest, "strips", st);
    b->caches = arena_alloc(&b->arena, (size_t)b->n_workers * sizeof *b->caches);
    for (int i = 0; tiles && i < 2 * b->n_workers; i++, tiles += largest) b->caches[i / 2].strips[i % 2].tiles = tiles;
    return tiles != NULL;
}

static bool put_off(struct backend *b, const struct bindings *all, struct status *st) {
    if (!open_caches(b, all, st)) return false;
    for (int i = 0; i < all->n; i++)
        if (all->list[i].matrix->prepared) all->list[i].matrix->source = all->list[i].weight;
    b->put_off = arena_alloc(&b->arena, sizeof *b->put_off);
    *b->put_off = *all;
    return true;
}

void weights_finish(struct backend *b) {
    prepare(b, b->put_off, NULL, NULL);
    b->put_off = NULL;
}

// --- weights that stay in memory -------------------------------------------------------------------------------------

static bool lock(const void *data, uint64_t size, struct status *st) {
    if (!mlock(data, (size_t)size)) return true;
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit)) limit.rlim_cur = 0;
    return status_fail(st, STATUS_MEMORY, "cannot lock %" PRIu64 " KiB of weights in memory: %s (ulimit -l allows %ju KiB in all)",
                       size >> 10, strerror(errno), (uintmax_t)(limit.rlim_cur >> 10));
}

static bool lock_weights(const struct bindings *all, struct status *st) {
    for (int i = 0; i < all->n; i++) {
        const struct matrix *m = all->list[i].matrix;
        const uint64_t rows = (uint64_t)m->rows, last = (uint64_t)matrix_strips(m) - 1;
        if (!lock(m->data, m->prepared ? last * m->stride + m->strip_bytes : rows * m->row_bytes, st)) return false;
    }
    return true;
}

bool weights_open(struct backend *b, const struct backend_options *options, struct status *st) {
    const struct model *m = b->model;
    b->layers = arena_alloc(&b->arena, (size_t)b->spec->n_layer * sizeof *b->layers);
    for (int i = 0; i < b->spec->n_layer; i++) {
        b->layers[i] = copy_layer(b, &b->spec->layers[i], &m->layers[i]);
        if (b->spec->layers[i].experts) b->layers[i].experts = copy_experts(b, &m->layers[i].experts);
    }
    b->output_norm = copy_norm(b, &m->output_norm, &m->output_norm_bias);
    b->output_bias = copy_vector(b, &m->output_bias);
    struct bindings all = list_matrices(b);
    if (!place_matrices(b, &all, st)) return false;
    b->weights_taken = b->taken;
    if (!b->pool) return true;
    if (options->quick_start && !options->lock_weights && all.tile_bytes && is_resident(&all))
        return put_off(b, &all, st);
    return prepare(b, &all, options, st) && (!options->lock_weights || lock_weights(&all, st));
}
