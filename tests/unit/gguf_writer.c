#include "tests/unit/gguf_writer.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void bytes_put(struct bytes *b, const void *data, size_t size) {
    if (b->capacity - b->size < size) {
        b->capacity = 2 * (b->size + size) + 64;
        b->data = xrealloc(b->data, b->capacity);
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

void bytes_u32(struct bytes *b, uint32_t value) {
    bytes_put(b, &value, sizeof value);
}

void bytes_u64(struct bytes *b, uint64_t value) {
    bytes_put(b, &value, sizeof value);
}

void bytes_string(struct bytes *b, const char *text) {
    bytes_u64(b, strlen(text));
    bytes_put(b, text, strlen(text));
}

void bytes_pad(struct bytes *b, size_t alignment) {
    while (b->size % alignment) bytes_put(b, "", 1);
}

void gguf_writer_pair(struct gguf_writer *w, const char *key, enum gguf_type type, const void *value, size_t size) {
    bytes_string(&w->pairs, key);
    bytes_u32(&w->pairs, type);
    bytes_put(&w->pairs, value, size);
    w->n_pairs++;
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value) {
    gguf_writer_pair(w, key, GGUF_U32, &value, sizeof value);
}

void gguf_writer_float(struct gguf_writer *w, const char *key, float value) {
    gguf_writer_pair(w, key, GGUF_F32, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value) {
    gguf_writer_pair(w, key, GGUF_BOOL, &(uint8_t){value}, 1);
}

void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value) {
    gguf_writer_pair(w, key, GGUF_STRING, NULL, 0);
    bytes_string(&w->pairs, value);
}

void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_type element, uint64_t count,
                       const void *elements, size_t size) {
    gguf_writer_pair(w, key, GGUF_ARRAY, NULL, 0);
    bytes_u32(&w->pairs, element);
    bytes_u64(&w->pairs, count);
    bytes_put(&w->pairs, elements, size);
}

static size_t writer_alignment(const struct gguf_writer *w) {
    return w->alignment ? w->alignment : 32;
}

void gguf_writer_entry(struct gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *dims,
                       uint64_t offset) {
    bytes_string(&w->directory, name);
    bytes_u32(&w->directory, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) bytes_u64(&w->directory, dims[i]);
    bytes_u32(&w->directory, type);
    bytes_u64(&w->directory, offset);
    w->n_tensors++;
}

void gguf_writer_tensor(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *dims,
                        const void *data, size_t size) {
    bytes_pad(&w->data, writer_alignment(w));
    gguf_writer_entry(w, name, type, (uint32_t)n_dims, dims, w->data.size);
    bytes_put(&w->data, data, size);
}

uint8_t *gguf_writer_finish(struct gguf_writer *w, size_t *size) {
    struct bytes file = {0};
    bytes_put(&file, "GGUF", 4);
    bytes_u32(&file, w->version ? w->version : 3);
    bytes_u64(&file, w->n_tensors);
    bytes_u64(&file, w->n_pairs);
    bytes_put(&file, w->pairs.data, w->pairs.size);
    bytes_put(&file, w->directory.data, w->directory.size);
    if (w->n_tensors) bytes_pad(&file, writer_alignment(w));
    bytes_put(&file, w->data.data, w->data.size);
    free(w->pairs.data);
    free(w->directory.data);
    free(w->data.data);
    *w = (struct gguf_writer){0};
    *size = file.size;
    return file.data;
}
