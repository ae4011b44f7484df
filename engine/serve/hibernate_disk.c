// The store's worker at its work: looking at the folder, loading, saving and forgetting.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/backend.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/serve/hibernate_folder.h"
#include "engine/serve/hibernate_state.h"

enum { STALE_SECONDS = 600 }; // a temporary file older than this is nobody's

// ---- files of the folder ----

static void unlist_file(struct hibernate *h, const char *name) {
    pthread_mutex_lock(&h->lock);
    hibernate_index_remove(&h->index, name);
    pthread_mutex_unlock(&h->lock);
}

static void remove_file(struct hibernate *h, const char *name) {
    char *path = xasprintf("%s/%s", h->folder, name);
    unlink(path);
    free(path);
    unlist_file(h, name);
}

// A damaged file is of no use to anybody; one that is foreign may be.
static void ignore_file(struct hibernate *h, const char *name, const struct status *why) {
    const enum log_level level = why->code == STATUS_IO ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING; // another evicted it
    log_write(level, "kv", "%s/%s: ignored: %s", h->folder, name, why->text);
    if (why->code == STATUS_FORMAT) remove_file(h, name);
    else unlist_file(h, name);
}

static bool open_file(struct hibernate *h, const char *name, struct hibernate_file *f, struct status *st) {
    char *path = xasprintf("%s/%s", h->folder, name);
    const bool ok = hibernate_file_open(f, path, st);
    free(path);
    return ok;
}

// ---- looking ----

static bool same_time(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_ignored(const struct hibernate *h, const char *name) {
    int i = 0;
    while (i < h->n_ignored && strcmp(h->ignored[i], name)) i++;
    return i < h->n_ignored;
}

static void take_up(struct hibernate *h, const char *name) {
    struct hibernate_file f;
    struct status st;
    if (is_ignored(h, name)) return;
    if (!open_file(h, name, &f, &st)) {
        ignore_file(h, name, &st);
        if (st.code == STATUS_IO) return; // it may come again
        h->ignored = xrealloc(h->ignored, ((size_t)h->n_ignored + 1) * sizeof(char *));
        h->ignored[h->n_ignored++] = xstrdup(name);
        return;
    }
    pthread_mutex_lock(&h->lock);
    hibernate_index_add(&h->index, name, &f, false);
    pthread_mutex_unlock(&h->lock);
    hibernate_file_close(&f);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct hibernate_listed *)a)->name, ((const struct hibernate_listed *)b)->name);
}

// Takes those that are gone out of the index, and those that it has out of the list.
static void drop_known(struct hibernate *h, struct hibernate_files *list) {
    if (list->count) qsort(list->files, (size_t)list->count, sizeof *list->files, compare_names);
    pthread_mutex_lock(&h->lock);
    for (int i = h->index.count - 1; i >= 0; i--) {
        const struct hibernate_entry *e = h->index.entries[i];
        const struct hibernate_listed key = {.name = e->name};
        struct hibernate_listed *found = NULL;
        if (list->count) found = bsearch(&key, list->files, (size_t)list->count, sizeof key, compare_names);
        if (found) found->known = true;
        else if (!e->coming) hibernate_index_remove(&h->index, e->name);
    }
    pthread_mutex_unlock(&h->lock);
}

// Several programs may write to the folder.
void hibernate_refresh(struct hibernate *h) {
    struct stat info;
    const time_t now = time(NULL);
    if (stat(h->folder, &info) || same_time(&info.st_mtim, &h->seen)) return;
    h->seen = now - info.st_mtim.tv_sec > 1 ? info.st_mtim : (struct timespec){0}; // more may come within this moment
    struct hibernate_files list = hibernate_folder_list(h->folder);
    drop_known(h, &list);
    for (int i = 0; i < list.count && !atomic_load(&h->abandoned); i++) {
        const struct hibernate_listed *f = &list.files[i];
        if (!f->temporary && !f->known) take_up(h, f->name);
        if (f->temporary && now - f->used.tv_sec > STALE_SECONDS) remove_file(h, f->name);
    }
    hibernate_folder_free(&list);
}

// ---- loading ----

