#include "engine/vulkan/matmuls.h"

#include <stdio.h>

#include "engine/vulkan/cooperative.h"

// Of how many experts the matrices are read is known on the device alone: most often of as many as there are rows.
static void count_matmul(struct pass *p, const struct matmul *m) {
    const struct device_matrix *x = m->matrix;
    if (!x->format) return;
    const double experts = m->choices ? (double)p->b->spec->experts.count : 1, n = m->to->n;
    const double bytes = (double)x->rows * x->columns / x->format->elements * (double)x->format->bytes;
    p->work.bytes += bytes * (n < experts ? n : experts);
    p->work.operations += 2.0 * x->rows * x->columns * n;
}

// The rows of the batch that a tile has where `n` rows share a matrix: the fewest that they fill.
static uint32_t tile_columns(uint32_t n) { return n <= 16 ? 16 : n <= 32 ? 32 : 64; }

enum { TILE_ROWS = 64, LARGEST_TILE = 128 };

// Of a matrix that is too small for tiles to keep a device busy, or of few rows of the batch: 0. Otherwise tiles become
// smaller before they become few.
static uint32_t choose_tile(uint32_t rows, uint32_t n) {
    enum { FEW_COLUMNS = 16, FEW_ROWS = 2 * TILE_ROWS, MANY_TILES = 256 };
    if (n <= FEW_COLUMNS || rows <= FEW_ROWS) return 0;
    uint32_t columns = tile_columns(n);
    while (columns > 16 && groups(rows, TILE_ROWS) * groups(n, columns) < MANY_TILES) columns /= 2;
    return columns;
}

// How tiles of experts are multiplied as halves: the largest, since there are many.
static struct cooperative_constants expert_constants(const struct pass *p, uint32_t slots) {
    const struct cooperative_tile tile = {LARGEST_TILE, tile_columns(slots / (uint32_t)p->b->spec->experts.count)};
    return cooperative_constants(p->b->context.device, tile, true);
}

// As choose_tile for experts. Which of them the slots go to is known on the device alone; here they go to all alike.
// All their matrices share a list of tiles, whose columns are those that cooperative.comp can have: matmul.comp takes
// any.
static uint32_t choose_expert_tile(const struct pass *p, uint32_t slots) {
    enum { FEW_COLUMNS = 4 };
    const uint32_t each = slots / (uint32_t)p->b->spec->experts.count;
    if (each < FEW_COLUMNS) return 0;
    return p->b->context.device->cooperative.m ? expert_constants(p, slots).columns : tile_columns(each);
}

// The most tiles there can be of them.
static uint32_t most_expert_tiles(const struct pass *p, uint32_t slots, uint32_t tile) {
    const uint32_t n = slots / tile + (uint32_t)p->b->spec->experts.count;
    return n < slots ? n : slots;
}

// Matvec's rows of the batch at once: as few as there are, evenly divided where they are too many.
static uint32_t columns_at_once(uint32_t n) {
    static const uint8_t choices[] = {1, 2, 4, 6, 8};
    const uint32_t wanted = groups(n, groups(n, 8));
    int i = 0;
    while (choices[i] < wanted) i++;
    return choices[i];
}

static uint32_t chosen_tile(const struct pass *p, const struct matmul *m) {
    return m->choices ? choose_expert_tile(p, m->to->n) : choose_tile(m->matrix->rows, m->to->n);
}

// By matvec.comp, or for many rows of the batch by matmul.comp.
static void matmul_blocks(struct pass *p, const struct matmul *m) {
    enum { MOST_GROUPS = 32768, THREADS_ACROSS = 8, ROWS = 2 };
    const struct device_workspace *w = &p->b->work;
    const uint32_t rows = m->matrix->rows, n = m->to->n;
    const uint32_t tile = chosen_tile(p, m);
    const struct {
        VkDeviceAddress matrix, grids, from, from_codes, to, bias, choices, order, tiles;
        uint32_t rows, columns, n, from_stride, to_stride, from_share;
        float scale, softcap;
        uint32_t biased, adds;
    } push = {m->matrix->address,
              p->b->weights.grids,
              m->from->address,
              m->from->codes,
              m->to->address,
              m->bias,
              m->choices,
              w->expert_order,
              w->expert_tiles,
              rows,
              m->matrix->columns,
              n,
              m->from->stride,
              m->to->stride,
              m->share ? (uint32_t)m->share : 1,
              m->scale,
              m->softcap,
              m->bias != 0,
              m->add};
    char shader[32];
    snprintf(shader, sizeof shader, "%s_%s", tile ? "matmul" : "matvec", m->matrix->format->name);
    if (tile) {
        const uint32_t tiles = m->choices ? most_expert_tiles(p, n, tile) : groups(n, tile);
        RUN(p, shader, push, tiles, groups(rows, TILE_ROWS), 1, tile / THREADS_ACROSS, m->choices != 0);
    } else {
        const uint32_t columns = m->choices ? 1 : columns_at_once(n), tiles = groups(rows, ROWS),
                       z = groups(tiles, MOST_GROUPS);
        RUN(p, shader, push, groups(n, columns), groups(tiles, z), z, columns, m->choices != 0);
    }
}

