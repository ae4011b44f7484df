// Model: opens the model that -m names, or the built-in one.
#ifndef CONFAB_APP_MODEL_H
#define CONFAB_APP_MODEL_H

#include "app/base/settings.h"
#include "engine/local_engine.h"

// path: a file or folder; NULL: the built-in model. Close with model_file_close.
struct model_file *model_open_path(const char *path, struct status *st);
// word: what -m takes, a path or a name (models.h); NULL: the built-in model.
struct model_file *model_open_file(const char *word, struct status *st);

// The same without the weights: enough for tokenizing and `confab show`, not for an engine.
struct model_file *model_open_text(const char *word, struct status *st);

// The options that the settings determine; the others are zero, except quick_start of the engine.
struct backend_options model_backend_options(const struct settings *s);
struct engine_params model_engine_params(const struct settings *s);
// Where a draft model is set by name, sets its path in place of it.
bool model_resolve_draft(struct settings *s, struct status *st);

// Functions that open models and engines; tests replace them.
struct model_opener {
    struct model_file *(*open)(const char *path, struct status *st); // as model_open_path
    // Like the functions of model_file.h and local_engine.h with these names.
    struct model_file *(*open_header)(const char *path, bool text, struct status *st);
    bool (*memory)(const struct model_file *m, const struct engine_params *p, uint64_t available,
                   struct model_memory *out, struct status *st);
    struct engine *(*open_engine)(struct model_file *m, const struct engine_params *p, struct status *st);
};
extern const struct model_opener local_models;

// A model file, its engine, and a client of that. On failure all are closed.
struct loaded_model {
    struct model_file *file;
    const struct model_info *info;
    struct engine *engine;
    struct engine_client *client;
    struct model_memory memory;  // that the engine takes, if a model_loader opened it
    struct status draft_refused; // likewise, why its draft model does not draft; ok: it does, or there is none
};
bool model_load(struct loaded_model *m, const struct settings *s, struct status *st);
// The same, but returns before the weights are repacked.
bool model_start(struct loaded_model *m, const struct settings *s, struct status *st);
// Makes *s fall back to the built-in model if the one named in the configuration cannot be opened. Returns a message
// made from *st, which is reset; the caller frees. NULL: the model was named by an option, or there is no built-in one.
char *model_give_up_saved(struct settings *s, struct status *st);
// model_start, with the built-in model where the one named in the configuration cannot be opened: *lost is that message
// then, which the caller frees, otherwise NULL.
bool model_start_or_built_in(struct loaded_model *m, struct settings *s, char **lost, struct status *st);
void model_close_engine(struct loaded_model *m); // the file stays open
void model_unload(struct loaded_model *m);

#endif
