// Keys and values of a backend's layers, and what a batch does to whole pages of them.
#include <assert.h>
#include <string.h>

#include "engine/cpu/cpu.h"

bool kv_open(struct backend *b, struct status *st) {
    struct cpu_kv *kv = &b->kv;
    uint64_t page = 0, before = 0;
    kv->layers = arena_alloc(&b->memory.arena, (size_t)b->spec->n_layer * sizeof *kv->layers);
    for (int i = b->first_layer; i < b->end_layer; i++) {
        kv->layers[i].page_bytes = kv_page_bytes(&kv->layout, b->spec->layers[i].n_head_kv);
        page += kv->layers[i].page_bytes;
    }
    if (!(kv->pages = buffer_take(b, (uint64_t)kv->n_pages, page, "the KV cache", st))) return false;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        kv->layers[i].pages = kv->pages + before;
        before += kv->layers[i].page_bytes * (uint64_t)kv->n_pages;
    }
    kv->page_bytes = page;
    kv->bytes = (size_t)before;
    return true;
}

uint8_t *kv_at(const struct backend *b, int layer, int32_t page, int kv_head) {
    const struct cpu_kv *kv = &b->kv;
    assert(page >= 0 && page < kv->n_pages);
    return kv_keys(&kv->layout, kv->layers[layer].pages, kv->n_pages, b->spec->layers[layer].n_head_kv, page, kv_head);
}

// All that a batch does to the pages of a layer; `before` of a page's bytes are those of the layers in front.
static void move_layer(const struct backend *b, const struct batch *batch, int layer, size_t before) {
    const size_t bytes = kv_head_bytes(&b->kv.layout);
    const int n_heads = b->spec->layers[layer].n_head_kv;
    for (const struct page_transfer *t = batch->reads; t < batch->reads + batch->n_reads; t++)
        for (int head = 0; head < n_heads; head++)
            memcpy((uint8_t *)t->data + before + (size_t)head * bytes, kv_at(b, layer, t->page, head), bytes);
    for (const struct page_transfer *t = batch->writes; t < batch->writes + batch->n_writes; t++)
        for (int head = 0; head < n_heads; head++)
            memcpy(kv_at(b, layer, t->page, head), (const uint8_t *)t->data + before + (size_t)head * bytes, bytes);
    for (const struct page_copy *c = batch->copies; c < batch->copies + batch->n_copies; c++) {
        assert(c->to != c->from);
        for (int head = 0; head < n_heads; head++)
            memcpy(kv_at(b, layer, c->to, head), kv_at(b, layer, c->from, head), bytes);
    }
}

void kv_move(struct worker *w, void *pass) {
    const struct pass *p = pass;
    size_t before = 0;
    for (int i = p->b->first_layer; i < p->b->end_layer; i++) {
        if (i % w->count == w->index) move_layer(p->b, p->batch, i, before);
        before += p->b->kv.layers[i].page_bytes;
    }
}
