// What a pass computes: embed; every layer, attention and feed-forward; logits.
#include <stdio.h>

#include "engine/vulkan/cooperative.h"
#include "engine/vulkan/pass.h"

static uint32_t groups(uint32_t n, uint32_t each) { return (n + each - 1) / each; }

struct rows { // of activations
    VkDeviceAddress address;
    uint32_t stride, n;
    VkDeviceAddress codes; // the same quantised; or 0
};

static void quantize(struct pass *p, const struct rows *x) {
    enum { THREADS = 256 };
    const struct {
        VkDeviceAddress from, to;
        uint32_t n, stride;
    } push = {x->address, x->codes, x->n * x->stride / 4, x->stride / 4};
    if (!p->b->weights.quantised) return;
    RUN(p, "quantize", push, groups(push.n, THREADS), 1, 1, 0);
    pass_barrier(p);
}

enum { NORM_NONE = NORM_LAYER + 1 };

// Shaders get the address of a list in any case.
static VkDeviceAddress list_or_any(const struct pass *p, VkDeviceAddress list) {
    return list ? list : p->b->work.kept.address;
}

// Rows of `from`, those of the list if there is one, normed, to `to`, and quantised to its codes; with a factor they
// are added to it.
static void norm_rows(struct pass *p, const struct device_norm *norm, const struct rows *from, VkDeviceAddress list,
                      const struct rows *to, int n, float factor) {
    enum { THREADS = 256 };
    const struct model_spec *s = p->b->spec;
    const struct {
        VkDeviceAddress from, to, codes, weight, bias, rows;
        uint32_t n, from_stride, to_stride, has_list;
        float epsilon, scale;
    } push = {from->address, to->address,  to->codes,  norm->weight, norm->bias,      list_or_any(p, list),
              (uint32_t)n,   from->stride, to->stride, list != 0,    s->norm_epsilon, factor};
    RUN(p, "norm", push, to->n, 1, 1, norm->weight ? (uint32_t)s->norm : NORM_NONE, norm->bias != 0, factor != 0,
        to->codes && p->b->weights.quantised, groups(stride_of(n) / 4, THREADS));
}

struct matmul {
    const struct device_matrix *matrix;
    const struct rows *from, *to; // to->n rows
    VkDeviceAddress bias;         // or 0
    float scale, softcap;
    bool add;
    VkDeviceAddress choices; // of the experts whose matrices these are, one for each row of `to`; or 0
    int share;               // rows of `to` for each of `from`; 0: one
};

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

enum { TILE_ROWS = 64 };

// Of a matrix that is too small for tiles to keep a device busy, or of few rows of the batch: 0. Otherwise tiles become
// smaller before they become few.
static uint32_t choose_tile(uint32_t rows, uint32_t n) {
    enum { FEW_COLUMNS = 16, FEW_ROWS = 2 * TILE_ROWS, MANY_TILES = 256 };
    if (n <= FEW_COLUMNS || rows <= FEW_ROWS) return 0;
    uint32_t columns = tile_columns(n);
    while (columns > 16 && groups(rows, TILE_ROWS) * groups(n, columns) < MANY_TILES) columns /= 2;
    return columns;
}

