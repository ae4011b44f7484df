// Model: opens what -m names, or the built-in one.
#ifndef CONFAB_APP_MODEL_H
#define CONFAB_APP_MODEL_H

#include "app/settings.h"

// A file or folder; NULL: the built-in model. The caller closes with model_file_close.
struct model_file *model_open_path(const char *path, struct status *st);
// What -m takes, a path or a name (models.h); NULL: the built-in model.
struct model_file *model_open_file(const char *word, struct status *st);

// A model and an engine over it, as the settings say. On failure nothing is held.
struct loaded_model {
    struct model_file *file;
    const struct model_info *info;
    struct engine *engine;
};
bool model_load(struct loaded_model *m, const struct settings *s, struct status *st);
void model_unload(struct loaded_model *m);

// An engine that is opened on a thread of its own, so that a large model does not keep its user waiting.
struct model_loader;
struct model_loader *model_loader_start(struct model_file *file, const struct settings *s); // the file outlives it
int model_loader_fd(const struct model_loader *l);  // readable when it is done
bool model_loader_done(const struct model_loader *l, int timeout_ms);
// Waits; NULL when the engine could not be opened. Frees l.
struct engine *model_loader_take(struct model_loader *l, struct status *st);

#endif
