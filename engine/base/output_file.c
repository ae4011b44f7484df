#include "engine/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/panic.h"

static bool fail(const struct output_file *f, struct status *st) {
    return status_fail(st, STATUS_IO, "%s: cannot write: %s", f->path, strerror(errno));
}

static bool may_be_written(const char *path, bool replace, struct status *st) {
    struct stat s;
    if (stat(path, &s)) return true; // missing, or an error that opening will report
    if (!S_ISREG(s.st_mode)) return status_fail(st, STATUS_IO, "%s: exists and is not a regular file", path);
    if (s.st_size && !replace) return status_fail(st, STATUS_IO, "%s: already exists", path);
    return true;
}

bool output_file_open(struct output_file *f, const char *path, bool replace, struct status *st) {
    *f = (struct output_file){.fd = -1, .replace = replace};
    if (!may_be_written(path, replace, st)) return false;
    f->path = xstrdup(path);
    do { // a unique name
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) < 0) random = (uint32_t)getpid();
        free(f->temporary);
        f->temporary = xasprintf("%s.%08x.part", path, random);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (f->fd < 0 && errno == EEXIST);
    if (f->fd >= 0) return true;
    fail(f, st);
    output_file_discard(f);
    return false;
}

bool output_file_reserve(struct output_file *f, uint64_t size, struct status *st) {
    if (!size || !fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) || (errno != ENOSPC && errno != EFBIG))
        return true; // not supported by every file system
    return status_fail(st, STATUS_IO, "%s: cannot write %llu MiB: %s", f->path, (unsigned long long)(size >> 20) + 1,
                       strerror(errno));
}

bool output_file_write(struct output_file *f, const void *data, size_t size, struct status *st) {
    for (const char *at = data; size;) {
        ssize_t written = write(f->fd, at, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(f, st);
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static void release(struct output_file *f) {
    if (f->fd >= 0) close(f->fd);
    free(f->path);
    free(f->temporary);
    *f = (struct output_file){.fd = -1};
}

bool output_file_keep_unsynced(struct output_file *f, struct status *st) {
    bool kept = may_be_written(f->path, f->replace, st);
    if (kept && rename(f->temporary, f->path)) kept = fail(f, st);
    if (kept) release(f);
    else output_file_discard(f);
    return kept;
}

bool output_file_keep(struct output_file *f, struct status *st) {
    if (!fsync(f->fd)) return output_file_keep_unsynced(f, st);
    fail(f, st);
    output_file_discard(f);
    return false;
}

void output_file_discard(struct output_file *f) {
    if (f->fd >= 0) unlink(f->temporary);
    release(f);
}

bool output_file_replace(const char *path, const void *data, size_t size, mode_t permissions, struct status *st) {
    struct output_file f;
    if (!output_file_open(&f, path, true, st)) return false;
    bool written = fchmod(f.fd, permissions) ? fail(&f, st) : output_file_write(&f, data, size, st);
    if (written) return output_file_keep(&f, st);
    output_file_discard(&f);
    return false;
}
