// Hibernate key: what makes keys and values worth the same. Pages that were computed by a model are of use to one with
// the same key alone.
#ifndef CONFAB_SERVE_HIBERNATE_KEY_H
#define CONFAB_SERVE_HIBERNATE_KEY_H

#include "engine/backend.h"
#include "engine/model_file.h"

// Of a model file: its size and time, all its metadata, what tensors it has, and samples of them. With what RoPE's
// angles follow from beside the file: the context that was asked for, 0: the model's own.
uint64_t hibernate_model_key(const struct model_file *m, int asked_context);
// With who computes: the layout of pages, layer by layer, and whether results are the same in any batch.
uint64_t hibernate_fingerprint(uint64_t model_key, const struct backend_info *info);

#endif
