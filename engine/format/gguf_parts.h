// Shared by the files that build a struct gguf: gguf.c reads a file, gguf_split.c a split model, gguf_build.c memory.
#ifndef CONFAB_FORMAT_GGUF_PARTS_H
#define CONFAB_FORMAT_GGUF_PARTS_H

#include "engine/format/gguf.h"

enum { GGUF_NAME_LIMIT = 256 }; // bytes of a key or a tensor's name

extern const size_t gguf_value_sizes[GGUF_TYPE_COUNT]; // bytes; 0: variable

// Messages of these three do not name the file; g stays open.
// Sets t->size from format and dimensions, which are not trusted.
bool gguf_measure(struct gguf_tensor *t, struct status *st);
// Sorts for gguf_find; duplicate keys are an error.
bool gguf_sort_pairs(struct gguf *g, struct status *st);
// Sorts for gguf_tensor_find; duplicate names and overlapping data are errors.
bool gguf_sort_tensors(struct gguf *g, struct status *st);

// Opens one file, which may be a part of a split model.
bool gguf_open_part(struct gguf *g, const char *path, struct status *st);

#endif
