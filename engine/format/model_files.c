#include "engine/format/model_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/panic.h"
#include "engine/format/huggingface.h"

// The Hugging Face folder that `path` names, directly or by a file in it; NULL if none. The caller frees.
static char *folder_of(const char *path) {
    struct stat info;
    if (stat(path, &info)) return NULL;
    if (S_ISDIR(info.st_mode)) return xstrdup(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strcmp(name, "config.json") && !span_ends_with(span_of(name), ".safetensors") &&
        !span_ends_with(span_of(name), ".safetensors.index.json"))
        return NULL;
    if (!slash) return xstrdup(".");
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

bool model_files_open(struct gguf *g, const char *path, enum model_files_use use, struct status *st) {
    char *folder = folder_of(path);
    if (!folder) return gguf_open(g, path, st);
    bool done = huggingface_open(g, folder, use == MODEL_FILES_RUN, st);
    free(folder);
    return done;
}
