// Writes a GGUF file (version 3) as a stream: header and directory first, then the data of one tensor after another, so
// that only a piece of a tensor is ever in memory.
#ifndef CONFAB_FORMAT_GGUF_WRITE_H
#define CONFAB_FORMAT_GGUF_WRITE_H

#include "engine/base/output_file.h"
#include "engine/format/gguf.h"

// The contents of the file, all borrowed. Pairs need key, type, element, count, data and size; tensors need name,
// format, n_dims and dims, and their data follows through gguf_write_data in this order. The alignment is 32; there
// must be no general.alignment.
struct gguf_contents {
    const struct gguf_pair *pairs;
    const struct gguf_tensor *tensors;
    uint64_t n_pairs, n_tensors;
};

struct gguf_write {
    struct output_file *file;
    uint64_t at; // bytes written
};

uint64_t gguf_tensor_bytes(const struct gguf_tensor *t); // from format and dims, which are known to fit (see gguf.h)

// Writes the header and the directory. The caller opens the file and commits or discards it.
bool gguf_write_begin(struct gguf_write *w, struct output_file *file, const struct gguf_contents *c, struct status *st);
bool gguf_write_data(struct gguf_write *w, const void *data, size_t size, struct status *st);
// Call after the last byte of each tensor.
bool gguf_write_pad(struct gguf_write *w, struct status *st);

// A u32 pair; borrows the value.
struct gguf_pair gguf_pair_u32(const char *key, const uint32_t *value);

#endif
