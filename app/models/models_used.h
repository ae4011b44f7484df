// The models that confab ran before, with the time of the last use: $XDG_DATA_HOME/confab/models-used, a line each time,
// "SECONDS PATH". Several confabs may write it at once; when it has grown long, one writes it afresh.
#ifndef CONFAB_APP_MODELS_USED_H
#define CONFAB_APP_MODELS_USED_H

#include <stdint.h>

struct model_use {
    int64_t at; // seconds since 1970
    char *path; // absolute
};

// The latest use of every path, newest first, at most 64. The caller frees with models_used_free.
struct model_use *models_used(int *count);
void models_used_free(struct model_use *uses, int count);

// Best effort: a list that cannot be written is no failure of the work.
void models_used_add(const char *path);

#endif
