// JSON from outside, parsed with its cost bounded: a byte of text may become a hundred of memory.
#ifndef CONFAB_FORMAT_JSON_SOURCE_H
#define CONFAB_FORMAT_JSON_SOURCE_H

#include <jansson.h>

#include "engine/base/reader.h"

// A JSON object; flags are jansson's. NULL and a message, which names no file, where it is anything else, or has more
// values than any model's files do. The caller drops its reference.
json_t *json_source_parse(struct span text, size_t flags, struct status *st);
// The same of a regular file of at most `limit` bytes, without duplicate members; the message names it.
json_t *json_source_read(const char *path, size_t limit, struct status *st);

#endif
