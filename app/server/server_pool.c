// Which models are loaded: as many as there is memory for.
//
//   measured, on the worker ──► fits ──► loaded, on a thread of its own ──► in use ⇄ idle ──► unloaded, on the worker
//          ▲                     │ does not
//          └── again ◄── another one is unloaded: the least recently used idle one, or else a busy one, which is given
//                        nothing more to do and ends what it has
//
// Where its file is gone it is measured again when a search of the machine has found another of its name.
//
// One at a time is coming; server_model.c says which. Models that are loaded may not have touched all the memory that
// was promised to them, and the machine would call it free: so it is reckoned from what they were measured with.
#include <unistd.h>

#include "app/base/units.h"
#include "app/models/models_used.h"
#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"

#define CONVERSATION_TOKENS 4096 // that there has to be room for, if nobody says

// ---- unloading ----

struct closing { // a job of the worker's
    struct server *server;
    struct loaded_model model;
};

static void closing_work(void *job) { model_unload(&((struct closing *)job)->model); }

static void closing_done(void *job) {
    ((struct closing *)job)->server->n_closing--;
    free(job);
}

static void close_model(struct server *s, const struct loaded_model *model) {
    struct closing *job = xcalloc(1, sizeof *job);
    *job = (struct closing){.server = s, .model = *model};
    engine_client_close(job->model.client);
    job->model.client = NULL;
    s->n_closing++;
    worker_do(s->worker, closing_work, closing_done, job);
}

void server_pool_unload(struct server *s, struct server_model *m) {
    const struct loaded_model own = m->own;
    log_info("server", "%s: unloaded", m->name);
    server_model_end(s, m);
    close_model(s, &own);
}

static bool is_idle(const struct server_model *m) { return m->own.client && !m->n_uses && !m->leaving; }

uint64_t server_pool_idle_bytes(const struct server *s) {
    uint64_t bytes = 0;
    for (const struct server_model *m = s->models; m; m = m->next) bytes += is_idle(m) ? m->own.memory.total : 0;
    return bytes;
}

void server_pool_give_back(struct server *s) {
    for (struct server_model *m = s->models; m; m = m->next) {
        struct loaded_model own = m->own;
        if (!is_idle(m)) continue;
        log_info("server", "%s: unloaded for another", m->name);
        server_model_end(s, m);
        model_unload(&own);
    }
}

// When it is due to be unloaded by itself; 0: never, or not yet known.
static uint64_t expiry(const struct server_model *m) {
    return m->own.client && !m->n_uses && m->keep != KEEP_FOREVER ? m->used + m->keep : 0;
}

uint64_t server_pool_due(const struct server *s) {
    uint64_t due = 0;
    for (const struct server_model *m = s->models; m; m = m->next) {
        const uint64_t at = expiry(m);
        if (at && (!due || at < due)) due = at;
    }
    return due;
}

static void unload_expired(struct server *s) {
    const uint64_t now = clock_ns();
    for (struct server_model *m = s->models; m; m = m->next)
        if (expiry(m) && expiry(m) <= now) server_pool_unload(s, m);
}

// ---- memory ----

static uint64_t promised(const struct server *s) {
    uint64_t bytes = 0;
    for (const struct server_model *m = s->models; m; m = m->next) bytes += m->memory.total;
    return bytes;
}

// Bytes for another model; 0: unknown.
static uint64_t room(struct server *s) {
    const uint64_t now = machine_memory_free(), taken = promised(s);
    if (now > s->most_free) s->most_free = now;
    const uint64_t left = s->most_free > taken ? s->most_free - taken : 1;
    return now < left ? now : left;
}

// On devices KV caches take all that is left of their memory: no second model finds room there.
static bool leaves_before(const struct server_model *a, const struct server_model *b) {
    const bool device = a->memory.on_devices;
    if (device != !!b->memory.on_devices) return device;
    if (!a->n_uses != !b->n_uses) return !a->n_uses;
    return a->used < b->used;
}

// The first one to be unloaded for another; NULL: there is none that may be.
static struct server_model *first_to_leave(const struct server *s) {
    struct server_model *found = NULL;
    for (struct server_model *m = s->models; m; m = m->next)
        if (m->own.client && (!found || leaves_before(m, found))) found = m;
    return found;
}

