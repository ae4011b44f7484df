// Template: a model file's own chat template, run over messages.
#ifndef CONFAB_ENGINE_TEMPLATE_H
#define CONFAB_ENGINE_TEMPLATE_H

#include "engine/model/opened_model.h"

// Renders the messages and the opening of the answer with m->template. One that refuses a system text gets it at the head
// of the first user text instead. On success prompt_free frees *out.
bool template_prompt(const struct model_file *m, const struct engine_message *messages, size_t count,
                     enum reasoning reasoning, struct prompt *out, struct status *st);
// Whether m->template can be run at all: over a short conversation.
bool template_works(const struct model_file *m, struct status *st);

#endif
