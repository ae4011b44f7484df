// Model weights: binds the tensors of a file to a model by name and checks their shapes. Used by model.c.
#ifndef CONFAB_MODEL_MODEL_WEIGHTS_H
#define CONFAB_MODEL_MODEL_WEIGHTS_H

#include "engine/model/model_family.h"

// Needs a complete spec. Binds every tensor of the file; unexpected ones are errors.
bool model_weights_bind(struct model *m, const struct model_family *family, const struct gguf *g, struct status *st);

#endif