// The same for experts. Which of them the slots go to is known on the device alone; here they go to all alike.
static uint32_t choose_expert_tile(const struct pass *p, uint32_t slots) {
    enum { FEW_COLUMNS = 4 };
    const uint32_t each = slots / (uint32_t)p->b->spec->experts.count;
    return each < FEW_COLUMNS ? 0 : tile_columns(each);
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
    const struct vulkan_device *d = p->b->context.device;
    const uint32_t rows = x->n, n = x->m->to->n;
    struct cooperative_tile t = {128, n <= 32 ? 32 : n <= 64 ? 64 : 128};
    if (x->m->choices) t.columns = chosen_tile(p, x->m);
    while (!x->m->choices && groups(rows, t.rows) * groups(n, t.columns) < MANY_TILES) {
        if (t.rows > 64) t.rows /= 2;
        else if (t.columns > 32) t.columns /= 2;
        else if (t.rows > 32) t.rows /= 2;
        else break;
    }
    struct cooperative_constants c = cooperative_constants(d, t, x->m->choices != 0);
    while (cooperative_shared_bytes(&c) > d->shared_bytes && t.rows > 32) {
        t.rows /= 2;
        c = cooperative_constants(d, t, x->m->choices != 0);
    }
    return c;
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
    enum { LARGEST_TILE = 128 };
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

// ----

// Several products of the same rows.
static void matmuls(struct pass *p, const struct matmul *all, int n_all) {
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

static void matmul(struct pass *p, const struct matmul *m) { matmuls(p, m, 1); }

// The first half of a feed-forward network: activation(gate · in) · (up · in), or without a gate activation(up · in),
// into `middle`.
struct gated {
    const struct device_matrix *gate, *up;
    VkDeviceAddress gate_bias, up_bias;
    const struct rows *in, *middle;
    VkDeviceAddress scratch; // like middle
    VkDeviceAddress choices; // as of struct matmul
    int share;
};

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

static void gated(struct pass *p, const struct gated *g) {
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
    matmuls(p, halves, 2);
    pass_barrier(p);
    activate(p, g);
}

// ---- stages ----

static struct rows embd_rows(const struct backend *b, VkDeviceAddress address, int n) {
    return (struct rows){address, b->work.embd_stride, (uint32_t)n, 0};
}

static struct rows rows_of(VkDeviceAddress address, uint32_t stride, int n) {
    return (struct rows){address, stride, (uint32_t)n, 0};
}

static struct rows coded(struct rows x, VkDeviceAddress codes) {
    x.codes = codes;
    return x;
}

static void embed(struct pass *p) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_matrix *m = &b->weights.embedding;
    const uint32_t columns = (uint32_t)b->spec->n_embd;
    char shader[32];
    snprintf(shader, sizeof shader, "embed_%s", m->format ? m->format->name : "F32");
    const struct {
        VkDeviceAddress matrix, grids, tokens, inputs, to;
        uint32_t columns, stride;
        float scale;
    } push = {m->address, b->weights.grids, w->tokens.address, w->embeddings.address,
              w->x,       columns,          w->embd_stride,    b->spec->embedding_scale};
    RUN(p, shader, push, groups(groups(columns, 32), 64), (uint32_t)p->shape.n_rows, 1, 0);
    if (m->format) p->work.bytes += (double)p->shape.n_rows * columns / m->format->elements * (double)m->format->bytes;
    pass_barrier(p);
    pass_end_stage(p, STAGE_EMBED);
}

struct attention_cut {    // of attention into work groups
    uint32_t heads, rows; // queries for which a work group reads keys and values once
    uint32_t x, y;        // work groups for all queries
    uint32_t parts;       // work groups that share the keys of each
};

// A work group has as many queries as its threads have registers for: several heads of a kv head, and in prompts
// several rows. Work groups share keys where a large device would not be busy otherwise, while each has as many keys as
// it reads at once and the parts fit into their buffer. Few keys are not shared: to join the parts would take longer.
static struct attention_cut cut_attention(const struct pass *p, const struct device_layer *l, uint32_t n) {
    enum { MOST_QUERIES = 8, MOST_ELEMENTS = 2048, BUSY_GROUPS = 512, KEYS = 128, FEW_KEYS = 4 * KEYS };
    const uint32_t n_head = (uint32_t)l->spec->n_head, n_head_kv = (uint32_t)l->spec->n_head_kv;
    const uint32_t size = (uint32_t)p->b->spec->head_size, window = (uint32_t)l->spec->window;
    const uint32_t room = MOST_ELEMENTS / size, most = room < MOST_QUERIES ? room : MOST_QUERIES;
    const uint32_t slices = groups(n_head / n_head_kv, most);
    struct attention_cut c = {.heads = groups(n_head / n_head_kv, slices), .rows = 1, .parts = 1};
    if (p->shape.long_segments && n == (uint32_t)p->shape.n_rows) c.rows = most / c.heads;
    c.x = n_head_kv * slices;
    c.y = groups(n, c.rows);
    const uint32_t n_keys = window && window < (uint32_t)p->shape.reach ? window : (uint32_t)p->shape.reach;
    while (n_keys >= FEW_KEYS && 2 * c.parts * KEYS <= n_keys && c.x * c.y * c.parts < BUSY_GROUPS &&
           2ull * c.parts * n * n_head * (size + 2) <= WORKSPACE_PARTS)
        c.parts *= 2;
    return c;
}

// The queries' rows that attention is wanted for: all, or behind the last layer's keys those of the kept rows.
// Quantised as well, where heads are whole pieces.
static void attend(struct pass *p, int layer, const struct rows *out, VkDeviceAddress list) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[layer];
    const struct attention_cut cut = cut_attention(p, l, out->n);
    const uint32_t n_head = (uint32_t)l->spec->n_head, size = (uint32_t)s->head_size;
    const struct {
        VkDeviceAddress qkv, to, codes, sinks, rows, list, pages;
        uint32_t qkv_stride, to_stride, n_head, n_head_kv, window;
        float softcap;
        VkDeviceAddress parts;
        uint32_t n, layer, has_list;
    } push = {w->qkv,
              out->address,
              out->codes,
              l->sinks,
              w->rows.address,
              list_or_any(p, list),
              w->pages.address,
              w->qkv_stride,
              out->stride,
              n_head,
              (uint32_t)l->spec->n_head_kv,
              (uint32_t)l->spec->window,
              s->attention_softcap,
              w->parts,
              out->n,
              l->kv_start,
              list != 0};
    const bool quantizes = b->weights.quantised && size % 32 == 0;
    RUN(p, "attention", push, cut.x, cut.y, cut.parts, size, b->kv_type, l->sinks != 0, cut.heads, cut.rows, quantizes);
    if (cut.parts == 1) return;
    pass_barrier(p);
    const struct {
        VkDeviceAddress parts, to, codes, sinks;
        uint32_t to_stride, n_parts;
    } join = {w->parts, out->address, out->codes, l->sinks, out->stride, cut.parts};
    RUN(p, "attention_join", join, n_head, out->n, 1, size, l->sinks != 0, quantizes);
}

