// Model spec: what a file's keys say about a model of a family. For model.c.
#ifndef CONFAB_MODEL_MODEL_SPEC_H
#define CONFAB_MODEL_MODEL_SPEC_H

#include "engine/model/model_family.h"

// Fills everything but n_vocab and what only the tensors show (parallel, rope.scaling of long context). Afterwards
// every figure is in range and the heads fit each other. Layers are allocated in the arena.
bool model_spec_read(struct model_spec *spec, const struct model_family *family, const struct gguf *g,
                     struct arena *arena, struct status *st);

#endif