// ---- loading ----

static void forget_coming(struct server *s) {
    for (struct server_model *m = s->models; m; m = m->next) m->leaving = false;
    s->coming = (struct coming){0};
}

static void fail(struct server *s, const struct status *st) {
    struct server_model *m = s->coming.model;
    log_error("server", "%s: %s", m->name, st->text);
    m->failure = *st;
    forget_coming(s);
}

static struct engine_params engine_params(const struct server *s) {
    struct engine_params params = model_engine_params(&s->settings);
    params.hibernation = (struct engine_hibernation){0}; // nothing of a request is kept
    return params;
}

struct measuring { // a job of the worker's, which looks at a file that may lie on a slow disk
    struct server *server;
    const struct model_opener *opener;
    char *path;
    struct engine_params engine;
    struct status draft_refused; // which is no reason not to load it
    uint64_t room;
    int context; // that is wanted
    bool gone;   // the file is
    struct model_memory least, memory;
    struct status status;
};

// Of KV cache: for one conversation of a length that is worth unloading others for.
static int least_tokens(const struct measuring *j, const struct model_info *info) {
    const int set = j->engine.context, most = set && set < info->n_context ? set : info->n_context;
    const int least = j->context > CONVERSATION_TOKENS ? j->context : CONVERSATION_TOKENS;
    return least < most ? least : most;
}

static void measuring_work(void *job) {
    struct measuring *j = job;
    const struct model_opener *o = j->opener;
    struct model_file *file = j->path ? o->open_header(j->path, false, &j->status) : o->open(NULL, &j->status);
    j->gone = !file && j->path && access(j->path, F_OK);
    if (!file) return;
    struct engine_params least = j->engine;
    if (!least.kv_tokens) least.kv_tokens = least_tokens(j, model_file_info(file));
    if (o->memory(file, &least, j->room, &j->least, &j->status))
        o->memory(file, &j->engine, j->room, &j->memory, &j->status);
    model_file_close(file);
}

// Its file may have another place now. As the server starts it has just been found, and nobody takes a list.
static void search(struct server *s, const struct status *st) {
    s->coming.lost = *st;
    server_model_look_again(s);
}

static void find_file(struct server *s) {
    struct server_model *m = s->coming.model;
    const struct status lost = s->coming.lost;
    const struct model_entry *e = server_model_entry(s, m->name);
    const bool moved = e && e->path && (!m->path || strcmp(e->path, m->path));
    s->coming.lost = (struct status){0};
    s->coming.measured = !moved;
    m->gone = !e && m != s->named;
    if (moved) server_model_set_path(m, e->path);
    else fail(s, &lost);
}

static void measuring_done(void *job) {
    struct measuring *j = job;
    struct coming *c = &j->server->coming;
    c->measuring = false;
    c->measured = true;
    c->least = j->least, c->memory = j->memory;
    if (j->gone && (c->model != j->server->named || c->model->loaded)) search(j->server, &j->status);
    else if (j->status.code) fail(j->server, &j->status);
    free(j->path), free(j);
}

static void measure(struct server *s) {
    struct measuring *j = xcalloc(1, sizeof *j);
    const char *path = s->coming.model->path;
    *j = (struct measuring){.server = s,
                            .opener = s->params.opener,
                            .path = path ? xstrdup(path) : NULL,
                            .engine = engine_params(s),
                            .room = room(s),
                            .context = s->coming.modest ? 0 : s->coming.context};
    j->engine.draft_refused = &j->draft_refused;
    s->coming.measuring = true;
    worker_do(s->worker, measuring_work, measuring_done, j);
}

void server_pool_load(struct server *s, const struct wanted *w) {
    const int before = w->model->context;
    s->coming = (struct coming){.model = w->model, .context = w->context > before ? w->context : before};
    measure(s);
}

// Room for one conversation; but where nothing can be unloaded for that, it has to get along with what there is.
static const struct model_memory *need(const struct server *s, uint64_t unused) {
    const struct coming *c = &s->coming;
    return first_to_leave(s) || c->least.total <= unused ? &c->least : &c->memory;
}

