// Model scan: the state and functions that model_sources.c (table and folders) and model_caches.c (caches of other
// programs) share. Private to these two and models.c.
#ifndef CONFAB_APP_MODEL_SCAN_H
#define CONFAB_APP_MODEL_SCAN_H

#include <sys/stat.h>

#include "app/models/models.h"

#define MODEL_NAME_BYTES 120

struct model_scan {
    struct model_list *list;
    const char *source;
    uint64_t deadline; // clock_ns
    int files;         // seen so far
    struct {
        uint64_t device, inode;
    } *folders; // visited, so that none is entered twice
    int n_folders;
};

// Adds a model unless this file is in the list already. Copies name and path; takes over sizes->problem if it adds.
void scan_add(struct model_scan *s, const char *name, const char *path, const struct stat *file,
              const struct model_entry *sizes);
// Walks a folder. name: of the model if the folder itself is one.
void scan_named_folder(struct model_scan *s, const char *folder, const char *name);
// Visits the entries of a folder, except hidden ones.
void scan_each(struct model_scan *s, const char *folder,
               void (*visit)(struct model_scan *s, const char *path, const char *name, void *context), void *context);

// ---- walks, one for each kind of place ----
void scan_folder(struct model_scan *s, const char *place);
void scan_lm_studio(struct model_scan *s, const char *place); // place: the file that names its home
void scan_hub(struct model_scan *s, const char *place);
void scan_ollama(struct model_scan *s, const char *place);

#endif
