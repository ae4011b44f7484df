// Template: renders messages with a chat template for a model.
#ifndef CONFAB_ENGINE_TEMPLATE_H
#define CONFAB_ENGINE_TEMPLATE_H

#include "engine/model/opened_model.h"

// Renders the messages and the start of the answer with a template, m->template or another. If it rejects a system
// message, the text is put in front of the first user message instead. On success the caller frees *out with
// prompt_free.
bool template_prompt(const struct model_file *m, const struct jinja_template *template,
                     const struct engine_message *messages, size_t count, enum reasoning reasoning, struct prompt *out,
                     struct status *st);
// Whether m->template works, tested with a short conversation.
bool template_works(const struct model_file *m, struct status *st);

#endif
