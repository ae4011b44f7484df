// Paths: where confab keeps its files, after the XDG base directory specification.
#ifndef CONFAB_APP_PATHS_H
#define CONFAB_APP_PATHS_H

#include "engine/base/status.h"

// They give an absolute path that the caller frees, or NULL when neither the XDG variable nor HOME names a folder.
char *path_config(const char *name); // $XDG_CONFIG_HOME/confab/NAME, otherwise ~/.config/confab/NAME
char *path_data(const char *name);   // $XDG_DATA_HOME/confab/NAME, otherwise ~/.local/share/confab/NAME
char *path_cache(const char *name);  // $XDG_CACHE_HOME/confab/NAME, otherwise ~/.cache/confab/NAME

// The path from the root on, which the caller frees. Links stay links: one that another program keeps for a file says
// more than what it leads to. The path as it is when the working directory is gone.
char *path_absolute(const char *path);

// Makes the folders above a file, for this user alone.
bool path_make_parents(const char *path, struct status *st);

#endif
