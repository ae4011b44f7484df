// Parses untrusted JSON with bounded memory: a byte of text may take a hundred bytes parsed.
#ifndef CONFAB_FORMAT_JSON_SOURCE_H
#define CONFAB_FORMAT_JSON_SOURCE_H

#include <jansson.h>

#include "engine/base/reader.h"

// Parses a JSON object; flags are jansson's. NULL with a message, which does not name the file, if it is anything else
// or has more values than any model file needs. The caller drops the reference.
json_t *json_source_parse(struct span text, size_t flags, struct status *st);
// The same for a regular file of at most `limit` bytes; rejects duplicate members. The message names the file.
json_t *json_source_read(const char *path, size_t limit, struct status *st);

#endif
