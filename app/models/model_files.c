#include "app/models/model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/models/model_sources.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/split_name.h"

enum { LONGEST_NAME = 100 };

// ---- which may be touched ----

// The folder of a path as it really is; NULL: it is not there.
static char *real_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = xstrndup(path, slash ? (size_t)(slash - path) : 0), *real = realpath(folder, NULL);
    free(folder);
    return real;
}

static bool lies_in(const char *folder, const char *other) {
    const size_t size = strlen(other);
    return !strncmp(folder, other, size) && (!folder[size] || folder[size] == '/');
}

bool model_files_own(const struct model_entry *e, struct status *st) {
    if (!e->path) return status_fail(st, STATUS_USAGE, "it is built in");
    char *own = model_own_folder(), *real = own ? realpath(own, NULL) : NULL, *folder = real_folder(e->path);
    const bool inside = real && folder && lies_in(folder, real);
    free(own), free(real), free(folder);
    if (inside) return true;
    return status_fail(st, STATUS_USAGE, "its file is not in confab's own folder of models (source: %s)", e->source);
}

static bool is_file(const struct model_entry *e, struct status *st) {
    if (e->container == MODEL_BUILT_IN) return status_fail(st, STATUS_USAGE, "it is built in");
    return e->container == MODEL_GGUF || status_fail(st, STATUS_USAGE, "it is a folder of several files");
}

// ---- each part ----

// The path of a part, from 1; the caller frees. NULL: there are no more.
static char *part_of(const char *path, int part) {
    struct split_name split;
    if (!split_name_parse(path, &split)) return part == 1 ? xstrdup(path) : NULL;
    return part <= split.count ? split_name_of(path, &split, part) : NULL;
}

bool model_files_delete(const struct model_entry *e, struct status *st) {
    if (!model_files_own(e, st) || !is_file(e, st)) return false;
    bool done = true;
    char *path;
    for (int part = 1; done && (path = part_of(e->path, part)); part++, free(path))
        if (unlink(path) && errno != ENOENT) done = status_fail(st, STATUS_IO, "%s", strerror(errno));
    return done;
}

// As a name in the list: that of a part, or of what is for pictures, would not be in it.
static bool check_name(const char *name, struct status *st) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                      others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
    const size_t size = strlen(name);
    struct split_name split;
    char *file = xasprintf("%s.gguf", name);
    const bool listed = !split_name_parse(file, &split) && !strcasestr(name, "mmproj");
    free(file);
    if (size && size <= LONGEST_NAME && strchr(first, *name) && strspn(name, others) == size && listed) return true;
    return status_fail(st, STATUS_USAGE, "expected a name of letters, digits and -_.: (at most %d)", LONGEST_NAME);
}

// Where a file cannot have another name: on another file system, or if it is another user's.
static bool link_file(const char *from, const char *to, struct status *st) {
    if (!linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW)) return true;
    char *real = errno == EEXIST ? NULL : realpath(from, NULL);
    const bool linked = real && !symlink(real, to);
    free(real);
    if (linked) return true;
    if (errno == EEXIST) return status_fail(st, STATUS_USAGE, "already exists");
    return status_fail(st, STATUS_IO, "%s", strerror(errno));
}

// The path of a part under another name; the caller frees.
static char *renamed(const char *path, int part, const char *folder, const char *name) {
    struct split_name split;
    if (!split_name_parse(path, &split)) return xasprintf("%s/%s.gguf", folder, name);
    return xasprintf("%s/%s-%05d-of-%05d.gguf", folder, name, part, split.count);
}

// Links all parts, from `part` on; none stays if one fails.
static bool link_parts(const char *path, int part, const char *folder, const char *name, struct status *st) {
    char *from = part_of(path, part), *to = from ? renamed(path, part, folder, name) : NULL;
    bool done = !from || (path_make_parents(to, st) && link_file(from, to, st));
    if (from && done && !link_parts(path, part + 1, folder, name, st)) done = false, unlink(to);
    free(from), free(to);
    return done;
}

bool model_files_copy(const struct model_entry *e, const char *name, struct status *st) {
    if (!is_file(e, st) || !check_name(name, st)) return false;
    char *folder = model_own_folder();
    const bool done =
        folder ? link_parts(e->path, 1, folder, name, st) : status_fail(st, STATUS_IO, "there is no home folder");
    free(folder);
    return done;
}

struct model_entry model_files_entry_copy(const struct model_entry *e) {
    return (struct model_entry){
        .path = e->path ? xstrdup(e->path) : NULL, .source = e->source, .container = e->container};
}
