// Model spec: the keys of a file that all families share. For model.c.
#ifndef CONFAB_MODEL_MODEL_SPEC_H
#define CONFAB_MODEL_MODEL_SPEC_H

#include "engine/model/model.h"

// Fills everything but n_vocab. Afterwards every figure is in range and the heads fit each other.
bool model_spec_read(struct model_spec *spec, const struct model_family *family, const struct gguf *g,
                     struct status *st);

#endif