static bool fits(struct server *s) {
    const struct server_model *first = first_to_leave(s);
    const uint64_t unused = room(s);
    if (s->coming.model->client || (first && first->memory.on_devices)) return false;
    return !unused || need(s, unused)->total <= unused;
}

static void refuse_for_memory(struct server *s, uint64_t most) {
    struct status st;
    char needed[24], unused[24];
    status_fail(&st, STATUS_MEMORY, "not enough memory: needs %s, %s free",
                units_bytes((double)need(s, most)->total, needed), units_bytes((double)most, unused));
    fail(s, &st);
}

// Whoever wants a context that has no room, however much is unloaded, is served with what there is. False: with none.
static bool gets_along(struct server *s) {
    struct coming *c = &s->coming;
    if (c->model->client) {
        c->model->context = c->context;
        forget_coming(s);
        return true;
    }
    if (c->modest || c->context <= CONVERSATION_TOKENS) return false;
    c->modest = true, c->measured = false;
    return true;
}

static void make_room(struct server *s) {
    struct server_model *m = s->coming.model->client ? s->coming.model : first_to_leave(s);
    uint64_t most = room(s);
    for (const struct server_model *each = s->models; each; each = each->next) most += each->own.memory.total;
    if (m && s->coming.least.total <= most) m->leaving = true;
    else if (!gets_along(s)) refuse_for_memory(s, most);
}

// False: its uses have to end.
static bool let_leave(struct server *s, struct server_model *m) {
    const bool awaited = server_model_is_awaited(s, s->coming.model);
    if (awaited && m->n_uses) return false;
    if (awaited) server_pool_unload(s, m), s->coming.measured = false; // there is room for more conversations, too
    else forget_coming(s);
    return true;
}

static void start(struct server *s) {
    struct coming *c = &s->coming;
    struct status st = {0};
    struct model_loader_params params = {
        .opener = s->params.opener, .path = c->model->path, .engine = engine_params(s), .notify_fd = s->models_fd};
    const int least = need(s, room(s))->kv_tokens, most = c->memory.kv_tokens;
    if (!c->memory.on_devices) params.engine.kv_tokens = most > least ? most : least;
    log_info("server", "%s: loading", c->model->name);
    c->loader = model_loader_start(&params, &st);
    if (!c->loader) fail(s, &st);
}

static void used_work(void *path) { models_used_add(path); }

static void take(struct server *s) {
    struct server_model *m = s->coming.model;
    struct loaded_model loaded;
    struct status st = {0};
    if (!model_loader_take(s->coming.loader, &loaded, &st)) {
        fail(s, &st);
        return;
    }
    m->context = s->coming.context;
    forget_coming(s);
    if (m->client) { // it was lent meanwhile
        close_model(s, &loaded);
        return;
    }
    m->own = loaded;
    m->client = loaded.client, m->info = loaded.info, m->file = loaded.file, m->memory = loaded.memory;
    server_model_begin(s, m);
    log_info("server", "%s: loaded", m->name);
    if (m->path) worker_do(s->worker, used_work, free, xstrdup(m->path));
}

// The next step of what is coming. False: there is something to wait for, or nothing to do.
static bool bring(struct server *s) {
    struct coming *c = &s->coming;
    struct server_model *m = s->models;
    if (!c->model || c->measuring || s->n_closing || (c->loader && !model_loader_done(c->loader))) return false;
    if (c->lost.code && s->lookup) return false;
    while (m && !m->leaving) m = m->next;
    if (c->loader) take(s);
    else if (c->model == s->lent) forget_coming(s);
    else if (m) return let_leave(s, m);
    else if (c->lost.code) find_file(s);
    else if (!c->measured) measure(s);
    else if (fits(s)) start(s);
    else make_room(s);
    return true;
}

void server_pool_turn(struct server *s) {
    unload_expired(s);
    while (bring(s)) {
    }
}

void server_pool_close(struct server *s) {
    struct model_loader *loader = s->coming.loader;
    struct loaded_model loaded;
    if (loader && !model_loader_end(loader))
        s->models_fd = -1; // leaked, as the loader is: the process is about to exit
    else if (loader && model_loader_take(loader, &loaded, NULL)) model_unload(&loaded);
    for (struct server_model *m = s->models; m; m = m->next) model_unload(&m->own);
}
