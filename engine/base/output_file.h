// Output file: appears under its name whole, or not at all.
//
// What is written goes to a temporary file in the same folder; keeping it renames it. Messages name the path.
#ifndef CONFAB_BASE_OUTPUT_FILE_H
#define CONFAB_BASE_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/status.h"

struct output_file {
    char *path, *temporary;
    int fd;
    bool replace;
};

// Fails when something is at `path` already, unless it is an empty file, or a file and `replace` says that it may go.
bool output_file_open(struct output_file *f, const char *path, bool replace, struct status *st);
// Asks the file system for room, so that a full disk is known before the work and not after it.
bool output_file_reserve(struct output_file *f, uint64_t size, struct status *st);
bool output_file_write(struct output_file *f, const void *data, size_t size, struct status *st);
// Either of these ends it. Keeping fails, and discards, when what was written did not reach the disk, or when something
// has come to `path` meanwhile that may not go.
bool output_file_keep(struct output_file *f, struct status *st);
void output_file_discard(struct output_file *f);
// All of it at once: `path` holds these bytes afterwards and has these permissions, or it is as before.
bool output_file_replace(const char *path, const void *data, size_t size, mode_t permissions, struct status *st);

#endif
