#include "app/models/model_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "app/base/file_fault.h"
#include "app/base/units.h"
#include "app/models/model_loader.h"
#include "app/models/model_name.h"
#include "app/models/models_lookup.h"
#include "app/models/models_used.h"
#include "engine/base/log.h"
#include "engine/base/machine_memory.h"
#include "engine/base/panic.h"
#include "engine/base/system.h"
#include "engine/base/worker.h"

#define CLOSE_PATIENCE 3000 // ms to wait for the worker to stop

struct target { // a model to load
    char *path; // NULL: the built-in one
    char *title;
    uint64_t bytes;
    struct model_memory memory;
};

struct model_host {
    const struct settings *settings;
    const struct model_opener *opener;
    int fd;      // eventfd of loader and search
    int wait_fd; // epoll: that, or the worker has something
    void (*release)(void *context);
    void *context;
    struct model_host_others others;

    struct loaded_model now;  // its engine is NULL while it is being loaded, or if it had to make room
    char *path;               // of `now`
    struct model_memory held; // by its engine

    struct model_loader *loader; // NULL: nothing is being loaded
    struct target coming;        // what it loads
    bool replaces;               // `coming` replaces `now`; otherwise it is `now`'s engine
    bool stopped;                // the result is discarded
    struct target next;          // to load once the stopped loader is done
    bool has_next;
    struct model_loading shown; // what model_host_loading returns

    struct worker *worker; // what reads files: of models that were chosen, and of those that were used
    unsigned choice;       // number of the latest; the others are not wanted any more
    int choosing;          // so many are being looked for
    bool chosen;           // one has begun to load
    char *refused;         // the word of the latest that could not
    struct status refusal; // why; ok: it was told

    struct models_lookup *lookup; // NULL: not searching
    struct model_list list;
};

static void target_free(struct target *t) {
    free(t->path), free(t->title);
    *t = (struct target){0};
}

static bool same_path(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

// ---- starting to load ----

static bool start(struct model_host *h, struct model_file *file, const struct engine_params *engine,
                  struct status *st) {
    const struct model_loader_params params = {
        .opener = h->opener, .file = file, .path = h->coming.path, .engine = *engine, .notify_fd = h->fd};
    h->replaces = !file;
    h->stopped = false;
    log_info("model", "loading %s (%s)", h->coming.title, h->coming.path ? h->coming.path : "built in");
    h->loader = model_loader_start(&params, st);
    return h->loader;
}

// Loads an engine for the open file.
static bool start_own(struct model_host *h, struct status *st) {
    struct engine_params engine = model_engine_params(h->settings);
    target_free(&h->coming);
    h->coming.path = h->path ? xstrdup(h->path) : NULL;
    h->coming.title = model_title(h->now.info);
    h->coming.bytes = h->now.info->file_bytes;
    return start(h, h->now.file, &engine, st);
}

static void close_engine(struct model_host *h) {
    if (!h->now.engine) return;
    if (h->release) h->release(h->context);
    model_close_engine(&h->now);
    h->held = (struct model_memory){0};
}

static uint64_t held_by_others(const struct model_host *h) {
    return h->others.hold ? h->others.hold(h->others.context) : 0;
}

// Bytes that are free for `bytes` more, after others have given back what they hold if it takes that.
static uint64_t memory_for(const struct model_host *h, uint64_t bytes) {
    const uint64_t unused = machine_memory_free();
    if (!unused || bytes <= unused || !held_by_others(h)) return unused;
    h->others.give_back(h->others.context);
    return machine_memory_free();
}

// If there is not enough memory for both, closes the old engine first; on devices there never is, as KV caches take all
// that is left of theirs. Otherwise, in the machine's memory, the new one gets the KV cache that it would get without
// the old one. On failure the old one stays, or is loaded again.
static bool start_next(struct model_host *h, struct status *st) {
    struct engine_params engine = model_engine_params(h->settings);
    target_free(&h->coming);
    h->coming = h->next;
    h->next = (struct target){0};
    h->has_next = false;
    const uint64_t unused = memory_for(h, h->coming.memory.total);
    if (h->held.on_devices || (unused && h->coming.memory.total > unused)) close_engine(h);
    else if (!h->coming.memory.on_devices) engine.kv_tokens = h->coming.memory.kv_tokens;
    if (start(h, NULL, &engine, st)) return true;
    if (!h->now.engine) start_own(h, NULL);
    return false;
}

static bool open_descriptors(struct model_host *h, struct status *st) {
    h->fd = system_open_eventfd(st);
    h->worker = h->fd < 0 ? NULL : worker_open(st);
    if (!h->worker) return false;
    h->wait_fd = epoll_create1(EPOLL_CLOEXEC);
    bool open = h->wait_fd >= 0;
    const int fds[] = {h->fd, worker_fd(h->worker)};
    for (int i = 0; open && i < 2; i++)
        open = !epoll_ctl(h->wait_fd, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){.events = EPOLLIN});
    return open || status_fail(st, STATUS_IO, "epoll: %s", strerror(errno));
}

