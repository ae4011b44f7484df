// Model loader: loads a model on a thread of its own.
#ifndef CONFAB_APP_MODEL_LOADER_H
#define CONFAB_APP_MODEL_LOADER_H

#include "app/models/model.h"

struct model_loader;

struct model_loader_params {
    const struct model_opener *opener; // borrowed
    struct model_file *file;           // already open, borrowed; NULL: open `path` on the thread
    const char *path;                  // copied; NULL: the built-in model
    struct engine_params engine;       // without the progress callback
    int notify_fd;                     // an eventfd, written to on progress and at the end
};
// NULL: could not start a thread.
struct model_loader *model_loader_start(const struct model_loader_params *p, struct status *st);

float model_loader_progress(const struct model_loader *l); // 0 to 1; −1: unknown
bool model_loader_done(const struct model_loader *l);
void model_loader_cancel(struct model_loader *l); // soon loading fails with STATUS_CANCELLED
// Cancels, and waits a few seconds at most. False: it is not done yet.
bool model_loader_end(struct model_loader *l);
// Waits and frees l. On failure the model is closed, except a file that was borrowed.
bool model_loader_take(struct model_loader *l, struct loaded_model *out, struct status *st);

#endif
