// The choice of devices: which layers of a model run on which.
//
// The last layers, with the output matrix, go to the devices; the first ones stay on the CPU, which reads the embedding
// of a token where the file has it. Several devices share their layers by how much memory each has.
#ifndef CONFAB_SERVE_PLACEMENT_CHOOSE_H
#define CONFAB_SERVE_PLACEMENT_CHOOSE_H

#include "engine/local_engine.h"
#include "engine/model/opened_model.h"
#include "engine/serve/placement.h"

// With so many bytes of the machine's memory free, 0: not known. Device and number of layers are those of p. Where they
// are as many as fit: the most whose weights, buffers and KV cache of a conversation do; if not even one does, all stay
// on the CPU, or this fails if p names the device.
bool placement_choose(struct placement_plan *out, const struct model_file *m, const struct engine_params *p,
                      uint64_t available, struct status *st);

#endif
