// Models used: remembers the models that confab ran and when, in $XDG_DATA_HOME/confab/models-used. Each use is a line
// "SECONDS PATH". Several processes may append at once; a file that has grown too long is rewritten.
#ifndef CONFAB_APP_MODELS_USED_H
#define CONFAB_APP_MODELS_USED_H

#include <stdint.h>

struct model_use {
    int64_t at; // seconds since 1970
    char *path; // absolute
};

// Returns the last use of every path, newest first, at most 64. Free with models_used_free.
struct model_use *models_used(int *count);
void models_used_free(struct model_use *uses, int count);

// Failure to write the file is ignored.
void models_used_add(const char *path);

#endif
