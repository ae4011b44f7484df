// The local engine's insides, shared with tests.
#ifndef CONFAB_SERVE_LOCAL_ENGINE_STATE_H
#define CONFAB_SERVE_LOCAL_ENGINE_STATE_H

#include "engine/backend.h"
#include "engine/local_engine.h"

// local_engine_open over any backend; NULL: the one that has the device of p.
struct engine *local_engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                                    struct status *st);

#endif
