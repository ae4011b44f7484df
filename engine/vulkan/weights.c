// The weights of a model on a device, in the blocks of the file.
//
// Every weight of the layers is visited twice: the first time it is given its place in a chunk, the second time, when
// the chunks are there, it is written there and its address is noted: through staging buffers, one of which is filled
// while the other is copied, unless the memory is the host's as well.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "engine/vulkan/vulkan.h"

enum { ALIGNMENT = 256, CHUNK_BYTES = 256 << 20, STAGING_BYTES = 16 << 20, STAGINGS = 2 };

struct staging {
    struct vulkan_context context;
    struct vulkan_buffer buffer;
};

struct visit {
    struct backend *b;
    struct status *st;
    const struct backend_options *options; // NULL: weights are only given their places
    int chunk;
    uint64_t used; // of the chunk
    uint64_t done; // bytes uploaded
    struct staging staging[STAGINGS];
    int next; // of them
    bool ok;
};

static void next_chunk(struct visit *v) {
    struct device_weights *w = &v->b->weights;
    v->chunk++;
    v->used = 0;
    if (v->options) return;
    if (v->chunk == MOST_CHUNKS) {
        v->ok = status_fail(v->st, STATUS_LIMIT, "Vulkan: more than %d buffers of weights", MOST_CHUNKS);
        v->chunk--;
    }
    w->n_chunks = v->chunk + 1;
}

enum { SLICE_BYTES = 1 << 20 };
struct copying {
    char *to;
    const char *from;
    size_t size;
};

static void copy_slice(void *context, int i, int worker) {
    (void)worker;
    const struct copying *c = context;
    const size_t start = (size_t)i * SLICE_BYTES, left = c->size - start;
    memcpy(c->to + start, c->from + start, left < SLICE_BYTES ? left : SLICE_BYTES);
}

// By all threads: one alone is slower than the bus, and waits for each page of a mapped file.
static void copy(struct visit *v, void *to, const void *from, uint64_t size) {
    struct copying c = {to, from, (size_t)size};
    thread_pool_for_each(v->b->pool, (int)((size + SLICE_BYTES - 1) / SLICE_BYTES), copy_slice, &c);
}

static bool stage(struct visit *v, const struct vulkan_buffer *chunk, uint64_t at, const void *data, uint64_t size) {
    struct staging *g = &v->staging[v->next];
    struct vulkan_context *c = &g->context;
    const struct vulkan_list *const list = &c->once;
    v->next = (v->next + 1) % STAGINGS;
    if (!vulkan_wait(c, v->st)) return false;
    copy(v, g->buffer.mapped, data, size);
    if (!vulkan_begin(c, &c->once, v->st)) return false;
    vulkan_copy(c, &g->buffer, 0, chunk, at, size);
    return vulkan_end(c, v->st) && vulkan_submit(c, &list, 1, v->st);
}

static uint64_t upload_piece(struct visit *v, uint64_t at, const void *data, uint64_t size) {
    const struct vulkan_buffer *chunk = &v->b->weights.chunks[v->chunk];
    const struct backend_options *o = v->options;
    if (size > STAGING_BYTES) size = STAGING_BYTES;
    if (chunk->mapped) copy(v, (char *)chunk->mapped + at, data, size);
    else v->ok = stage(v, chunk, at, data, size);
    v->done += size;
    if (v->ok && o->progress && !o->progress(o->progress_context, (double)v->done / (double)v->b->weights.bytes))
        v->ok = status_fail(v->st, STATUS_CANCELLED, "loading was cancelled");
    return size;
}

// Weights of the same shape one behind the other; returns the address of the first, 0 when there are none.
static VkDeviceAddress place(struct visit *v, const struct weight *weights, int n) {
    if (!v->ok || !n || !weights->format) return 0;
    struct device_weights *w = &v->b->weights;
    const uint64_t each = (uint64_t)weights->rows * weights->row_bytes, size = each * (uint64_t)n;
    if (v->chunk < 0 || (v->used && v->used + size > CHUNK_BYTES)) next_chunk(v);
    const uint64_t start = v->used;
    v->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!v->options) {
        w->sizes[v->chunk] = v->used;
        w->bytes += size;
        return 0;
    }
    for (int i = 0; i < n; i++)
        for (uint64_t at = 0; at < each && v->ok;)
            at += upload_piece(v, start + (uint64_t)i * each + at, (const char *)weights[i].data + at, each - at);
    return w->chunks[v->chunk].address + start;
}

static struct device_matrix matrix(struct visit *v, const struct weight *weights, int n) {
    const struct device_matrix m = {weights ? weights->format : NULL, weights ? place(v, weights, n) : 0,
                                    weights ? (uint32_t)weights->rows : 0, weights ? (uint32_t)weights->columns : 0};
    v->b->weights.quantised |= m.format && m.format->elements > 1;
    return m;
}

static VkDeviceAddress vector(struct visit *v, const struct weight *weight) {
    assert(!weight->format || weight->format->id == BLOCK_F32);
    return place(v, weight, 1);
}

static struct device_norm norm(struct visit *v, const struct weight *weight, const struct weight *bias) {
    struct device_norm n = {vector(v, weight), 0};
    if (bias) n.bias = vector(v, bias);
    return n;
}