struct model_host *model_host_open(const struct settings *s, const struct model_opener *opener, struct status *st) {
    char *path = NULL;
    struct model_file *file = NULL;
    if (!s->model || models_resolve(s->model, &path, st)) file = opener->open(path, st);
    if (!file) {
        free(path);
        return NULL;
    }
    struct model_host *h = xcalloc(1, sizeof *h);
    *h = (struct model_host){.settings = s, .opener = opener, .path = path, .fd = -1, .wait_fd = -1};
    h->now = (struct loaded_model){.file = file, .info = model_file_info(file)};
    if (open_descriptors(h, st) && start_own(h, st)) return h;
    model_host_close(h);
    return NULL;
}

void model_host_watch(struct model_host *h, void (*release)(void *context), void *context) {
    h->release = release;
    h->context = context;
}

void model_host_share(struct model_host *h, const struct model_host_others *others) { h->others = *others; }

// ---- choosing ----

// A job of the worker's, which looks at files that may lie on slow disks.
struct choice {
    struct model_host *host;
    unsigned number;
    char *word;
    bool known;        // the path of the target is; otherwise it is what the word means
    bool in_use;       // there is an engine,
    char *path_in_use; // of this path
    const struct model_opener *opener;
    struct engine_params engine;
    struct status draft_refused; // which is no reason not to load the target
    uint64_t room;               // bytes of memory, 0: unknown
    struct target target;
    struct status status;
};

// Fills in what the model's header says. False: it cannot be loaded, or does not fit into memory.
static bool target_measure(struct target *t, const struct choice *c, struct status *st) {
    struct model_file *m = t->path ? c->opener->open_header(t->path, false, st) : c->opener->open(NULL, st);
    if (!m) return false;
    bool fits = c->opener->memory(m, &c->engine, c->room, &t->memory, st);
    if (fits && c->room && t->memory.total > c->room) {
        char need[24], free_bytes[24];
        fits = status_fail(st, STATUS_MEMORY, "not enough memory: needs %s, %s free",
                           units_bytes((double)t->memory.total, need), units_bytes((double)c->room, free_bytes));
    }
    t->title = model_title(model_file_info(m));
    t->bytes = model_file_info(m)->file_bytes;
    model_file_close(m);
    return fits;
}

static void choice_work(void *job) {
    struct choice *c = job;
    bool found = c->known || models_resolve(c->word, &c->target.path, &c->status);
    if (found && c->in_use && same_path(c->target.path, c->path_in_use))
        found = status_fail(&c->status, STATUS_USAGE, "already in use");
    if (found) target_measure(&c->target, c, &c->status);
}

