#include "app/models/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/base/clean.h"
#include "app/models/model.h"
#include "app/models/model_scan.h"
#include "app/models/model_sources.h"
#include "engine/base/clock.h"
#include "engine/base/match.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/base/reader.h"

#define BUILT_IN_NAME "guide"
#define NEED_CONTEXT  4096
#define MAX_LISTED    5 // candidates in a message

const char *model_container_name(enum model_container container) {
    static const char *const names[] = {
        [MODEL_GGUF] = "GGUF", [MODEL_SAFETENSORS] = "safetensors", [MODEL_BUILT_IN] = "built in"};
    return names[container];
}

// ---- names ----

static int by_name(const void *a, const void *b) {
    const struct model_entry *x = a, *y = b;
    int order = strcasecmp(x->name, y->name);
    if (!order) order = strcmp(x->source, y->source);
    return order ? order : strcmp(x->path ? x->path : "", y->path ? y->path : "");
}

// Returns the end of the entries from `first` on that have its name.
static int namesakes(const struct model_list *list, int first) {
    int end = first + 1;
    while (end < list->count && !strcasecmp(list->entries[end].name, list->entries[first].name)) end++;
    return end;
}

// Appends the source to names that are not unique, and a number if they still are not.
static void make_names_unique(struct model_list *list) {
    qsort(list->entries, (size_t)list->count, sizeof *list->entries, by_name);
    for (int i = 0, end; i < list->count; i = end) {
        end = namesakes(list, i);
        if (end == i + 1) continue;
        char *name = xstrdup(list->entries[i].name);
        for (int k = i, number = 1; k < end; k++) {
            struct model_entry *e = &list->entries[k];
            number = k > i && e->source == list->entries[k - 1].source ? number + 1 : 1;
            free(e->name);
            e->name = number > 1 ? xasprintf("%s@%s-%d", name, e->source, number) : xasprintf("%s@%s", name, e->source);
            for (char *c = e->name + strlen(name); *c; c++)
                if (*c == ' ') *c = '-';
        }
        free(name);
    }
}

static void add_built_in(struct model_list *list, const struct model_opener *opener) {
    struct model_scan s = {.list = list, .source = "confab"};
    struct model_file *m = opener->open(NULL, NULL);
    if (!m) return; // built without one
    struct model_entry e = {.container = MODEL_BUILT_IN, .bytes = model_file_info(m)->file_bytes, .parts = 1};
    scan_add(&s, BUILT_IN_NAME, NULL, NULL, &e);
    model_file_close(m);
}

void models_scan(struct model_list *list, const struct model_opener *opener) {
    *list = (struct model_list){0};
    add_built_in(list, opener);
    model_sources_scan(list);
    make_names_unique(list);
}

void models_free(struct model_list *list) {
    for (int i = 0; i < list->count; i++) {
        struct model_entry *e = &list->entries[i];
        free(e->name), free(e->path), free(e->family), free(e->format), free(e->problem);
    }
    free(list->entries);
    *list = (struct model_list){0};
}

// ---- headers ----

const char *model_problem(const char *path, const char *message) {
    size_t size = path ? strlen(path) : 0;
    bool begins = size && !strncmp(message, path, size) && !strncmp(message + size, ": ", 2);
    return begins ? message + size + 2 : message;
}

static void describe(struct model_entry *e, const struct model_opener *opener) {
    struct status st = {0};
    struct model_file *m = e->path ? opener->open_header(e->path, false, &st) : opener->open(NULL, &st);
    if (!m) {
        e->problem = xstrdup(model_problem(e->path, st.text));
        return;
    }
    const struct model_info *info = model_file_info(m);
    struct engine_params one = {.context = NEED_CONTEXT};
    one.kv_tokens = info->n_context > 0 && info->n_context < NEED_CONTEXT ? info->n_context : NEED_CONTEXT;
    struct model_memory memory;
    e->family = xstrdup(info->family);
    e->format = xstrdup(info->n_formats ? info->formats[0].name : "");
    e->n_parameters = info->n_parameters;
    if (opener->memory(m, &one, 0, &memory, &st)) e->need = memory.total;
    else e->problem = xstrdup(model_problem(e->path, st.text));
    model_file_close(m);
}

void models_describe(struct model_list *list, const struct model_opener *opener, double seconds) {
    double end = clock_seconds() + seconds;
    for (int i = 0; i < list->count && clock_seconds() < end; i++) {
        if (!list->entries[i].problem) describe(&list->entries[i], opener);
    }
}

// ---- finding by name ----

struct candidates {
    char text[256]; // "a, b and 3 more"
    int listed, more;
};

static void candidate_add(struct candidates *c, const char *name) {
    size_t used = strlen(c->text), size = strlen(name);
    if (c->listed == MAX_LISTED || used + size + 24 > sizeof c->text) {
        c->more++;
        return;
    }
    snprintf(c->text + used, sizeof c->text - used, "%s%s", c->listed++ ? ", " : "", name);
}

static const char *candidates_text(struct candidates *c) {
    size_t used = strlen(c->text);
    if (c->more) snprintf(c->text + used, sizeof c->text - used, " and %d more", c->more);
    c->more = 0;
    return c->text;
}

