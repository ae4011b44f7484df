// Where models lie on this machine: the table of sources and how each is walked. Only models.c includes this, and `confab ls`
// for the places it looked at.
#ifndef CONFAB_APP_MODEL_SOURCES_H
#define CONFAB_APP_MODEL_SOURCES_H

#include "app/models/models.h"

struct model_place {
    const char *source; // name of the source
    char *path;         // may not exist
};

// The places of this machine's environment, in order: *count, the caller frees each path and the array.
struct model_place *model_places(int *count);
void model_places_free(struct model_place *places, int count);

// Names of files and folders in a folder that may be models, bounded; −1 when it cannot be read. The caller frees each and the
// array.
int model_folder_names(const char *folder, const char ***names);

// Adds what lies in all of them, each file once, to a list whose names are not unique yet.
void model_sources_scan(struct model_list *list);

#endif
