// What the files that make a struct gguf share: gguf.c reads one file, gguf_split.c several, gguf_build.c memory.
#ifndef CONFAB_FORMAT_GGUF_PARTS_H
#define CONFAB_FORMAT_GGUF_PARTS_H

#include "engine/format/gguf.h"

enum { GGUF_NAME_LIMIT = 256 }; // bytes of a key or a tensor's name

extern const size_t gguf_value_sizes[GGUF_TYPE_COUNT]; // bytes; 0: varies

// The messages of these three name no file; g is not closed.
// Sets t->size from format and dimensions, which may be anything.
bool gguf_measure(struct gguf_tensor *t, struct status *st);
// Sort for gguf_find; no key may occur twice.
bool gguf_sort_pairs(struct gguf *g, struct status *st);
// Sort for gguf_tensor_find; no name may occur twice, no data overlap.
bool gguf_sort_tensors(struct gguf *g, struct status *st);

// gguf_open of a single file, also when it is one of several parts.
bool gguf_open_part(struct gguf *g, const char *path, struct status *st);

#endif
