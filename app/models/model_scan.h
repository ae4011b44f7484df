// The inside of looking for models, shared by model_sources.c (the table, folders) and model_caches.c (the caches of other
// programs). Nobody else includes this.
#ifndef CONFAB_APP_MODEL_SCAN_H
#define CONFAB_APP_MODEL_SCAN_H

#include <sys/stat.h>

#include "app/models/models.h"

#define MODEL_NAME_BYTES 120

struct model_scan {
    struct model_list *list;
    const char *source;
    uint64_t deadline; // clock_ns
    int files;         // looked at so far
    struct {
        uint64_t device, inode;
    } *folders; // walked through: none is entered twice
    int n_folders;
};

// Adds a model unless this very file is known. name and path are copied, sizes->problem is taken over when it was added.
void scan_add(struct model_scan *s, const char *name, const char *path, const struct stat *file,
              const struct model_entry *sizes);
// Walks a folder; a model that is the folder itself gets this name.
void scan_named_folder(struct model_scan *s, const char *folder, const char *name);
// Visits what lies in a folder, hidden things excepted.
void scan_each(struct model_scan *s, const char *folder,
               void (*visit)(struct model_scan *s, const char *path, const char *name, void *context), void *context);

// ---- walks of the table ----
void scan_folder(struct model_scan *s, const char *place);
void scan_lm_studio(struct model_scan *s, const char *place); // the file that points to its home
void scan_hub(struct model_scan *s, const char *place);
void scan_ollama(struct model_scan *s, const char *place);

#endif