// The files that a text's first n pages lie in, in order, and the page after the last of them.
struct place {
    char *name; // NULL: nowhere
    uint32_t at;
};

static struct place *find_places(struct hibernate *h, const struct hibernate_job *job) {
    const int n = job->first + job->n_pages;
    struct place *places = xcalloc((size_t)n, sizeof *places);
    pthread_mutex_lock(&h->lock);
    struct hibernate_walk w = hibernate_walk_start(&h->index, job->fingerprint, job->tokens, n);
    while (hibernate_walk_next(&w))
        if (w.entry && !w.entry->coming) places[w.page - 1] = (struct place){xstrdup(w.entry->name), w.at};
    pthread_mutex_unlock(&h->lock);
    return places;
}

static void free_places(struct place *places, int n) {
    for (int i = 0; i < n; i++) free(places[i].name);
    free(places);
}

// All files of a text are used at once, so that the later ones go first.
static void touch(struct hibernate *h, const struct place *places, int n) {
    struct timespec now[2];
    clock_gettime(CLOCK_REALTIME, &now[0]);
    now[1] = now[0];
    for (int i = 0; i < n; i++) {
        if (!places[i].name || (i && places[i - 1].name && !strcmp(places[i].name, places[i - 1].name))) continue;
        char *path = xasprintf("%s/%s", h->folder, places[i].name);
        utimensat(AT_FDCWD, path, now, AT_SYMLINK_NOFOLLOW);
        free(path);
    }
}

static void load_pages(struct hibernate *h, struct hibernate_job *job, const struct place *places) {
    struct hibernate_file f = {.fd = -1};
    struct status st = {0};
    for (const char *open = NULL; job->n_done < job->n_pages; job->n_done++) {
        const struct place *p = &places[job->first + job->n_done];
        if (!p->name || atomic_load(&h->abandoned)) break;
        if (!open || strcmp(open, p->name)) {
            hibernate_file_close(&f);
            if (!open_file(h, p->name, &f, &st)) {
                ignore_file(h, p->name, &st);
                break;
            }
            open = p->name;
        }
        const int32_t *tokens = job->tokens + (size_t)(job->first + job->n_done) * KV_PAGE_TOKENS;
        const bool same = f.header.page_bytes == job->page_bytes && f.header.fingerprint == job->fingerprint &&
                          p->at < f.header.n_pages &&
                          !memcmp(f.tokens + (size_t)p->at * KV_PAGE_TOKENS, tokens, KV_PAGE_TOKENS * sizeof *tokens);
        if (!same) break; // another file has taken the name
        if (!hibernate_file_read(&f, p->at, job->data + (uint64_t)job->n_done * job->page_bytes, &st)) {
            ignore_file(h, p->name, &st);
            break;
        }
    }
    hibernate_file_close(&f);
}

void hibernate_load(struct hibernate *h, struct hibernate_job *job) {
    const double start = clock_seconds();
    const int n = job->first + job->n_pages;
    struct place *places = find_places(h, job);
    job->data = xmalloc((size_t)job->n_pages * job->page_bytes);
    load_pages(h, job, places);
    job->seconds = clock_seconds() - start;
    h->params.done(h->params.context, job);
    touch(h, places, n);
    free_places(places, n);
}

// ---- saving ----

// What is evicted is found no more.
static bool make_room(struct hibernate *h, uint64_t bytes, struct status *st) {
    struct hibernate_files list = hibernate_folder_list(h->folder);
    const int n = hibernate_folder_evict(&list, h->folder, h->params.budget, bytes, st);
    for (int i = 0; i < n; i++) remove_file(h, list.files[i].name);
    hibernate_folder_free(&list);
    if (n > 0) log_debug("kv", "%d older files removed", n);
    return n >= 0;
}

