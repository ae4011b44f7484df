// KV pages on a device; their layout is drawn in shaders/kv.glsl. A layer's pages are a buffer.
#include <inttypes.h>
#include <string.h>

#include "engine/vulkan/vulkan.h"

uint64_t layer_page_bytes(const struct backend *b, int layer) {
    const uint64_t size = (uint64_t)b->spec->head_size, blocks = (size + 31) / 32;
    const uint64_t side = b->kv_type == KV_Q8_0   ? blocks * KV_PAGE_TOKENS * 34
                          : b->kv_type == KV_Q4_0 ? blocks * KV_PAGE_TOKENS * 18
                                                  : size * KV_PAGE_TOKENS * 2;
    return 2 * side * (uint64_t)b->spec->layers[layer].n_head_kv;
}

bool pages_open(struct backend *b, struct status *st) {
    b->kv_buffers = arena_alloc(&b->arena, (size_t)b->spec->n_layer * sizeof *b->kv_buffers);
    for (int i = b->first_layer; i < b->end_layer; i++) {
        struct device_layer *l = &b->weights.layers[i];
        l->page_bytes = layer_page_bytes(b, i);
        const uint64_t bytes = l->page_bytes * (uint64_t)b->n_pages;
        if (bytes > UINT32_MAX)
            return status_fail(st, STATUS_LIMIT,
                               "Vulkan: the KV cache of a layer may have 4 GiB, not %" PRIu64 " bytes", bytes);
        if (!vulkan_buffer_open(b->context.device, &b->kv_buffers[i], bytes, VULKAN_MEMORY_DEVICE, "the KV cache", st))
            return false;
        l->kv_buffer = &b->kv_buffers[i];
        l->kv = l->kv_buffer->address;
    }
    return true;
}

void pages_close(struct backend *b) {
    for (int i = b->first_layer; b->kv_buffers && i < b->end_layer; i++)
        vulkan_buffer_close(b->context.device, &b->kv_buffers[i]);
}

// ---- what a batch does to whole pages ----

static void copy_page(struct backend *b, const struct page_copy *copy) {
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct device_layer *l = &b->weights.layers[i];
        vulkan_copy(&b->context, l->kv_buffer, l->page_bytes * (uint64_t)copy->from, l->kv_buffer,
                    l->page_bytes * (uint64_t)copy->to, l->page_bytes);
    }
}

// Between a page and a buffer outside, in which its layers lie one behind the other.
static void transfer_page(struct backend *b, int32_t page, const struct vulkan_buffer *outside, bool out) {
    uint64_t at = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        const struct device_layer *l = &b->weights.layers[i];
        const uint64_t own = l->page_bytes * (uint64_t)page;
        if (out) vulkan_copy(&b->context, l->kv_buffer, own, outside, at, l->page_bytes);
        else vulkan_copy(&b->context, outside, at, l->kv_buffer, own, l->page_bytes);
        at += l->page_bytes;
    }
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
    if (ok) transfer_page(b, t->page, &outside, out);
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
        vulkan_barrier(c);
    }
    return vulkan_end(c, st);
}
