// Ids: reads token ids from a text file, numbers separated by white space, as `confab tokenize` writes them.
#ifndef CONFAB_APP_IDS_H
#define CONFAB_APP_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

// path: "-" for standard input. The caller frees the ids. NULL on failure, with a message that names the file and the
// word.
int32_t *ids_read(const char *path, size_t *count, struct status *st);

#endif
