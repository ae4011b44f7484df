// Model sources: the table of places where confab and other programs keep models, and the search through them. Private
// to models.c, model_files.c and to `confab ls`, which lists the places.
#ifndef CONFAB_APP_MODEL_SOURCES_H
#define CONFAB_APP_MODEL_SOURCES_H

#include "app/models/models.h"

struct model_place {
    const char *source; // "Ollama"
    char *path;         // may not exist
};

// The places on this machine, in search order.
struct model_place *model_places(int *count);
void model_places_free(struct model_place *places, int count);

// Lists the files and folders in a folder that may be models, up to a limit. Returns their number, −1 if the folder
// cannot be read. The caller frees each name and the array.
int model_folder_names(const char *folder, const char ***names);

// Adds the models of all places to a list, each file once, but for other names that it has in confab's own folder.
// Names need not be unique yet.
void model_sources_scan(struct model_list *list);

#endif
