#include "engine/format/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum { VERSION = 3, ALIGNMENT = 32 };

// Everything before the tensor data; at most a few megabytes, mostly vocabulary.
struct buffer {
    uint8_t *data;
    size_t size, room;
};

static void put(struct buffer *t, const void *data, size_t size) {
    if (t->size + size > t->room) {
        t->room = 2 * (t->size + size);
        t->data = xrealloc(t->data, t->room);
    }
    if (size) memcpy(t->data + t->size, data, size);
    t->size += size;
}

static void put_u32(struct buffer *t, uint32_t value) { put(t, &value, sizeof value); }
static void put_u64(struct buffer *t, uint64_t value) { put(t, &value, sizeof value); }

static void put_string(struct buffer *t, struct span s) {
    put_u64(t, s.size);
    put(t, s.data, s.size);
}

static void put_pair(struct buffer *t, const struct gguf_pair *p) {
    put_string(t, p->key);
    put_u32(t, p->type);
    if (p->type == GGUF_ARRAY) {
        put_u32(t, p->element);
        put_u64(t, p->count);
    }
    put(t, p->data, p->size);
}

static uint64_t aligned(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

uint64_t gguf_tensor_bytes(const struct gguf_tensor *t) {
    return t->dims[0] / t->format->elements * t->format->bytes * t->dims[1] * t->dims[2] * t->dims[3];
}

static void put_tensor(struct buffer *t, const struct gguf_tensor *tensor, uint64_t offset) {
    put_string(t, tensor->name);
    put_u32(t, (uint32_t)tensor->n_dims);
    for (int i = 0; i < tensor->n_dims; i++) put_u64(t, tensor->dims[i]);
    put_u32(t, tensor->format->gguf_type);
    put_u64(t, offset);
}

bool gguf_write_begin(struct gguf_write *w, struct output_file *file, const struct gguf_contents *c,
                      struct status *st) {
    struct buffer t = {0};
    uint64_t offset = 0;
    put(&t, "GGUF", 4);
    put_u32(&t, VERSION);
    put_u64(&t, c->n_tensors);
    put_u64(&t, c->n_pairs);
    for (uint64_t i = 0; i < c->n_pairs; i++) put_pair(&t, &c->pairs[i]);
    for (uint64_t i = 0; i < c->n_tensors; i++) {
        put_tensor(&t, &c->tensors[i], offset);
        offset += aligned(gguf_tensor_bytes(&c->tensors[i]));
    }
    *w = (struct gguf_write){.file = file};
    bool done = output_file_reserve(file, aligned(t.size) + offset, st) && gguf_write_data(w, t.data, t.size, st) &&
                gguf_write_pad(w, st);
    free(t.data);
    return done;
}

bool gguf_write_data(struct gguf_write *w, const void *data, size_t size, struct status *st) {
    w->at += size;
    return output_file_write(w->file, data, size, st);
}

bool gguf_write_pad(struct gguf_write *w, struct status *st) {
    static const uint8_t zeros[ALIGNMENT];
    return gguf_write_data(w, zeros, (size_t)(aligned(w->at) - w->at), st);
}

struct gguf_pair gguf_pair_u32(const char *key, const uint32_t *value) {
    return (struct gguf_pair){.key = span_of(key),
                              .type = GGUF_U32,
                              .element = GGUF_U32,
                              .count = 1,
                              .data = (const uint8_t *)value,
                              .size = sizeof *value};
}
