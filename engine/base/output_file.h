// Output file: written completely or not at all.
//
// Data goes to a temporary file in the same folder, which output_file_keep renames. Messages name the path.
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

// Fails if `path` exists, unless it is an empty file, or a file and `replace` is set.
bool output_file_open(struct output_file *f, const char *path, bool replace, struct status *st);
// Reserves space, so that a full disk is noticed before the work and not after it.
bool output_file_reserve(struct output_file *f, uint64_t size, struct status *st);
bool output_file_write(struct output_file *f, const void *data, size_t size, struct status *st);
// Both close the file. output_file_keep fails, and discards, if the data did not reach the disk, or if `path` has come
// to exist and must not be replaced.
bool output_file_keep(struct output_file *f, struct status *st);
// Does not wait for the disk: after a crash of the machine the file may be damaged, which its reader has to notice.
bool output_file_keep_unsynced(struct output_file *f, struct status *st);
void output_file_discard(struct output_file *f);
// Writes a file in one call: afterwards `path` has these bytes and permissions, or is unchanged.
bool output_file_replace(const char *path, const void *data, size_t size, mode_t permissions, struct status *st);

#endif
