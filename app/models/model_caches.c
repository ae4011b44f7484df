// Walks through the model caches of Hugging Face and Ollama.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "app/models/model_scan.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define MANIFEST_LIMIT (1u << 20)

static bool is_folder(const char *path) {
    struct stat file;
    return !stat(path, &file) && S_ISDIR(file.st_mode);
}

// ---- Hugging Face hub: models--OWNER--NAME/{refs/main, snapshots/REVISION/…} ----

struct newest {
    char *path;
    struct timespec changed;
};

static void find_newest(struct model_scan *s, const char *path, const char *name, void *context) {
    struct newest *n = context;
    struct stat file;
    (void)s, (void)name;
    if (stat(path, &file) || !S_ISDIR(file.st_mode)) return;
    bool newer = file.st_mtim.tv_sec != n->changed.tv_sec ? file.st_mtim.tv_sec > n->changed.tv_sec
                                                          : file.st_mtim.tv_nsec > n->changed.tv_nsec;
    if (n->path && !newer) return;
    free(n->path);
    *n = (struct newest){xstrdup(path), file.st_mtim};
}

// Returns the snapshot that refs/main names, or else the newest; NULL if there is none. The caller frees.
static char *snapshot_of(struct model_scan *s, const char *repository) {
    size_t size;
    char *reference = xasprintf("%s/refs/main", repository), *text = file_read_regular(reference, 256, &size, NULL);
    char *snapshots = xasprintf("%s/snapshots", repository), *path = NULL;
    if (text) text[strcspn(text, " \r\n")] = 0;
    if (text && *text && !strchr(text, '/') && *text != '.') path = xasprintf("%s/%s", snapshots, text);
    if (path && !is_folder(path)) free(path), path = NULL;
    struct newest newest = {0};
    if (!path) scan_each(s, snapshots, find_newest, &newest);
    free(snapshots), free(text), free(reference);
    return path ? path : newest.path;
}

static void visit_repository(struct model_scan *s, const char *path, const char *name, void *context) {
    static const char prefix[] = "models--";
    (void)context;
    if (strncmp(name, prefix, sizeof prefix - 1)) return;
    char *snapshot = snapshot_of(s, path), *title = xstrdup(name + sizeof prefix - 1);
    char *joint = strstr(title, "--"); // OWNER--NAME is OWNER/NAME
    if (joint) *joint = '/', memmove(joint + 1, joint + 2, strlen(joint + 2) + 1);
    if (snapshot) scan_named_folder(s, snapshot, title);
    free(title), free(snapshot);
}

void scan_hub(struct model_scan *s, const char *place) { scan_each(s, place, visit_repository, NULL); }

// ---- Ollama: manifests/REGISTRY/NAMESPACE/MODEL/TAG, a JSON file whose layers name blobs/sha256-… ----

struct manifests {
    const char *place;
    const char *words[4]; // registry, namespace, model, tag
    int depth;
};

// Returns "sha256:" and 64 hexadecimal digits as a file name, NULL for anything else. The caller frees.
static char *blob_name(const char *digest) {
    static const char prefix[] = "sha256:";
    if (!digest || strncmp(digest, prefix, sizeof prefix - 1)) return NULL;
    const char *digits = digest + sizeof prefix - 1;
    if (strlen(digits) != 64 || strspn(digits, "0123456789abcdef") != 64) return NULL;
    return xasprintf("sha256-%s", digits);
}

static void add_manifest(struct model_scan *s, const struct manifests *m, json_t *manifest) {
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(manifest, "layers"), i, layer) {
        const char *type = json_string_value(json_object_get(layer, "mediaType"));
        char *blob = type && !strcmp(type, "application/vnd.ollama.image.model")
                         ? blob_name(json_string_value(json_object_get(layer, "digest")))
                         : NULL;
        if (!blob) continue;
        char *path = xasprintf("%s/blobs/%s", m->place, blob);
        bool library = !strcmp(m->words[1], "library"), registry = !strcmp(m->words[0], "registry.ollama.ai");
        char *name =
            xasprintf("%s%s%s%s%s:%s", registry ? "" : m->words[0], registry ? "" : "/",
                      library && registry ? "" : m->words[1], library && registry ? "" : "/", m->words[2], m->words[3]);
        struct stat file;
        if (!stat(path, &file) && S_ISREG(file.st_mode))
            scan_add(s, name, path, &file,
                     &(struct model_entry){.container = MODEL_GGUF, .bytes = (uint64_t)file.st_size, .parts = 1});
        free(name), free(path), free(blob);
        return; // other layers are templates, parameters and projectors
    }
}

static void visit_manifest(struct model_scan *s, const char *path, const char *name, void *context) {
    struct manifests m = *(const struct manifests *)context;
    m.words[m.depth] = name;
    if (++m.depth < 4) {
        if (is_folder(path)) scan_each(s, path, visit_manifest, &m);
        return;
    }
    size_t size;
    char *text = file_read_regular(path, MANIFEST_LIMIT, &size, NULL);
    json_t *manifest = text ? json_loadb(text, size, 0, NULL) : NULL;
    if (manifest) add_manifest(s, &m, manifest);
    json_decref(manifest);
    free(text);
}

void scan_ollama(struct model_scan *s, const char *place) {
    struct manifests m = {.place = place};
    char *path = xasprintf("%s/manifests", place);
    scan_each(s, path, visit_manifest, &m);
    free(path);
}
