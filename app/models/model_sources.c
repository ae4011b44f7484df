// The folders of other programs are not to be trusted: links may form loops, names may contain anything, and there may
// be a million files.
#include "app/models/model_sources.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/models/model_scan.h"
#include "app/models/models_used.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/base/split_name.h"

#define MAX_DEPTH    8
#define MAX_FOLDERS  4096
#define MAX_FILES    100000
#define MAX_MODELS   1000
#define SCAN_SECONDS 3

// ---- the table ----

// A row applies if its variable holds an absolute path and none of those in `unless` does. Without a variable, `below`
// is the whole path.
static const struct model_source {
    const char *name, *variable, *below, *unless;
    void (*walk)(struct model_scan *s, const char *place);
} sources[] = {
    {MODEL_SOURCE_OWN, "XDG_DATA_HOME", "/confab/models", "", scan_folder},
    {MODEL_SOURCE_OWN, "HOME", "/.local/share/confab/models", "XDG_DATA_HOME", scan_folder},
    {"Hugging Face", "HF_HUB_CACHE", "", "", scan_hub},
    {"Hugging Face", "HF_HOME", "/hub", "HF_HUB_CACHE", scan_hub},
    {"Hugging Face", "XDG_CACHE_HOME", "/huggingface/hub", "HF_HUB_CACHE HF_HOME", scan_hub},
    {"Hugging Face", "HOME", "/.cache/huggingface/hub", "HF_HUB_CACHE HF_HOME XDG_CACHE_HOME", scan_hub},
    {"Ollama", "OLLAMA_MODELS", "", "", scan_ollama},
    {"Ollama", "HOME", "/.ollama/models", "OLLAMA_MODELS", scan_ollama},
    {"Ollama", NULL, "/usr/share/ollama/.ollama/models", "OLLAMA_MODELS", scan_ollama}, // its system service
    {"LM Studio", "HOME", "/.lmstudio-home-pointer", "", scan_lm_studio},
    {"LM Studio", "HOME", "/.lmstudio/models", "", scan_folder},
    {"LM Studio", "HOME", "/.cache/lm-studio/models", "", scan_folder},
    {"llama.cpp", "LLAMA_CACHE", "", "", scan_folder},
    {"llama.cpp", "XDG_CACHE_HOME", "/llama.cpp", "LLAMA_CACHE", scan_folder},
    {"llama.cpp", "HOME", "/.cache/llama.cpp", "LLAMA_CACHE XDG_CACHE_HOME", scan_folder},
};
enum { SOURCES = sizeof sources / sizeof *sources };

// Returns the variable's value if it is an absolute path, otherwise NULL.
static const char *variable_path(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

static bool any_holds(const char *names) {
    char copy[64], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        if (variable_path(name)) return true;
    return false;
}

// Returns the path of a row, NULL if it does not apply. The caller frees.
static char *place_of(const struct model_source *s) {
    const char *value = s->variable ? variable_path(s->variable) : "";
    return value && !any_holds(s->unless) ? xasprintf("%s%s", value, s->below) : NULL;
}

char *model_own_folder(void) {
    char *path = NULL;
    for (int i = 0; i < SOURCES && !path; i++)
        if (!strcmp(sources[i].name, MODEL_SOURCE_OWN)) path = place_of(&sources[i]);
    return path;
}

struct model_place *model_places(int *count) {
    struct model_place *places = xcalloc(SOURCES, sizeof *places);
    *count = 0;
    for (int i = 0; i < SOURCES; i++) {
        char *path = place_of(&sources[i]);
        if (path) places[(*count)++] = (struct model_place){sources[i].name, path};
    }
    return places;
}

void model_places_free(struct model_place *places, int count) {
    for (int i = 0; i < count; i++) free(places[i].path);
    free(places);
}

// ---- adding models ----

static bool scan_spent(struct model_scan *s) {
    if (s->files < MAX_FILES && s->n_folders < MAX_FOLDERS && s->list->count < MAX_MODELS &&
        clock_ns() < s->deadline)
        return false;
    return s->list->cut = true;
}

static struct model_entry *scan_known(const struct model_scan *s, const struct stat *file) {
    for (int i = 0; i < s->list->count; i++) {
        struct model_entry *e = &s->list->entries[i];
        if (e->path && e->device == file->st_dev && e->inode == file->st_ino) return e;
    }
    return NULL;
}

// Another name of a file that is known counts where either is in confab's own folder: somebody gave it that name.
static bool scan_repeats(const struct model_scan *s, const char *name, const struct stat *file) {
    const struct model_entry *known = scan_known(s, file);
    if (!known) return false;
    const bool own = !strcmp(s->source, MODEL_SOURCE_OWN) || !strcmp(known->source, MODEL_SOURCE_OWN);
    return !own || !strcmp(known->name, name);
}

void scan_add(struct model_scan *s, const char *name, const char *path, const struct stat *file,
              const struct model_entry *sizes) {
    struct model_list *list = s->list;
    if (file && scan_repeats(s, name, file)) return;
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->entries = xrealloc(list->entries, (size_t)list->capacity * sizeof *list->entries);
    }
    struct model_entry *e = &list->entries[list->count++];
    *e = *sizes;
    e->name = clean_line(name, MODEL_NAME_BYTES);
    e->path = path ? xstrdup(path) : NULL;
    e->source = s->source;
    if (file) e->device = file->st_dev, e->inode = file->st_ino;
}