struct near_name {
    int distance;
    const char *name;
};

static int nearest_first(const void *a, const void *b) {
    const struct near_name *x = a, *y = b;
    return x->distance != y->distance ? x->distance - y->distance : strcmp(x->name, y->name);
}

// Adds the names that the word may be a misspelling of.
static void add_similar(struct candidates *c, const char *word, const char *const *names, int count) {
    struct near_name *all = xcalloc((size_t)count + 1, sizeof *all);
    for (int i = 0; i < count; i++) all[i] = (struct near_name){match_distance(word, names[i]), names[i]};
    qsort(all, (size_t)count, sizeof *all, nearest_first);
    int limit = 2 + (int)strlen(word) / 4;
    for (int i = 0; i < count && i < 3 && all[i].distance <= limit; i++) candidate_add(c, all[i].name);
    free(all);
}

enum match { MATCH_WHOLE, MATCH_PREFIX, MATCH_PART, MATCHES };

static bool matches(const char *name, const char *word, enum match kind) {
    switch (kind) {
    case MATCH_WHOLE: return !strcasecmp(name, word);
    case MATCH_PREFIX: return !strncasecmp(name, word, strlen(word));
    default: return strcasestr(name, word);
    }
}

static bool fail_unknown(const struct model_list *list, const char *word, struct status *st) {
    struct candidates similar = {0};
    const char **names = xcalloc((size_t)list->count + 1, sizeof *names);
    for (int i = 0; i < list->count; i++) names[i] = list->entries[i].name;
    add_similar(&similar, word, names, list->count);
    free(names);
    return status_fail(st, STATUS_USAGE, "no file or model named '%.120s'%s%s (see `confab ls`)", word,
                       similar.listed ? "; did you mean " : "", candidates_text(&similar));
}

const struct model_entry *models_find(const struct model_list *list, const char *word, struct status *st) {
    for (enum match kind = MATCH_WHOLE; kind < MATCHES && *word; kind++) {
        struct candidates found = {0};
        const struct model_entry *one = NULL;
        for (int i = 0; i < list->count; i++) {
            if (!matches(list->entries[i].name, word, kind)) continue;
            one = &list->entries[i];
            candidate_add(&found, one->name);
        }
        if (found.listed + found.more == 1) return one;
        if (!one) continue;
        status_fail(st, STATUS_USAGE, "model name '%.120s' is ambiguous: %s", word, candidates_text(&found));
        return NULL;
    }
    fail_unknown(list, word, st);
    return NULL;
}

// ---- paths and names ----

// Whether a word cannot be a model's name.
static bool is_path(const char *word) {
    size_t size = strlen(word);
    return (*word && strchr("/.~", *word)) || (size > 5 && !strcasecmp(word + size - 5, ".gguf"));
}

// Fails for a path that does not exist, listing similar names in its folder.
static bool fail_path(const char *typed, const char *path, struct status *st) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
    struct candidates similar = {0};
    const char **names = NULL;
    int count = model_folder_names(folder, &names);
    if (count >= 0) add_similar(&similar, name, names, count);
    for (int i = 0; i < count; i++) free((char *)names[i]);
    free(names);
    if (count < 0) status_fail(st, STATUS_IO, "%s: no such folder: %s", typed, folder);
    else
        status_fail(st, STATUS_IO, "%s: no such file%s%s", typed, similar.listed ? "; did you mean " : "",
                    candidates_text(&similar));
    free(folder);
    return false;
}

bool models_resolve(const char *word, char **path, struct status *st) {
    struct stat file;
    *path = NULL;
    char *expanded = path_expand(word);
    if (!stat(expanded, &file)) return *path = expanded, true;
    const bool named = !is_path(word) || fail_path(word, expanded, st);
    free(expanded);
    if (!named) return false;
    struct model_list list;
    models_scan(&list, &local_models);
    const struct model_entry *e = models_find(&list, word, st);
    if (e && e->path) *path = xstrdup(e->path);
    models_free(&list);
    return e;
}

// The last name of a path, without its ending.
static char *base_name(const char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') size--;
    const char *slash = memrchr(path, '/', size), *name = slash && size > 1 ? slash + 1 : path;
    size -= (size_t)(name - path);
    if (size > 5 && !strncasecmp(name + size - 5, ".gguf", 5)) size -= 5;
    char *base = xstrndup(name, size), *clean = clean_line(base, MODEL_NAME_BYTES);
    free(base);
    return clean;
}

char *models_name(const char *word) {
    struct stat file;
    if (!word) return xstrdup(BUILT_IN_NAME);
    const bool is_file = !stat(word, &file);
    struct model_list list;
    models_scan(&list, &local_models);
    const struct model_entry *e = is_file ? NULL : models_find(&list, word, NULL);
    for (int i = 0; i < list.count && is_file && !e; i++)
        if (list.entries[i].path && list.entries[i].inode == file.st_ino && list.entries[i].device == file.st_dev)
            e = &list.entries[i];
    char *name = e ? xstrdup(e->name) : base_name(word);
    models_free(&list);
    return name;
}