static void prepare_heads(struct pass *p, int layer) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[layer];
    const uint32_t n_head = (uint32_t)l->spec->n_head, n_head_kv = (uint32_t)l->spec->n_head_kv;
    const bool rotates = l->spec->rope != ROPE_TABLE_NONE;
    const uint32_t head_norm = s->head_norm == HEAD_NORM_WHOLE ? 0 : (uint32_t)s->head_norm;
    const struct {
        VkDeviceAddress qkv, query_norm, key_norm, rotation, rows, pages;
        uint32_t qkv_stride, n_head, n_head_kv;
        float epsilon;
        uint32_t layer;
    } push = {
        w->qkv,          l->query_norm.weight, l->key_norm.weight, rotates ? w->rotations[l->spec->rope].address : 0,
        w->rows.address, w->pages.address,     w->qkv_stride,      n_head,
        n_head_kv,       s->norm_epsilon,      l->kv_start};
    RUN(p, "heads", push, n_head + 2 * n_head_kv, (uint32_t)p->shape.n_rows, 1, (uint32_t)s->head_size, b->kv_type,
        rotates ? (uint32_t)s->rope.n_rot : 0, (uint32_t)s->rope.kind, (uint32_t)s->norm,
        l->query_norm.weight ? head_norm : 0, l->key_norm.weight ? head_norm : 0);
}

// What a branch left in `added`, normed, onto the residuals; without a post norm it is there already.
static void add_later(struct pass *p, const struct device_norm *post_norm, const struct rows *x) {
    const struct backend *b = p->b;
    const struct rows added = embd_rows(b, b->work.added, (int)x->n);
    if (!post_norm->weight) return;
    norm_rows(p, post_norm, &added, 0, x, b->spec->n_embd, b->spec->residual_scale);
    pass_barrier(p);
}

// The last matmul of a branch: onto the residuals at once, or first to where its post norm finds it.
static void end_branch(struct pass *p, const struct device_matrix *m, const struct rows *in, VkDeviceAddress bias,
                       const struct device_norm *post_norm, const struct rows *x) {
    struct backend *b = p->b;
    const bool later = post_norm->weight != 0;
    const struct rows added = embd_rows(b, b->work.added, (int)x->n);
    matmul(p, &(struct matmul){.matrix = m,
                               .from = in,
                               .to = later ? &added : x,
                               .bias = bias,
                               .scale = later ? 1 : b->spec->residual_scale,
                               .add = !later});
    pass_barrier(p);
    add_later(p, post_norm, x);
}

