// Binds a model's weights to the backend: vectors are copied, quantised matrices put into tiles by the whole pool, and
// the file's pages given back as they are done with, so that memory stays at about the file's size.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/reader.h"
#include "engine/cpu/cpu.h"

enum { LARGE_BUFFER = 1 << 20 }; // from here on a buffer has pages of its own

void *buffer_take(struct backend *b, uint64_t count, uint64_t size, const char *what, struct status *st) {
    uint64_t bytes;
    if (!checked_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        status_fail(st, STATUS_LIMIT, "%s: %" PRIu64 " items of %" PRIu64 " bytes overflow", what, count, size);
        return NULL;
    }
    if (bytes < LARGE_BUFFER) return arena_alloc(&b->arena, (size_t)bytes);
    void *p = region_alloc((size_t)bytes);
    if (p) b->regions[b->n_regions++] = (struct region){p, (size_t)bytes};
    else status_fail(st, STATUS_MEMORY, "%s: no memory for %" PRIu64 " bytes", what, bytes);
    return p;
}

static const float *copy_vector(struct backend *b, const struct weight *w) {
    if (!w->format) return NULL;
    float *copy = arena_alloc(&b->arena, (size_t)w->columns * sizeof *copy);
    memcpy(copy, w->data, (size_t)w->columns * sizeof *copy);
    return copy;
}

static const float *copy_bias(struct backend *b, const struct model_layer *l) {
    if (!l->attn_q_bias.format && !l->attn_k_bias.format && !l->attn_v_bias.format) return NULL;
    float *bias = arena_alloc(&b->arena, (size_t)qkv_size(b->spec) * sizeof *bias); // what is absent is zero
    const struct {
        const struct weight *weight;
        int at;
    } parts[] = {
        {&l->attn_q_bias, 0},
        {&l->attn_k_bias, query_size(b->spec)},
        {&l->attn_v_bias, query_size(b->spec) + kv_size(b->spec)},
    };
    for (int i = 0; i < 3; i++)
        if (parts[i].weight->format)
            memcpy(bias + parts[i].at, parts[i].weight->data, (size_t)parts[i].weight->columns * sizeof *bias);
    return bias;
}

// --- the file's pages ------------------------------------------------------------------------------------------------

// Whether [data, data + size) lies in a read-only mapping of a file, whose pages can be dropped and come back on
// demand. Anywhere else dropping them would destroy what they hold.
static bool is_mapped_file(const void *data, size_t size) {
    FILE *maps = fopen("/proc/self/maps", "r");
    const uintptr_t first = (uintptr_t)data;
    uintptr_t begin, end;
    unsigned long inode;
    char access[5], line[512];
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %lu", &begin, &end, access, &inode) == 4 &&
                first >= begin && first + size <= end && access[1] == '-' && inode != 0;
    if (maps) fclose(maps);
    return found;
}

static void drop_pages(const void *data, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1), end = ((uintptr_t)data + size) & ~(page - 1);
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

// --- matrices --------------------------------------------------------------------------------------------------------

struct binding {
    const struct weight *weight;
    struct matrix *matrix;
};

struct preparation {
    struct binding *bindings;
    int n_bindings;
    bool drop; // the pages of the file
};

static struct preparation list_matrices(struct backend *b) {
    const struct model *m = b->model;
    struct preparation p = {.bindings =
                                arena_alloc(&b->arena, ((size_t)b->spec->n_layer * 7 + 1) * sizeof *p.bindings)};
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct model_layer *from = &m->layers[i];
        struct cpu_layer *to = &b->layers[i];
        const struct binding all[] = {
            {&from->attn_q, &to->query},       {&from->attn_k, &to->key},    {&from->attn_v, &to->value},
            {&from->attn_output, &to->output}, {&from->ffn_gate, &to->gate}, {&from->ffn_up, &to->up},
            {&from->ffn_down, &to->down},
        };
        memcpy(p.bindings + p.n_bindings, all, sizeof all);
        p.n_bindings += (int)(sizeof all / sizeof *all);
    }
    p.bindings[p.n_bindings++] = (struct binding){&m->output, &b->output};
    return p;
}

static void prepare(struct worker *w, void *argument) {
    const struct preparation *p = argument;
    for (int i = 0; i < p->n_bindings; i++) {
        const struct binding *at = &p->bindings[i];
        if (!at->matrix->prepared) continue;
        for (int strip; (strip = worker_next(w, matrix_strips(at->matrix))) >= 0;)
            matrix_prepare_strip(at->matrix, at->weight, strip);
        worker_barrier(w);
        if (p->drop && w->index == 0) drop_pages(at->weight->data, at->weight->row_bytes * (size_t)at->weight->rows);
    }
}

static bool place_matrices(struct backend *b, const struct preparation *p, struct status *st) {
    uint64_t total = 0, bytes;
    for (int i = 0; i < p->n_bindings; i++) {
        const struct weight *w = p->bindings[i].weight;
        *p->bindings[i].matrix = matrix_in_place(w);
        if (b->exact || !matrix_has_tiles(w->format)) continue;
        if (!matrix_tile_bytes(w, &bytes) || !checked_add(total, bytes, &total))
            return status_fail(st, STATUS_LIMIT, "weights of %" PRId64 " × %" PRId64 " overflow", w->rows, w->columns);
    }
    uint8_t *tiles = total ? buffer_take(b, 1, total < LARGE_BUFFER ? LARGE_BUFFER : total, "weights", st) : NULL;
    for (int i = 0; i < p->n_bindings; i++) {
        const struct weight *w = p->bindings[i].weight;
        if (!tiles || !matrix_has_tiles(w->format)) continue;
        matrix_tile_bytes(w, &bytes);
        *p->bindings[i].matrix = matrix_in_tiles(w, tiles);
        tiles += bytes;
    }
    return !total || tiles;
}

bool weights_open(struct backend *b, struct status *st) {
    const struct model *m = b->model;
    b->layers = arena_alloc(&b->arena, (size_t)b->spec->n_layer * sizeof *b->layers);
    for (int i = 0; i < b->spec->n_layer; i++) {
        const struct model_layer *from = &m->layers[i];
        b->layers[i] = (struct cpu_layer){
            .attention_norm = copy_vector(b, &from->attn_norm),
            .feed_norm = copy_vector(b, &from->ffn_norm),
            .query_norm = b->spec->qk_norm ? copy_vector(b, &from->attn_q_norm) : NULL,
            .key_norm = b->spec->qk_norm ? copy_vector(b, &from->attn_k_norm) : NULL,
            .bias = copy_bias(b, from),
        };
    }
    b->output_norm = copy_vector(b, &m->output_norm);
    struct preparation p = list_matrices(b);
    if (!place_matrices(b, &p, st)) return false;
    p.drop = is_mapped_file(m->output.data, m->output.row_bytes * (size_t)m->output.rows);
    thread_pool_run(b->pool, prepare, &p);
    return true;
}
