// Token ids as text: numbers between white space, as `confab tokenize` writes them.
#ifndef CONFAB_APP_IDS_H
#define CONFAB_APP_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

// Reads a file ("-": standard input) of ids. The caller frees; NULL on failure, with a message naming the file and the word.
int32_t *ids_read(const char *path, size_t *count, struct status *st);

#endif