// ---- by cooperative matrices ----
//
// Matrices become halves first (widen.comp), slice by slice where they are larger than the workspace has room for:
// rows, or of the matrices of experts whole ones. Those that have room side by side share the barrier before they are
// multiplied.

static uint32_t units_of(const struct pass *p, const struct matmul *m) {
    return m->choices ? (uint32_t)p->b->spec->experts.count : m->matrix->rows;
}

static uint64_t unit_bytes(const struct matmul *m) {
    return sizeof(uint16_t) * cooperative_stride(m->matrix->columns) * (m->choices ? m->matrix->rows : 1);
}

// Whether its rows are halves as the shader reads them.
static bool is_wide(const struct device_matrix *m) {
    return m->format->id == BLOCK_F16 && m->columns == cooperative_stride(m->columns) && m->address % 16 == 0;
}

// To widen a matrix takes as long as to multiply it with some rows of the batch.
static bool is_cooperative(const struct pass *p, const struct matmul *m) {
    const struct vulkan_device *d = p->b->context.device;
    if (!chosen_tile(p, m) || !cooperative_holds(d, m->matrix->format)) return false;
    const uint32_t experts = m->choices ? (uint32_t)p->b->spec->experts.count : 1;
    return is_wide(m->matrix) || (m->to->n / experts >= d->widening_rows && unit_bytes(m) <= p->b->work.widened_bytes);
}

struct slice {
    const struct matmul *m;
    VkDeviceAddress halves;
    uint32_t first, n; // units
};

struct slices { // that are multiplied behind the next barrier
    struct slice items[8];
    int n;
    struct rows from;        // as halves
    VkDeviceAddress source;  // of these
    bool written;            // anything since the last barrier
    uint64_t begin, at, end; // bytes of the workspace: where theirs begin, and where there is room for more
};

// Rows as halves, once for all matmuls until the next barrier: only behind one can they be others.
static void halve(struct pass *p, struct slices *s, const struct rows *from, uint32_t columns) {
    const struct device_workspace *w = &p->b->work;
    s->from = (struct rows){w->halves, cooperative_stride(columns), from->n, 0};
    s->source = from->address;
    const struct {
        VkDeviceAddress from, to, scales;
        uint32_t columns, from_stride, to_stride;
    } push = {from->address, w->halves, w->half_scales, columns, from->stride, s->from.stride};
    if (p->halved == from->address) return;
    if (p->halved) pass_barrier(p); // those in their place are still read
    RUN(p, "halve", push, from->n, 1, 1, 0);
    p->halved = from->address;
    s->written = true;
}

// The largest tiles, and smaller ones before they are few.
static struct cooperative_constants choose_cooperative(const struct pass *p, const struct slice *x) {
    enum { MANY_TILES = 128 };
    const uint32_t rows = x->n, n = x->m->to->n;
    if (x->m->choices) return expert_constants(p, n);
    struct cooperative_tile t = {LARGEST_TILE, n <= 32 ? 32 : n <= 64 ? 64 : LARGEST_TILE};
    while (groups(rows, t.rows) * groups(n, t.columns) < MANY_TILES) {
        if (t.rows > 64) t.rows /= 2;
        else if (t.columns > 32) t.columns /= 2;
        else if (t.rows > 32) t.rows /= 2;
        else break;
    }
    return cooperative_constants(p->b->context.device, t, false);
}