static void choice_take(struct model_host *h, struct choice *c) {
    if (!c->status.code) {
        target_free(&h->next);
        h->next = c->target;
        c->target = (struct target){0};
        h->has_next = h->chosen = true;
        if (h->loader) {
            h->stopped = true;
            model_loader_cancel(h->loader);
        } else {
            h->chosen = start_next(h, &c->status);
        }
    }
    if (!c->status.code) return;
    h->refusal = c->status;
    free(h->refused);
    h->refused = xstrdup(c->word);
}

static void choice_done(void *job) {
    struct choice *c = job;
    c->host->choosing--;
    if (c->number == c->host->choice) choice_take(c->host, c);
    target_free(&c->target);
    free(c->word), free(c->path_in_use);
    free(c);
}

static struct choice *choice_new(struct model_host *h, const char *word) {
    struct choice *c = xcalloc(1, sizeof *c);
    *c = (struct choice){.host = h,
                         .number = ++h->choice,
                         .word = xstrdup(word),
                         .in_use = h->now.engine,
                         .path_in_use = h->path ? xstrdup(h->path) : NULL,
                         .opener = h->opener,
                         .engine = model_engine_params(h->settings),
                         .room = model_host_room(h)};
    c->engine.draft_refused = &c->draft_refused;
    return c;
}

static void choice_begin(struct choice *c) {
    c->host->choosing++;
    worker_do(c->host->worker, choice_work, choice_done, c);
}

void model_host_reload(struct model_host *h) {
    struct choice *c = choice_new(h, h->path ? h->path : "");
    c->target.path = h->path ? xstrdup(h->path) : NULL;
    c->known = true;
    c->in_use = false; // that it is in use is no obstacle
    choice_begin(c);
}

void model_host_choose(struct model_host *h, const char *word) {
    struct choice *c = choice_new(h, word);
    for (int i = 0; i < h->list.count && !c->known; i++) {
        const struct model_entry *e = &h->list.entries[i];
        c->known = !strcasecmp(e->name, word);
        if (c->known) c->target.path = e->path ? xstrdup(e->path) : NULL;
    }
    choice_begin(c);
}

bool model_host_choosing(const struct model_host *h) { return h->choosing; }
void model_host_wait(struct model_host *h) { worker_wait(h->worker, -1); }
const char *model_host_refused(const struct model_host *h) { return h->refused; }

void model_host_stop(struct model_host *h) {
    h->choice++;
    target_free(&h->next);
    h->has_next = false;
    if (!h->loader) return;
    h->stopped = true;
    model_loader_cancel(h->loader);
}

const struct model_loading *model_host_loading(struct model_host *h) {
    bool leaving = h->stopped && !h->has_next && h->now.engine; // the old model is in use again
    if (!h->loader || leaving) return NULL;
    const struct target *t = h->has_next ? &h->next : &h->coming;
    h->shown = (struct model_loading){.title = t->title,
                                      .bytes = t->bytes,
                                      .done = h->stopped ? -1 : model_loader_progress(h->loader),
                                      .stoppable = h->has_next || (h->replaces && !h->stopped)};
    return &h->shown;
}

// ---- events ----

static void used_work(void *path) { models_used_add(path); }

static enum model_host_event take_over(struct model_host *h, const struct loaded_model *m) {
    if (h->replaces) {
        close_engine(h);
        model_unload(&h->now);
        h->now = *m;
        free(h->path);
        h->path = h->coming.path ? xstrdup(h->coming.path) : NULL;
    } else {
        h->now.engine = m->engine;
        h->now.client = m->client;
        h->now.draft_refused = m->draft_refused;
    }
    h->held = m->memory;
    if (h->path) worker_do(h->worker, used_work, free, xstrdup(h->path));
    return HOST_LOADED;
}

