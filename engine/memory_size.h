// How large the KV arena is and how long a conversation may be.
#ifndef CONFAB_ENGINE_MEMORY_SIZE_H
#define CONFAB_ENGINE_MEMORY_SIZE_H

#include "engine/model_file.h"

struct memory_size {
    int n_pages, context;
    uint64_t page_bytes;
};

// Unless p says otherwise: as many pages as a quarter of the memory holds that is left beside the weights, but no more
// than 16 conversations need; the context is the model's own, at most the arena.
// False when the machine has no memory for weights and arena.
bool memory_size_choose(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                        const struct backend_ops *ops, struct status *st);

#endif
