// Model loader: a model opened on a thread of its own, so that a large one does not keep its user waiting.
#ifndef CONFAB_APP_MODEL_LOADER_H
#define CONFAB_APP_MODEL_LOADER_H

#include "app/models/model.h"

struct model_loader;

struct model_loader_params {
    struct model_file *file;     // already open, borrowed; NULL: `path` is opened first, on the thread
    const char *path;            // copied; NULL: the built-in model
    struct engine_params engine; // all but the progress of its options
    int notify_fd;               // an eventfd, written to when there is something new
};
// NULL: no thread is to be had.
struct model_loader *model_loader_start(const struct model_loader_params *p, struct status *st);

float model_loader_progress(const struct model_loader *l); // 0 to 1; −1: nothing is known yet
bool model_loader_done(const struct model_loader *l);
void model_loader_cancel(struct model_loader *l);          // takes effect soon, as a failure with STATUS_CANCELLED
// Waits. On failure nothing is held, but a file that was borrowed stays open. Frees l.
bool model_loader_take(struct model_loader *l, struct loaded_model *out, struct status *st);

#endif
