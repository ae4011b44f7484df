// Model spec: reads the hyperparameters of a model from the keys of a file. Used by model.c.
#ifndef CONFAB_MODEL_MODEL_SPEC_H
#define CONFAB_MODEL_MODEL_SPEC_H

#include "engine/model/model_family.h"

// Fills everything except n_vocab and what depends on tensors (parallel, rope.scaling for long context). All values are
// in range and the numbers of heads are consistent. Layers are allocated in the arena.
bool model_spec_read(struct model_spec *spec, const struct model_family *family, const struct gguf *g,
                     struct arena *arena, struct status *st);

#endif
