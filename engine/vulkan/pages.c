// KV pages on a device; how a layer's part of one is laid out is drawn in shaders/kv.glsl.
#include <inttypes.h>
#include <string.h>

#include "engine/vulkan/vulkan.h"

enum { CHUNK_BYTES = 256 << 20 };

uint64_t layer_page_bytes(const struct backend *b, int layer) {
    const uint64_t size = (uint64_t)b->spec->head_size, blocks = (size + 31) / 32;
    const uint64_t side = b->kv_type == KV_Q8_0   ? blocks * KV_PAGE_TOKENS * 34
                          : b->kv_type == KV_Q4_0 ? blocks * KV_PAGE_TOKENS * 18
                                                  : size * KV_PAGE_TOKENS * 2;
    return 2 * side * (uint64_t)b->spec->layers[layer].n_head_kv;
}

static bool open_chunks(struct backend *b, struct status *st) {
    struct device_pages *p = &b->pages;
    struct vulkan_device *d = b->context.device;
    const uint64_t page = b->info.page_bytes;
    p->chunk_pages = page < CHUNK_BYTES ? (int)(CHUNK_BYTES / page) : 1;
    p->n_chunks = (b->n_pages + p->chunk_pages - 1) / p->chunk_pages;
    p->chunks = arena_alloc(&b->arena, (size_t)p->n_chunks * sizeof *p->chunks);
    for (int i = 0, left = b->n_pages; i < p->n_chunks; i++, left -= p->chunk_pages) {
        const int n = left < p->chunk_pages ? left : p->chunk_pages;
        if (!vulkan_buffer_open(d, &p->chunks[i], page * (uint64_t)n, VULKAN_MEMORY_DEVICE, "the KV cache", st))
            return false;
    }
    return true;
}

bool pages_open(struct backend *b, struct status *st) {
    uint64_t start = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        struct device_layer *l = &b->weights.layers[i];
        l->kv_start = (uint32_t)start;
        l->page_bytes = layer_page_bytes(b, i);
        start += l->page_bytes;
    }
    if (start > CHUNK_BYTES)
        return status_fail(st, STATUS_LIMIT, "Vulkan: a page of the KV cache of all layers has %" PRIu64 " bytes",
                           start);
    return open_chunks(b, st);
}

void pages_close(struct backend *b) {
    for (int i = 0; i < b->pages.n_chunks; i++) vulkan_buffer_close(b->context.device, &b->pages.chunks[i]);
}

// ---- what a batch does to whole pages ----

// The chunk of a page, and where in it that begins.
static const struct vulkan_buffer *chunk_of(const struct backend *b, int32_t page, uint64_t *start) {
    *start = b->info.page_bytes * (uint64_t)(page % b->pages.chunk_pages);
    return &b->pages.chunks[page / b->pages.chunk_pages];
}

VkDeviceAddress page_address(const struct backend *b, int32_t page) {
    uint64_t start;
    const struct vulkan_buffer *chunk = chunk_of(b, page, &start);
    return chunk->address + start;
}

static void copy_page(struct backend *b, const struct page_copy *copy) {
    uint64_t from, to;
    const struct vulkan_buffer *source = chunk_of(b, copy->from, &from), *target = chunk_of(b, copy->to, &to);
    vulkan_copy(&b->context, source, from, target, to, b->info.page_bytes);
}

static bool transfer(struct backend *b, const struct page_transfer *t, bool out, struct status *st) {
    struct vulkan_buffer outside;
    struct vulkan_context *c = &b->context;
    const size_t size = (size_t)b->info.page_bytes;
    if (!vulkan_buffer_open(c->device, &outside, size, out ? VULKAN_MEMORY_READBACK : VULKAN_MEMORY_UPLOAD, "a page",
                            st))
        return false;
    if (!out) memcpy(outside.mapped, t->data, size);
    bool ok = vulkan_begin(c, &c->once, st);
    uint64_t start;
    const struct vulkan_buffer *chunk = chunk_of(b, t->page, &start);
    if (ok && out) vulkan_copy(c, chunk, start, &outside, 0, size);
    else if (ok) vulkan_copy(c, &outside, 0, chunk, start, size);
    ok = ok && vulkan_run_once(c, st);
    if (ok && out) memcpy(t->data, outside.mapped, size);
    vulkan_buffer_close(c->device, &outside);
    return ok;
}

bool pages_transfer(struct backend *b, const struct batch *batch, struct status *st) {
    for (int i = 0; i < batch->n_reads; i++)
        if (!transfer(b, &batch->reads[i], true, st)) return false;
    for (int i = 0; i < batch->n_writes; i++)
        if (!transfer(b, &batch->writes[i], false, st)) return false;
    return true;
}

bool pages_record_copies(struct backend *b, const struct batch *batch, struct status *st) {
    struct vulkan_context *c = &b->context;
    if (!vulkan_begin(c, &c->once, st)) return false;
    for (int i = 0; i < batch->n_copies; i++) {
        copy_page(b, &batch->copies[i]);
        vulkan_barrier_copies(c);
    }
    return vulkan_end(c, st);
}
