// Writes safetensors files for tests.
#ifndef CONFAB_TESTS_SAFETENSORS_WRITER_H
#define CONFAB_TESTS_SAFETENSORS_WRITER_H

#include <jansson.h>

#include "tests/unit/gguf_writer.h"

// Zero-initialise, add tensors, finish once.
struct safetensors_writer {
    json_t *header;
    struct bytes data;
};

// dims outermost first, as in the file.
void safetensors_writer_tensor(struct safetensors_writer *w, const char *name, const char *dtype, int n_dims,
                               const uint64_t *dims, const void *data, size_t size);
// The whole file; empties w. The caller frees.
uint8_t *safetensors_writer_finish(struct safetensors_writer *w, size_t *size);
// The same to a file; panics when it cannot be written.
void safetensors_writer_save(struct safetensors_writer *w, const char *path);

// Any bytes to a file; panics when it cannot be written.
void write_whole_file(const char *path, const void *data, size_t size);

#endif