static void multiply(struct pass *p, const struct slices *s, const struct slice *x) {
    const struct device_workspace *w = &p->b->work;
    const struct matmul *m = x->m;
    const bool experts = m->choices != 0;
    const uint32_t first = experts ? 0 : x->first, rows = experts ? m->matrix->rows : x->n, n = m->to->n;
    const struct cooperative_constants c = choose_cooperative(p, x);
    const struct {
        VkDeviceAddress matrix, from, scales, to, bias, order, tiles;
        uint32_t rows, n, from_stride, to_stride, from_share, expert, end_expert;
        float scale, softcap;
        uint32_t biased, adds;
    } push = {x->halves,
              s->from.address,
              w->half_scales,
              m->to->address + 4 * (uint64_t)first,
              m->bias ? m->bias + 4 * (uint64_t)first : 0,
              w->expert_order,
              w->expert_tiles,
              rows,
              n,
              s->from.stride,
              m->to->stride,
              m->share ? (uint32_t)m->share : 1,
              experts ? x->first : 0,
              experts ? x->first + x->n : 1,
              m->scale,
              m->softcap,
              m->bias != 0,
              m->add};
    const uint32_t tiles = experts ? most_expert_tiles(p, n, c.columns) : groups(n, c.columns);
    pass_run(p, "cooperative", (const uint32_t *)&c, sizeof c / sizeof(uint32_t), &push, sizeof push, tiles,
             groups(rows, c.rows), 1);
}

// The larger part of what is not read until the next barrier.
static void find_room(const struct pass *p, struct slices *s) {
    const uint64_t size = p->b->work.widened_bytes;
    const bool behind = size - p->widened_end >= p->widened_begin;
    s->begin = s->at = behind ? p->widened_end : 0;
    s->end = behind ? size : p->widened_begin;
}

// A barrier that leaves the halves of the batch what they are.
static void slices_barrier(struct pass *p, struct slices *s) {
    pass_barrier(p);
    p->halved = s->source;
    s->written = false;
}

static void multiply_slices(struct pass *p, struct slices *s) {
    if (s->written) slices_barrier(p, s);
    if (s->at > s->begin) p->widened_begin = s->begin, p->widened_end = s->at;
    for (int i = 0; i < s->n; i++) multiply(p, s, &s->items[i]);
    s->n = 0;
    find_room(p, s);
}

static void add_slice(struct pass *p, struct slices *s, struct slice x) {
    s->items[s->n++] = x;
    if (s->n == (int)(sizeof s->items / sizeof *s->items)) multiply_slices(p, s);
}

static VkDeviceAddress make_room(struct pass *p, struct slices *s, uint64_t bytes) {
    if (s->end - s->at < bytes && s->n) multiply_slices(p, s);
    if (s->end - s->at < bytes) {
        slices_barrier(p, s);
        find_room(p, s);
    }
    s->at += bytes;
    return p->b->work.widened + s->at - bytes;
}

static void widen(struct pass *p, const struct matmul *m, uint32_t first, uint32_t n, VkDeviceAddress to) {
    enum { THREADS = 256 };
    const uint32_t each = m->choices ? m->matrix->rows : 1, stride = cooperative_stride(m->matrix->columns);
    const struct {
        VkDeviceAddress matrix, grids, to;
        uint32_t first, rows, columns, stride;
    } push = {m->matrix->address, p->b->weights.grids, to, first * each, n * each, m->matrix->columns, stride};
    char shader[32];
    snprintf(shader, sizeof shader, "widen_%s", m->matrix->format->name);
    RUN(p, shader, push, groups(push.rows * (stride / 32), THREADS), 1, 1, 0);
}

// Slices are even, and those of rows whole tiles.
static void widen_slices(struct pass *p, struct slices *s, const struct matmul *m) {
    const uint32_t units = units_of(p, m);
    const uint64_t bytes = unit_bytes(m), most = p->b->work.widened_bytes / bytes;
    uint32_t each = groups(units, (uint32_t)((units + most - 1) / most));
    if (!m->choices && groups(each, LARGEST_TILE) * LARGEST_TILE <= most)
        each = groups(each, LARGEST_TILE) * LARGEST_TILE;
    for (uint32_t first = 0; first < units; first += each) {
        const uint32_t n = units - first < each ? units - first : each;
        const VkDeviceAddress to = make_room(p, s, n * bytes);
        widen(p, m, first, n, to);
        s->written = true;
        add_slice(p, s, (struct slice){m, to, first, n});
    }
}