// ---- GGUF files, whole or split ----

static bool ends_in(const char *name, const char *suffix) {
    size_t size = strlen(name), end = strlen(suffix);
    return size > end && !strcasecmp(name + size - end, suffix);
}

// The first part stands for all of them.
static void add_split(struct model_scan *s, const char *folder, const char *name, const char *path,
                      const struct stat *file, const struct split_name *split) {
    struct model_entry e = {.container = MODEL_GGUF, .bytes = (uint64_t)file->st_size, .parts = split->count};
    int missing = 0;
    for (int part = 2; part <= split->count && !scan_spent(s); part++, s->files++) {
        char *beside = split_name_of(name, split, part), *other = xasprintf("%s/%s", folder, beside);
        struct stat there;
        if (!stat(other, &there) && S_ISREG(there.st_mode)) e.bytes += (uint64_t)there.st_size;
        else missing++;
        free(other), free(beside);
    }
    if (missing) e.problem = xasprintf("%d of %d parts missing", missing, split->count);
    char *whole = xstrndup(name, (size_t)split->stem);
    int before = s->list->count;
    scan_add(s, whole, path, file, &e);
    if (s->list->count == before) free(e.problem);
    free(whole);
}

// Projectors turn images or sound into input for another model; they are not models themselves.
static bool is_projector(const char *name) { return strcasestr(name, "mmproj"); }

static void add_gguf(struct model_scan *s, const char *folder, const char *name, const char *path,
                     const struct stat *file) {
    struct split_name split;
    if (is_projector(name)) return;
    if (split_name_parse(name, &split) && split.stem) {
        if (split.part == 1) add_split(s, folder, name, path, file, &split);
        return;
    }
    char *title = xstrndup(name, strlen(name) - strlen(".gguf"));
    scan_add(s, title, path, file,
             &(struct model_entry){.container = MODEL_GGUF, .bytes = (uint64_t)file->st_size, .parts = 1});
    free(title);
}

// ---- folders ----

// The safetensors files of one folder.
struct tensor_files {
    uint64_t bytes;
    int count;
    bool configured; // there is a config.json
};

static bool enter_folder(struct model_scan *s, int fd) {
    struct stat here;
    if (fstat(fd, &here)) return false;
    for (int i = 0; i < s->n_folders; i++)
        if (s->folders[i].device == here.st_dev && s->folders[i].inode == here.st_ino) return false;
    if (s->n_folders % 64 == 0) s->folders = xrealloc(s->folders, (size_t)(s->n_folders + 64) * sizeof *s->folders);
    s->folders[s->n_folders].device = here.st_dev, s->folders[s->n_folders++].inode = here.st_ino;
    return true;
}

static void walk(struct model_scan *s, const char *folder, const char *name, int depth);

static void look_at(struct model_scan *s, const char *folder, const char *name, int depth, struct tensor_files *found) {
    char *path = xasprintf("%s/%s", folder, name);
    struct stat file;
    s->files++;
    if (stat(path, &file)) {
        // a dangling link, or the file was deleted meanwhile
    } else if (S_ISDIR(file.st_mode)) {
        walk(s, path, name, depth + 1);
    } else if (S_ISREG(file.st_mode) && file.st_size > 0) {
        if (ends_in(name, ".gguf")) add_gguf(s, folder, name, path, &file);
        if (ends_in(name, ".safetensors")) found->count++, found->bytes += (uint64_t)file.st_size;
        if (!strcmp(name, "config.json")) found->configured = true;
    }
    free(path);
}

