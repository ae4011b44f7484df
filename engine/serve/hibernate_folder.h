// Hibernate folder: the files of saved pages as the disk lists them, and which go first when room is short.
#ifndef CONFAB_SERVE_HIBERNATE_FOLDER_H
#define CONFAB_SERVE_HIBERNATE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "engine/base/status.h"

struct hibernate_listed {
    char *name;
    uint64_t bytes;
    struct timespec used; // last
    uint32_t depth;       // how many pages come before
    bool temporary;       // being written, or left behind by a kill
    bool known;           // the caller's
};
struct hibernate_files {
    struct hibernate_listed *files;
    int count;
};

struct hibernate_files hibernate_folder_list(const char *folder); // empty where there is none
void hibernate_folder_free(struct hibernate_files *list);

// Names begin with the owner, so that a conversation's files are found without being read; then come the depth and the
// key of the last page: the same pages have the same name. The caller frees.
char *hibernate_folder_name(uint64_t owner, uint32_t depth, uint64_t key);
bool hibernate_folder_owned(const char *name, uint64_t owner);

// Puts those that have to go, so that so many bytes more stay within the budget, first in the list, and returns how
// many they are: the least recently used, and of one use the deepest. Some of the disk is left to others, whatever the
// budget. −1: an empty folder would not be enough.
int hibernate_folder_evict(struct hibernate_files *list, const char *folder, uint64_t budget, uint64_t bytes,
                           struct status *st);

#endif
