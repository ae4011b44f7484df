// Model weights: a file's tensors bound to a model by name and checked for shape. For model.c.
#ifndef CONFAB_MODEL_MODEL_WEIGHTS_H
#define CONFAB_MODEL_MODEL_WEIGHTS_H

#include "engine/model/model_family.h"

// Over a spec that is whole. Every tensor of the file finds its place or is refused by name.
bool model_weights_bind(struct model *m, const struct model_family *family, const struct gguf *g, struct status *st);

#endif