// name: of the model if the folder itself is one.
static void walk(struct model_scan *s, const char *folder, const char *name, int depth) {
    struct tensor_files found = {0};
    int fd = depth > MAX_DEPTH || scan_spent(s) ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 && enter_folder(s, fd) ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return;
    }
    for (struct dirent *entry; !scan_spent(s) && (entry = readdir(d));)
        if (entry->d_name[0] != '.') look_at(s, folder, entry->d_name, depth, &found);
    struct stat here;
    if (found.count && found.configured && !fstat(fd, &here))
        scan_add(s, name, folder, &here,
                 &(struct model_entry){.container = MODEL_SAFETENSORS, .bytes = found.bytes, .parts = found.count});
    closedir(d);
}

int model_folder_names(const char *folder, const char ***names) {
    DIR *d = opendir(folder);
    int count = 0;
    if (!d) return -1;
    for (struct dirent *entry; count < MAX_MODELS && (entry = readdir(d));) {
        struct stat file;
        bool there = entry->d_name[0] != '.' && !fstatat(dirfd(d), entry->d_name, &file, 0);
        if (!there || !(S_ISDIR(file.st_mode) || ends_in(entry->d_name, ".gguf"))) continue;
        *names = xrealloc(*names, ((size_t)count + 1) * sizeof **names);
        (*names)[count++] = xstrdup(entry->d_name);
    }
    closedir(d);
    return count;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void scan_folder(struct model_scan *s, const char *place) { walk(s, place, base_name(place), 0); }

// place is a file that contains the path of LM Studio's home.
void scan_lm_studio(struct model_scan *s, const char *place) {
    size_t size;
    struct stat file;
    char *text = !stat(place, &file) && S_ISREG(file.st_mode) ? file_read(place, 4096, &size, NULL) : NULL;
    if (text) text[strcspn(text, "\r\n")] = 0;
    if (text && text[0] == '/') {
        char *models = xasprintf("%s/models", text);
        scan_folder(s, models);
        free(models);
    }
    free(text);
}

void scan_named_folder(struct model_scan *s, const char *folder, const char *name) { walk(s, folder, name, 1); }

void scan_each(struct model_scan *s, const char *folder,
               void (*visit)(struct model_scan *s, const char *path, const char *name, void *context), void *context) {
    DIR *d = scan_spent(s) ? NULL : opendir(folder);
    for (struct dirent *entry; d && !scan_spent(s) && (entry = readdir(d));) {
        if (entry->d_name[0] == '.') continue;
        char *path = xasprintf("%s/%s", folder, entry->d_name);
        s->files++;
        visit(s, path, entry->d_name, context);
        free(path);
    }
    if (d) closedir(d);
}

// ---- the whole search ----

static void scan_used(struct model_scan *s) {
    int count;
    struct model_use *uses = models_used(&count);
    s->source = "used before";
    for (int i = 0; i < count; i++) {
        struct stat file;
        if (stat(uses[i].path, &file)) continue;
        const char *slash = strrchr(uses[i].path, '/');
        char *folder = xstrndup(uses[i].path, (size_t)(slash - uses[i].path));
        if (!scan_known(s, &file)) {
            if (S_ISDIR(file.st_mode)) scan_named_folder(s, uses[i].path, slash + 1);
            else if (S_ISREG(file.st_mode) && ends_in(slash, ".gguf"))
                add_gguf(s, folder, slash + 1, uses[i].path, &file);
        }
        struct model_entry *e = scan_known(s, &file);
        if (e) e->last_used = uses[i].at;
        free(folder);
    }
    models_used_free(uses, count);
}

void model_sources_scan(struct model_list *list) {
    struct model_scan s = {.list = list, .deadline = clock_ns() + SCAN_SECONDS * NANOSECONDS};
    for (int i = 0; i < SOURCES; i++) {
        char *path = place_of(&sources[i]);
        s.source = sources[i].name;
        if (path) sources[i].walk(&s, path);
        free(path);
    }
    scan_used(&s);
    free(s.folders);
}
