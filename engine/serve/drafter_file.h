// The file of a draft model: opened, compared with the model that answers, and placed.
#ifndef CONFAB_SERVE_DRAFTER_FILE_H
#define CONFAB_SERVE_DRAFTER_FILE_H

#include "engine/local_engine.h"
#include "engine/serve/drafter.h"

// Opens the draft model of p for the model `answers`, on the same devices as far as they have room. The file is to be
// closed after the drafter; on failure none is open.
struct drafter *drafter_file_open(const struct engine_params *p, const struct model_file *answers,
                                  struct model_file **file, struct status *st);
// What it takes, as of local_engine_memory; its vocabulary is not looked at.
bool drafter_file_memory(const struct engine_params *p, const struct model_file *answers, uint64_t available,
                         struct model_memory *out, struct status *st);

#endif