static void attention(struct pass *p, int layer, const struct rows *normed, const struct rows *x,
                      VkDeviceAddress list) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_layer *l = &b->weights.layers[layer];
    const int n = p->shape.n_rows, size = b->spec->head_size;
    const int queries = l->spec->n_head * size, keys = l->spec->n_head_kv * size;
    const struct rows to[] = {rows_of(w->qkv, w->qkv_stride, n),
                              rows_of(w->qkv + 4 * (uint64_t)queries, w->qkv_stride, n),
                              rows_of(w->qkv + 4 * (uint64_t)(queries + keys), w->qkv_stride, n)};
    const struct matmul qkv[] = {
        {.matrix = &l->query, .from = normed, .to = &to[0], .bias = l->query_bias, .scale = 1},
        {.matrix = &l->key, .from = normed, .to = &to[1], .bias = l->key_bias, .scale = 1},
        {.matrix = &l->value, .from = normed, .to = &to[2], .bias = l->value_bias, .scale = 1}};
    matmuls(p, qkv, 3);
    pass_barrier(p);
    if (b->spec->head_norm == HEAD_NORM_WHOLE) {
        if (l->query_norm.weight) norm_rows(p, &l->query_norm, &to[0], 0, &to[0], queries, 0);
        if (l->key_norm.weight) norm_rows(p, &l->key_norm, &to[1], 0, &to[1], keys, 0);
        pass_barrier(p);
    }
    pass_end_stage(p, STAGE_PROJECT);
    prepare_heads(p, layer);
    pass_barrier(p);
    const struct rows attended = coded(rows_of(w->attended, w->attended_stride, (int)x->n), w->attended_codes);
    attend(p, layer, &attended, list);
    pass_barrier(p);
    if (b->spec->head_size % 32) quantize(p, &attended);
    pass_end_stage(p, STAGE_ATTEND);
    end_branch(p, &l->output, &attended, l->output_bias, &l->attention_post_norm, x);
}

static void ffn_dense(struct pass *p, const struct device_layer *l, const struct rows *in, const struct rows *x) {
    const struct device_workspace *w = &p->b->work;
    const struct rows middle = coded(rows_of(w->gate, w->ffn_stride, (int)in->n), w->gate_codes);
    gated(p, &(struct gated){.gate = &l->gate,
                             .up = &l->up,
                             .gate_bias = l->gate_bias,
                             .up_bias = l->up_bias,
                             .in = in,
                             .middle = &middle,
                             .scratch = w->up});
    end_branch(p, &l->down, &middle, l->down_bias, &l->ffn_post_norm, x);
}

static void choose_experts(struct pass *p, const struct device_experts *e, const struct rows *in) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct expert_spec *s = &b->spec->experts;
    const struct rows scores = rows_of(w->scores, w->score_stride, (int)in->n);
    const struct rows shared_score = rows_of(w->shared_score, 1, (int)in->n);
    matmul(p, &(struct matmul){.matrix = &e->router, .from = in, .to = &scores, .bias = e->router_bias, .scale = 1});
    matmul(p, &(struct matmul){.matrix = &e->shared_router, .from = in, .to = &shared_score, .scale = 1});
    pass_barrier(p);
    const struct {
        VkDeviceAddress logits, bias, choices;
        uint32_t stride;
        float scale;
    } push = {w->scores, e->choice_bias, w->choices, w->score_stride, s->scale};
    RUN(p, "choose", push, in->n, 1, 1, (uint32_t)s->count, (uint32_t)s->used, (uint32_t)s->gating, s->normalise,
        e->choice_bias != 0);
    pass_barrier(p);
}

// Brings the slots in the order of their experts where matmul wants tiles of them.
static void group_experts(struct pass *p, uint32_t slots) {
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

static void ffn_shared(struct pass *p, const struct device_experts *e, const struct rows *in) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct rows middle = coded(rows_of(w->gate, w->ffn_stride, (int)in->n), w->gate_codes);
    const struct rows added = embd_rows(b, w->added, (int)in->n);
    gated(p,
          &(struct gated){.gate = &e->shared_gate, .up = &e->shared_up, .in = in, .middle = &middle, .scratch = w->up});
    matmul(p, &(struct matmul){.matrix = &e->shared_down, .from = &middle, .to = &added, .scale = 1});
}

static void add_experts(struct pass *p, const struct device_layer *l, const struct rows *x) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const bool later = l->ffn_post_norm.weight != 0, shared = l->experts.shared_up.format != NULL;
    const struct {
        VkDeviceAddress results, choices, shared_results, shared_logits, to;
        uint32_t n, stride, logits_stride;
        float scale;
    } push = {w->expert_out,       w->choices,     w->added, w->shared_score,  later ? w->added : x->address,
              (uint32_t)s->n_embd, w->embd_stride, 1,        s->residual_scale};
    RUN(p, "experts_add", push, groups((uint32_t)s->n_embd, 64), x->n, 1, (uint32_t)s->experts.used, shared,
        l->experts.shared_router.format != NULL, !later);
    pass_barrier(p);
    add_later(p, &l->ffn_post_norm, x);
}

