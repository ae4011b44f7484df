// How large the KV arena is and how long a conversation may be: the one reckoning behind opening an engine and behind
// what is told of a model's needs.
//
// All parts of a placement have the same number of pages: as many as the memory of each has room for.
#ifndef CONFAB_SERVE_MEMORY_SIZE_H
#define CONFAB_SERVE_MEMORY_SIZE_H

#include "engine/local_engine.h"
#include "engine/model/opened_model.h"
#include "engine/serve/placement.h"

struct memory_size {
    int n_pages, context;
    int asked_context; // however little memory there is
    uint64_t page_bytes;
    struct backend_memory parts[PLACEMENT_MOST_PARTS]; // what each takes, with one page
    struct model_memory memory;
};

// With `available` bytes of the machine's memory, 0: not known. Unless p says otherwise: as many pages as a quarter of
// the memory holds that is left beside weights, those in the mapped file too, and buffers, and all of what is left in
// the own memory of a device, but no more than 16 conversations need; the context is the model's own, at most the
// arena. False when p asks for what is not possible.
bool memory_size_plan(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                      const struct placement_plan *plan, uint64_t available, struct status *st);
// False also, with STATUS_MEMORY, when weights, buffers and arena do not fit into the memory there is.
bool memory_size_choose(struct memory_size *out, const struct model_file *m, const struct engine_params *p,
                        const struct placement_plan *plan, uint64_t available, struct status *st);

#endif
