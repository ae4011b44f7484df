// Local engine: what its files and the tests share beyond engine.h.
#ifndef CONFAB_SERVE_LOCAL_ENGINE_H
#define CONFAB_SERVE_LOCAL_ENGINE_H

#include "engine/backend.h"
#include "engine/engine.h"

// engine_open over any backend.
struct engine *engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                              struct status *st);

#endif
