#include "engine/format/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum { VERSION = 3, ALIGNMENT = 32 };

// Everything before the tensor data; at most a few megabytes, mostly vocabulary.
struct buffer {
    uint8_t *data;
    size_t size, capacity;
};

static void put(struct buffer *b, const void *data, size_t size) {
    if (b->size + size > b->capacity) {
        b->capacity = 2 * (b->size + size);
        b->data = xrealloc(b->data, b->capacity);
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static void put_u32(struct buffer *b, uint32_t value) { put(b, &value, sizeof value); }
static void put_u64(struct buffer *b, uint64_t value) { put(b, &value, sizeof value); }

static void put_string(struct buffer *b, struct span s) {
    put_u64(b, s.size);
    put(b, s.data, s.size);
}

static uint64_t aligned(uint64_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

uint64_t gguf_tensor_bytes(const struct gguf_tensor *t) {
    return t->dims[0] / t->format->elements * t->format->bytes * t->dims[1] * t->dims[2] * t->dims[3];
}

bool gguf_write_begin(struct gguf_write *w, struct output_file *file, const struct gguf_contents *c,
                      struct status *st) {
    struct buffer b = {0};
    uint64_t offset = 0;
    put(&b, "GGUF", 4);
    put_u32(&b, VERSION);
    put_u64(&b, c->n_tensors);
    put_u64(&b, c->n_pairs);
    for (const struct gguf_pair *p = c->pairs; p < c->pairs + c->n_pairs; p++) {
        put_string(&b, p->key);
        put_u32(&b, p->type);
        if (p->type == GGUF_ARRAY) {
            put_u32(&b, p->element);
            put_u64(&b, p->count);
        }
        put(&b, p->data, p->size);
    }
    for (const struct gguf_tensor *t = c->tensors; t < c->tensors + c->n_tensors; t++) {
        put_string(&b, t->name);
        put_u32(&b, (uint32_t)t->n_dims);
        for (int i = 0; i < t->n_dims; i++) put_u64(&b, t->dims[i]);
        put_u32(&b, t->format->gguf_type);
        put_u64(&b, offset);
        offset += aligned(gguf_tensor_bytes(t));
    }
    *w = (struct gguf_write){.file = file};
    bool done = output_file_reserve(file, aligned(b.size) + offset, st) && gguf_write_data(w, b.data, b.size, st) &&
                gguf_write_pad(w, st);
    free(b.data);
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
