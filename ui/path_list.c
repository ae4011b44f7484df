#include "ui/path_list.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/panic.h"
#include "engine/base/paths.h"

#define MOST_NAMES 5000

struct folder {
    struct path_list *list; // that wants it; NULL: nobody any more
    char *path;             // as it was typed
    char **names;
    int count;
};

struct path_list {
    struct worker *worker;
    struct folder *folder, *coming; // NULL: none
    bool news;
};

static void folder_free(struct folder *f) {
    for (int i = 0; f && i < f->count; i++) free(f->names[i]);
    if (f) free(f->names), free(f->path);
    free(f);
}

void path_list_forget(struct path_list *l) {
    folder_free(l->folder);
    if (l->coming) l->coming->list = NULL; // freed when it comes
    l->folder = l->coming = NULL;
}

struct path_list *path_list_open(struct worker *w) {
    struct path_list *l = xcalloc(1, sizeof *l);
    l->worker = w;
    return l;
}

void path_list_close(struct path_list *l) {
    path_list_forget(l);
    free(l);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool is_folder(DIR *d, const struct dirent *e) {
    struct stat info;
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) return e->d_type == DT_DIR;
    return !fstatat(dirfd(d), e->d_name, &info, 0) && S_ISDIR(info.st_mode);
}

static void read_work(void *job) {
    struct folder *f = job;
    char *path = path_expand(*f->path ? f->path : ".");
    DIR *d = opendir(path);
    free(path);
    if (!d) return;
    f->names = xcalloc(MOST_NAMES, sizeof *f->names);
    for (struct dirent *e; f->count < MOST_NAMES && (e = readdir(d));)
        if (e->d_name[0] != '.') f->names[f->count++] = xasprintf("%s%s", e->d_name, is_folder(d, e) ? "/" : "");
    closedir(d);
    qsort(f->names, (size_t)f->count, sizeof *f->names, by_name);
}

static void read_done(void *job) {
    struct folder *f = job;
    if (!f->list) {
        folder_free(f);
        return;
    }
    f->list->folder = f;
    f->list->coming = NULL;
    f->list->news = true;
}

static bool is_of(const struct folder *f, const char *path, size_t size) {
    return f && strlen(f->path) == size && !memcmp(f->path, path, size);
}

int path_list_names(struct path_list *l, const char *folder, size_t size, char *const **names) {
    if (!is_of(l->folder, folder, size) && !is_of(l->coming, folder, size)) {
        path_list_forget(l);
        if (!l->worker) return 0;
        l->coming = xcalloc(1, sizeof *l->coming);
        *l->coming = (struct folder){.list = l, .path = xstrndup(folder, size)};
        worker_do(l->worker, read_work, read_done, l->coming);
    }
    if (!l->folder) return 0;
    *names = l->folder->names;
    return l->folder->count;
}

bool path_list_news(struct path_list *l) {
    const bool news = l->news;
    l->news = false;
    return news;
}