static bool write_file(struct hibernate *h, const struct hibernate_job *job, const char *path, const void *header,
                       uint64_t header_bytes, struct status *st) {
    struct output_file out;
    if (!path_make_parents(path, st) || !output_file_open(&out, path, true, st)) return false;
    bool ok = !fchmod(out.fd, 0600) || status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    ok = ok && output_file_write(&out, header, (size_t)header_bytes, st);
    for (int i = 0; ok && i < job->n_pages; i++) {
        hibernate_serve_loads(h);
        ok = atomic_load(&h->abandoned)
                 ? status_fail(st, STATUS_CANCELLED, "%s: given up", path)
                 : output_file_write(&out, job->data + (uint64_t)i * job->page_bytes, (size_t)job->page_bytes, st);
    }
    if (ok) return output_file_keep_unsynced(&out, st);
    output_file_discard(&out);
    return false;
}

struct hibernate_file hibernate_file_of(const struct hibernate_job *job, char **name) {
    const size_t n = (size_t)job->n_pages, page = KV_PAGE_TOKENS;
    struct hibernate_file f = {.fd = -1,
                               .header = {.fingerprint = job->fingerprint,
                                          .owner = job->owner,
                                          .before = job->fingerprint,
                                          .page_bytes = job->page_bytes,
                                          .first_page = (uint32_t)job->first,
                                          .n_pages = (uint32_t)n}};
    f.size = hibernate_header_size((uint32_t)n) + n * job->page_bytes;
    for (int i = 0; i < job->first; i++)
        f.header.before = hibernate_page_key(f.header.before, job->tokens + (size_t)i * page);
    f.tokens = xmalloc(n * page * sizeof *f.tokens);
    memcpy(f.tokens, job->tokens + (size_t)job->first * page, n * page * sizeof *f.tokens);
    f.keys = xmalloc(n * sizeof *f.keys);
    for (size_t i = 0; i < n; i++)
        f.keys[i] = hibernate_page_key(i ? f.keys[i - 1] : f.header.before, f.tokens + i * page);
    *name = hibernate_folder_name(f.header.owner, f.header.first_page, f.keys[n - 1]);
    return f;
}

void hibernate_save(struct hibernate *h, struct hibernate_job *job) {
    char *name;
    struct hibernate_file f = hibernate_file_of(job, &name);
    struct status st = {0};
    const double start = clock_seconds();
    char *path = xasprintf("%s/%s", h->folder, name);
    void *header = hibernate_header_bytes(&f.header, f.tokens, job->data);
    const bool ok = make_room(h, f.size, &st) && write_file(h, job, path, header, f.header.size, &st);
    job->seconds = clock_seconds() - start;
    pthread_mutex_lock(&h->lock);
    h->backlog -= (uint64_t)job->n_pages * job->page_bytes;
    struct hibernate_entry *e = hibernate_index_find(&h->index, name);
    if (ok && e) e->coming = false;
    else hibernate_index_remove(&h->index, name);
    pthread_mutex_unlock(&h->lock);
    if (ok) {
        job->n_done = job->n_pages;
        log_info("kv", "%d tokens of a conversation saved to disk (%.1f MiB, %.0f ms)", job->n_pages * KV_PAGE_TOKENS,
                 (double)f.size / (1 << 20), 1e3 * job->seconds);
        struct place *places = find_places(h, job);
        touch(h, places, job->first + job->n_pages);
        free_places(places, job->first + job->n_pages);
    } else if (st.code != STATUS_CANCELLED && !h->warned) log_warning("kv", "conversations are not saved: %s", st.text);
    h->warned = !ok;
    free(header);
    free(path);
    free(name);
    hibernate_file_close(&f);
    h->params.done(h->params.context, job);
}

// ---- forgetting ----

void hibernate_forget(struct hibernate *h, struct hibernate_job *job) {
    struct hibernate_files list = hibernate_folder_list(h->folder);
    for (int i = 0; i < list.count; i++)
        if (hibernate_folder_owned(list.files[i].name, job->owner)) remove_file(h, list.files[i].name);
    hibernate_folder_free(&list);
    h->params.done(h->params.context, job);
}

void hibernate_remove(const char *folder, uint64_t owner) {
    struct hibernate_files list = hibernate_folder_list(folder);
    for (int i = 0; i < list.count; i++) {
        char *path = xasprintf("%s/%s", folder, list.files[i].name);
        if (hibernate_folder_owned(list.files[i].name, owner)) unlink(path);
        free(path);
    }
    hibernate_folder_free(&list);
}
