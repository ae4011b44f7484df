#include "engine/serve/hibernate_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "engine/base/panic.h"

#define FREE_BYTES ((uint64_t)512 << 20) // of the disk that are left to others

static bool ends_with(const char *name, const char *ending) {
    const size_t size = strlen(name), n = strlen(ending);
    return size > n && !strcmp(name + size - n, ending);
}

char *hibernate_folder_name(uint64_t owner, uint32_t depth, uint64_t key) {
    return xasprintf("%016llx-%05x-%016llx.kv", (unsigned long long)owner, depth, (unsigned long long)key);
}

static uint32_t depth_of(const char *name) {
    unsigned depth;
    return sscanf(name, "%*16x-%5x-", &depth) == 1 ? depth : 0;
}

struct hibernate_files hibernate_folder_list(const char *folder) {
    struct hibernate_files list = {0};
    int capacity = 0;
    DIR *dir = opendir(folder);
    if (!dir) return list;
    for (const struct dirent *d; (d = readdir(dir));) {
        struct stat info;
        const bool temporary = ends_with(d->d_name, ".part");
        if (!temporary && !ends_with(d->d_name, ".kv")) continue;
        if (fstatat(dirfd(dir), d->d_name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode)) continue;
        if (list.count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            list.files = xrealloc(list.files, (size_t)capacity * sizeof *list.files);
        }
        list.files[list.count++] = (struct hibernate_listed){.name = xstrdup(d->d_name),
                                                             .bytes = (uint64_t)info.st_size,
                                                             .used = info.st_mtim,
                                                             .depth = depth_of(d->d_name),
                                                             .temporary = temporary};
    }
    closedir(dir);
    return list;
}

void hibernate_folder_free(struct hibernate_files *list) {
    for (int i = 0; i < list->count; i++) free(list->files[i].name);
    free(list->files);
    *list = (struct hibernate_files){0};
}

bool hibernate_folder_owned(const char *name, uint64_t owner) {
    char prefix[32];
    const int n = snprintf(prefix, sizeof prefix, "%016llx-", (unsigned long long)owner);
    return !strncmp(name, prefix, (size_t)n);
}

// ---- eviction ----

// Temporary files last: they are being written.
static int compare_uses(const void *a, const void *b) {
    const struct hibernate_listed *x = a, *y = b;
    if (x->temporary != y->temporary) return x->temporary ? 1 : -1;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return (x->depth < y->depth) - (x->depth > y->depth);
}

static uint64_t allowance(const char *folder, uint64_t budget, uint64_t used) {
    struct statvfs disk;
    if (statvfs(folder, &disk)) return budget;
    const uint64_t room = used + (uint64_t)disk.f_bavail * disk.f_frsize;
    const uint64_t most = room > FREE_BYTES ? room - FREE_BYTES : 0;
    return most < budget ? most : budget;
}

int hibernate_folder_evict(struct hibernate_files *list, const char *folder, uint64_t budget, uint64_t bytes,
                           struct status *st) {
    uint64_t used = 0;
    int n = 0;
    for (int i = 0; i < list->count; i++) used += list->files[i].bytes;
    const uint64_t most = allowance(folder, budget, used);
    if (list->count) qsort(list->files, (size_t)list->count, sizeof *list->files, compare_uses);
    while (bytes <= most && used > most - bytes && n < list->count && !list->files[n].temporary)
        used -= list->files[n++].bytes;
    if (bytes <= most && used <= most - bytes) return n;
    status_fail(st, STATUS_LIMIT, "%s: %llu MiB more than the %llu MiB that saved conversations may take", folder,
                (unsigned long long)(bytes >> 20) + 1, (unsigned long long)(most >> 20));
    return -1;
}
