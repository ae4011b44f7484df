// Writes GGUF files for tests, good ones and, through the raw calls, bad ones.
#ifndef CONFAB_TESTS_GGUF_WRITER_H
#define CONFAB_TESTS_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/gguf.h"

// Growing bytes; zero-initialise, free(data) at the end.
struct bytes {
    uint8_t *data;
    size_t size, capacity;
};
void bytes_put(struct bytes *b, const void *data, size_t size);
void bytes_u32(struct bytes *b, uint32_t value);
void bytes_u64(struct bytes *b, uint64_t value);
void bytes_string(struct bytes *b, const char *text); // with its length in front
void bytes_pad(struct bytes *b, size_t alignment);

// Zero-initialise, add pairs and tensors in any order, finish once.
struct gguf_writer {
    struct bytes pairs, directory, data;
    uint64_t n_pairs, n_tensors;
    uint32_t version; // 0: 3
    size_t alignment; // of the data, 0: 32; not written as a key
};
void gguf_writer_pair(struct gguf_writer *w, const char *key, enum gguf_type type, const void *value, size_t size);
void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_float(struct gguf_writer *w, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value);
void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_type element, uint64_t count,
                       const void *elements, size_t size);
// Appends the data, aligned, and an entry for it.
void gguf_writer_tensor(struct gguf_writer *w, const char *name, uint32_t type, int n_dims, const uint64_t *dims,
                        const void *data, size_t size);
// An entry as it is said; the data are the caller's business.
void gguf_writer_entry(struct gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *dims,
                       uint64_t offset);
// The whole file; empties w. The caller frees.
uint8_t *gguf_writer_finish(struct gguf_writer *w, size_t *size);

#endif