// ---- all of them ----

void matmuls_run(struct pass *p, const struct matmul *all, int n_all) {
    struct slices s = {0};
    for (int i = 0; i < n_all; i++) {
        const struct matmul *m = &all[i];
        if (!m->matrix->format || !m->to->n) continue;
        count_matmul(p, m);
        if (!is_cooperative(p, m)) {
            matmul_blocks(p, m);
            continue;
        }
        if (!s.from.n) {
            halve(p, &s, m->from, m->matrix->columns);
            find_room(p, &s);
        }
        if (is_wide(m->matrix)) add_slice(p, &s, (struct slice){m, m->matrix->address, 0, units_of(p, m)});
        else widen_slices(p, &s, m);
    }
    if (s.n) multiply_slices(p, &s);
}

static void activate(struct pass *p, const struct gated *g) {
    enum { THREADS = 256 };
    const struct rows *x = g->middle;
    const struct {
        VkDeviceAddress gate, up, to, codes;
        uint32_t n, stride;
    } push = {x->address, g->scratch, x->address, x->codes, x->n * x->stride / 4, x->stride / 4};
    RUN(p, "activate", push, groups(push.n, THREADS), 1, 1, (uint32_t)p->b->spec->activation, g->gate->format != NULL);
    pass_barrier(p);
}

// All of it at once, for a few rows.
static void gated_at_once(struct pass *p, const struct gated *g) {
    enum { GROUP_ROWS = 32 };
    const struct rows *in = g->in, *to = g->middle;
    const uint32_t columns = g->choices ? 1 : columns_at_once(to->n);
    const struct {
        VkDeviceAddress gate, up, grids, from, from_codes, to, to_codes, gate_bias, up_bias, choices;
        uint32_t rows, columns, n, from_stride, to_stride, from_share, biased;
    } push = {g->gate->address,
              g->up->address,
              p->b->weights.grids,
              in->address,
              in->codes,
              to->address,
              to->codes,
              g->gate_bias ? g->gate_bias : p->b->work.device.address,
              g->up_bias ? g->up_bias : p->b->work.device.address,
              g->choices,
              g->up->rows,
              g->up->columns,
              to->n,
              in->stride,
              to->stride,
              g->share ? (uint32_t)g->share : 1,
              (g->gate_bias != 0) | (g->up_bias != 0) << 1};
    char shader[32];
    snprintf(shader, sizeof shader, "gated_%s", g->up->format->name);
    RUN(p, shader, push, groups(to->n, columns), groups(g->up->rows, GROUP_ROWS), 1, (uint32_t)p->b->spec->activation,
        g->gate->format != NULL, columns, g->choices != 0);
    pass_barrier(p);
}

void matmuls_gated(struct pass *p, const struct gated *g) {
    const struct rows up = {g->scratch, g->middle->stride, g->middle->n, 0};
    const struct matmul halves[] = {{.matrix = g->gate,
                                     .from = g->in,
                                     .to = g->middle,
                                     .bias = g->gate_bias,
                                     .scale = 1,
                                     .choices = g->choices,
                                     .share = g->share},
                                    {.matrix = g->up,
                                     .from = g->in,
                                     .to = &up,
                                     .bias = g->up_bias,
                                     .scale = 1,
                                     .choices = g->choices,
                                     .share = g->share}};
    if (!g->middle->n) return;
    if (!chosen_tile(p, &halves[1]) && (!g->gate->format || g->gate->format == g->up->format)) {
        for (int i = 0; i < 2; i++) count_matmul(p, &halves[i]);
        gated_at_once(p, g);
        return;
    }
    matmuls_run(p, halves, 2);
    pass_barrier(p);
    activate(p, g);
}

void matmuls_group(struct pass *p, uint32_t slots) {
    const struct device_workspace *w = &p->b->work;
    const uint32_t tile = choose_expert_tile(p, slots);
    if (!tile) return;
    const struct {
        VkDeviceAddress choices, order, tiles;
        uint32_t n, n_tiles;
    } push = {w->choices, w->expert_order, w->expert_tiles, slots, most_expert_tiles(p, slots, tile)};
    RUN(p, "group", push, 1, 1, 1, (uint32_t)p->b->spec->experts.count, tile);
    pass_barrier(p);
}
