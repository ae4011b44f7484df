// Model: opens what -m names, or the built-in one.
#ifndef CONFAB_APP_MODEL_H
#define CONFAB_APP_MODEL_H

#include "app/base/settings.h"

// A file or folder; NULL: the built-in model. The caller closes with model_file_close.
struct model_file *model_open_path(const char *path, struct status *st);
// What -m takes, a path or a name (models.h); NULL: the built-in model.
struct model_file *model_open_file(const char *word, struct status *st);

// The same for its text, or to tell what it is: no engine can be opened over it.
struct model_file *model_open_text(const char *word, struct status *st);

// What the settings say of these; the rest is zero, but that an engine starts quickly.
struct backend_options model_backend_options(const struct settings *s);
struct engine_params model_engine_params(const struct settings *s);

// A model and an engine over it, as the settings say. On failure nothing is held.
struct loaded_model {
    struct model_file *file;
    const struct model_info *info;
    struct engine *engine;
};
bool model_load(struct loaded_model *m, const struct settings *s, struct status *st);
// The same with a quick start: answers may begin before the weights are prepared.
bool model_start(struct loaded_model *m, const struct settings *s, struct status *st);
// The model that the configuration names is gone: *s goes on with the built-in one. Returns what to tell the person, from
// *st, which is ok again; the caller frees. NULL: the person named the model, or there is no other.
char *model_give_up_saved(struct settings *s, struct status *st);
void model_unload(struct loaded_model *m);

#endif
