// Paths: where confab keeps its files, following the XDG Base Directory Specification.
#ifndef CONFAB_BASE_PATHS_H
#define CONFAB_BASE_PATHS_H

#include "engine/base/status.h"

// These return an absolute path, which the caller frees, or NULL if neither the XDG variable nor HOME is an absolute
// path.
char *path_config(const char *name); // $XDG_CONFIG_HOME/confab/NAME, otherwise ~/.config/confab/NAME
char *path_data(const char *name);   // $XDG_DATA_HOME/confab/NAME, otherwise ~/.local/share/confab/NAME
char *path_cache(const char *name);  // $XDG_CACHE_HOME/confab/NAME, otherwise ~/.cache/confab/NAME
char *path_state(const char *name);  // $XDG_STATE_HOME/confab/NAME, otherwise ~/.local/state/confab/NAME

char *path_expand(const char *typed); // "~/" at its beginning is $HOME; the caller frees
// Makes a path absolute; the caller frees. Symbolic links are not resolved: a link's name says more than the blob it
// points to. Returns the path unchanged if the working directory is gone.
char *path_absolute(const char *path);

// Creates the folders above a file, accessible to this user only.
bool path_make_parents(const char *path, struct status *st);

#endif