static void ffn_experts(struct pass *p, const struct device_layer *l, const struct rows *in, const struct rows *x) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct device_experts *e = &l->experts;
    const int used = b->spec->experts.used, slots = (int)in->n * used;
    choose_experts(p, e, in);
    group_experts(p, (uint32_t)slots);
    const struct rows middle = coded(rows_of(w->expert_gate, w->expert_stride, slots), w->expert_gate_codes);
    const struct rows out = embd_rows(b, w->expert_out, slots);
    gated(p, &(struct gated){.gate = &e->gate,
                             .up = &e->up,
                             .gate_bias = e->gate_bias,
                             .up_bias = e->up_bias,
                             .in = in,
                             .middle = &middle,
                             .scratch = w->expert_up,
                             .choices = w->choices,
                             .share = used});
    matmul(
        p,
        &(struct matmul){
            .matrix = &e->down, .from = &middle, .to = &out, .bias = e->down_bias, .scale = 1, .choices = w->choices});
    if (e->shared_up.format) ffn_shared(p, e, in);
    pass_barrier(p);
    add_experts(p, l, x);
}

// Behind the keys and values of the last layer only the kept rows matter: they go on in a buffer of their own.
static void layer(struct pass *p, int i) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct device_layer *l = &b->weights.layers[i];
    const bool last = i == s->n_layer - 1;
    const struct rows all = embd_rows(b, w->x, p->shape.n_rows);
    const struct rows normed = coded(embd_rows(b, w->normed, p->shape.n_rows), w->normed_codes);
    const struct rows x = last ? embd_rows(b, w->kept_x, p->shape.n_kept) : all;
    const VkDeviceAddress list = last ? w->kept.address : 0;
    const struct rows in = coded(embd_rows(b, w->ffn_in, (int)x.n), w->ffn_in_codes);
    const struct device_norm *ffn_norm = s->parallel && !l->ffn_norm.weight ? &l->attention_norm : &l->ffn_norm;
    norm_rows(p, &l->attention_norm, &all, 0, &normed, s->n_embd, 0);
    if (last) norm_rows(p, &(struct device_norm){0}, &all, list, &x, s->n_embd, 0);
    if (s->parallel) norm_rows(p, ffn_norm, &all, list, &in, s->n_embd, 0);
    pass_barrier(p);
    attention(p, i, &normed, &x, list);
    pass_end_stage(p, STAGE_PROJECT);
    if (!s->parallel) {
        norm_rows(p, ffn_norm, &x, 0, &in, s->n_embd, 0);
        pass_barrier(p);
    }
    if (l->spec->experts) ffn_experts(p, l, &in, &x);
    else ffn_dense(p, l, &in, &x);
    pass_end_stage(p, STAGE_FEED);
}

static void logits(struct pass *p) {
    struct backend *b = p->b;
    const struct device_workspace *w = &b->work;
    const struct model_spec *s = b->spec;
    const struct rows x = embd_rows(b, w->kept_x, p->shape.n_kept);
    const struct rows in = coded(embd_rows(b, w->logits_in, p->shape.n_logits), w->logits_in_codes);
    const struct rows out = rows_of(w->logits_out, (uint32_t)s->n_vocab, p->shape.n_logits);
    const struct rows hidden = rows_of(w->hidden_out, (uint32_t)s->n_embd, p->shape.n_hidden);
    norm_rows(p, &b->weights.output_norm, &x, w->logits_rows.address, &in, s->n_embd, 0);
    norm_rows(p, &b->weights.output_norm, &x, w->hidden_rows.address, &hidden, s->n_embd, 0);
    pass_barrier(p);
    matmul(p, &(struct matmul){.matrix = &b->weights.output,
                               .from = &in,
                               .to = &out,
                               .bias = b->weights.output_bias,
                               .scale = s->logit_scale,
                               .softcap = s->logit_softcap});
    pass_barrier(p);
}

void pass_stages(struct pass *p) {
    struct backend *b = p->b;
    embed(p);
    for (int i = b->first_layer; i < b->end_layer; i++) layer(p, i);
    if (has_last_layer(b)) logits(p);
}