static enum model_host_event loader_ended(struct model_host *h, struct status *st) {
    struct loaded_model m;
    bool loaded = model_loader_take(h->loader, &m, st), stopped = h->stopped;
    h->loader = NULL;
    if (loaded && !stopped) return take_over(h, &m);
    if (loaded || stopped) log_info("model", "loading %s was stopped", h->coming.title);
    else log_error("model", "loading %s failed: %s", h->coming.title, st->text);
    if (loaded && !h->replaces) model_close_engine(&m);
    else if (loaded) model_unload(&m);
    if (loaded) status_fail(st, STATUS_CANCELLED, "loading was stopped");
    if (h->path) file_fault_watch(h->path); // the old file is in use again
    if (h->has_next) return start_next(h, st) ? HOST_PROGRESS : HOST_FAILED;
    if (!h->now.engine && (h->replaces || stopped)) start_own(h, st);
    else if (stopped && h->now.engine) return HOST_NOTHING; // the caller stopped it
    return HOST_FAILED;
}

int model_host_fd(const struct model_host *h) { return h->wait_fd; }

enum model_host_event model_host_poll(struct model_host *h, struct status *st) {
    uint64_t times;
    bool notified = read(h->fd, &times, sizeof times) == sizeof times;
    struct model_list list;
    worker_collect(h->worker);
    if (h->refusal.code) {
        if (st) *st = h->refusal;
        h->refusal = (struct status){0};
        return HOST_REFUSED;
    }
    if (h->chosen) {
        h->chosen = false;
        return HOST_PROGRESS;
    }
    if (h->loader && model_loader_done(h->loader)) return loader_ended(h, st);
    if (h->lookup && models_lookup_take(h->lookup, &list)) {
        models_free(&h->list);
        h->list = list;
        if (models_lookup_done(h->lookup)) models_lookup_close(h->lookup), h->lookup = NULL;
        return HOST_LISTED;
    }
    return notified && h->loader ? HOST_PROGRESS : HOST_NOTHING;
}

struct engine *model_host_engine(const struct model_host *h) {
    return h->now.engine;
}
struct engine_client *model_host_client(const struct model_host *h) {
    return h->now.client;
}
const struct model_info *model_host_info(const struct model_host *h) { return h->now.info; }
const struct model_file *model_host_file(const struct model_host *h) { return h->now.file; }
const struct model_memory *model_host_memory(const struct model_host *h) { return h->now.engine ? &h->held : NULL; }

const char *model_host_draft_refused(const struct model_host *h) {
    return h->now.engine && h->now.draft_refused.code ? h->now.draft_refused.text : NULL;
}

const char *model_host_path(const struct model_host *h) { return h->path; }

// ---- the list ----

void model_host_look(struct model_host *h) {
    if (!h->lookup) h->lookup = models_lookup_start(h->opener, h->fd);
}

bool model_host_looking(const struct model_host *h) { return h->lookup; }
const struct model_list *model_host_list(const struct model_host *h) { return &h->list; }

const struct model_entry *model_host_entry(const struct model_host *h) {
    for (int i = 0; i < h->list.count; i++)
        if (same_path(h->list.entries[i].path, h->path)) return &h->list.entries[i];
    return NULL;
}

uint64_t model_host_room(const struct model_host *h) {
    uint64_t unused = machine_memory_free();
    return unused ? unused + h->held.total + h->held.on_devices + held_by_others(h) : 0;
}

// ---- closing ----

void model_host_close(struct model_host *h) {
    struct loaded_model m;
    if (!h) return;
    models_lookup_close(h->lookup);
    h->choice++;                                                      // nothing more starts to load
    if (h->worker && !worker_wait(h->worker, CLOSE_PATIENCE)) return; // leaked: the process is about to exit
    worker_close(h->worker);
    if (h->loader && !model_loader_end(h->loader)) return; // likewise
    if (h->loader && model_loader_take(h->loader, &m, NULL)) {
        model_close_engine(&m);
        if (h->replaces) model_file_close(m.file);
    }
    target_free(&h->coming), target_free(&h->next);
    model_unload(&h->now);
    models_free(&h->list);
    if (h->fd >= 0) close(h->fd);
    if (h->wait_fd >= 0) close(h->wait_fd);
    free(h->path), free(h->refused);
    free(h);
}