static void visit_experts(struct visit *v, struct device_experts *out, const struct expert_weights *x) {
    const int count = v->b->spec->experts.count;
    out->router = matrix(v, &x->router, 1);
    out->gate = matrix(v, x->gate, count);
    out->up = matrix(v, x->up, count);
    out->down = matrix(v, x->down, count);
    out->shared_gate = matrix(v, &x->shared_gate, 1);
    out->shared_up = matrix(v, &x->shared_up, 1);
    out->shared_down = matrix(v, &x->shared_down, 1);
    out->shared_router = matrix(v, &x->shared_router, 1);
    out->router_bias = vector(v, &x->router_bias);
    out->choice_bias = vector(v, &x->choice_bias);
    out->gate_bias = vector(v, &x->gate_bias);
    out->up_bias = vector(v, &x->up_bias);
    out->down_bias = vector(v, &x->down_bias);
}

static void visit_layer(struct visit *v, int layer) {
    const struct model_layer *l = &v->b->model->layers[layer];
    struct device_layer *out = &v->b->weights.layers[layer];
    out->spec = &v->b->spec->layers[layer];
    out->attention_norm = norm(v, &l->attn_norm, &l->attn_norm_bias);
    out->attention_post_norm = norm(v, &l->attn_post_norm, NULL);
    out->ffn_norm = norm(v, &l->ffn_norm, &l->ffn_norm_bias);
    out->ffn_post_norm = norm(v, &l->ffn_post_norm, NULL);
    out->query_norm = norm(v, &l->attn_q_norm, NULL);
    out->key_norm = norm(v, &l->attn_k_norm, NULL);
    const struct {
        struct device_matrix *matrix;
        const struct weight *weight;
    } matrices[] = {{&out->query, &l->attn_q},       {&out->key, &l->attn_k},    {&out->value, &l->attn_v},
                    {&out->output, &l->attn_output}, {&out->gate, &l->ffn_gate}, {&out->up, &l->ffn_up},
                    {&out->down, &l->ffn_down}};
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        *matrices[i].matrix = matrix(v, matrices[i].weight, 1);
    const struct {
        VkDeviceAddress *address;
        const struct weight *weight;
    } vectors[] = {{&out->query_bias, &l->attn_q_bias},  {&out->key_bias, &l->attn_k_bias},
                   {&out->value_bias, &l->attn_v_bias},  {&out->output_bias, &l->attn_output_bias},
                   {&out->gate_bias, &l->ffn_gate_bias}, {&out->up_bias, &l->ffn_up_bias},
                   {&out->down_bias, &l->ffn_down_bias}, {&out->sinks, &l->attn_sinks}};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i].address = vector(v, vectors[i].weight);
    if (out->spec->experts) visit_experts(v, &out->experts, &l->experts);
}

static bool visit_all(struct visit *v) {
    struct backend *b = v->b;
    struct device_weights *w = &b->weights;
    const struct model *m = b->model;
    const struct block_grids *grids = block_grids();
    const struct weight tables = {&block_formats[BLOCK_F32], grids, 1, sizeof *grids / sizeof(float),
                                  sizeof *grids}; // bytes, not floats
    w->grids = place(v, &tables, 1);
    if (!b->first_layer) w->embedding = matrix(v, &m->token_embd, 1);
    for (int i = b->first_layer; i < b->end_layer; i++) visit_layer(v, i);
    if (!has_last_layer(b)) return v->ok;
    w->output = m->tied && !b->first_layer ? w->embedding : matrix(v, &m->output, 1);
    w->output_norm = norm(v, &m->output_norm, &m->output_norm_bias);
    w->output_bias = vector(v, &m->output_bias);
    return v->ok;
}

bool weights_place(struct backend *b, struct status *st) {
    b->weights.layers = arena_alloc(&b->arena, (size_t)b->spec->n_layer * sizeof *b->weights.layers);
    struct visit v = {.b = b, .st = st, .chunk = -1, .ok = true};
    return visit_all(&v);
}

static bool open_staging(struct visit *v) {
    struct vulkan_device *d = v->b->context.device;
    for (int i = 0; i < STAGINGS; i++) {
        struct staging *g = &v->staging[i];
        if (!vulkan_context_open(&g->context, d->physical, v->st) ||
            !vulkan_buffer_open(d, &g->buffer, STAGING_BYTES, VULKAN_MEMORY_UPLOAD, "staging", v->st))
            return false;
    }
    return true;
}

// Waits for what is still copied.
static bool close_staging(struct visit *v) {
    bool ok = true;
    for (int i = 0; i < STAGINGS; i++) {
        struct staging *g = &v->staging[i];
        ok &= vulkan_wait(&g->context, ok ? v->st : NULL);
        vulkan_buffer_close(v->b->context.device, &g->buffer);
        vulkan_context_close(&g->context);
    }
    return ok;
}

bool weights_upload(struct backend *b, const struct backend_options *options, struct status *st) {
    struct device_weights *w = &b->weights;
    struct visit v = {.b = b, .st = st, .options = options, .chunk = -1, .ok = true};
    bool mapped = true;
    for (int i = 0; i < w->n_chunks; i++) {
        if (!vulkan_buffer_open(b->context.device, &w->chunks[i], w->sizes[i], VULKAN_MEMORY_DEVICE, "weights", st))
            return false;
        mapped &= w->chunks[i].mapped != NULL;
    }
    const bool ok = (mapped || open_staging(&v)) && visit_all(&v);
    return close_staging(&v) && ok;
}
