// Which model a request means, and who waits for one that is not loaded.
//
//   request ──► its model is loaded ──► answered
//      ▲               │ not yet, or it has to leave for another one
//      └── again ◄── waiting
//
// Those that wait keep their order, and the first of them whose model is not loaded says which one is loaded next
// (server_pool.c): nobody is passed over for ever, while requests for models that stay loaded wait for nobody. Models
// go by the names of a list; what clients send is compared with these names, and never taken as a path.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/base/machine_memory.h"
#include "engine/base/system.h"
#include "engine/metrics.h"

#define LIST_SECONDS 60 // after which the machine is searched again, if somebody asks

struct waiting {
    struct server *server;
    struct exchange *exchange; // NULL: the client is gone
    struct wanted wanted;
    void (*handle)(struct server *s, struct exchange *x);
    struct waiting *next;
};

// ---- waiting ----

static void leave(void *owner) {
    struct waiting *w = owner;
    w->exchange = NULL;
    w->server->n_waiting--;
}

static void append(struct server *s, struct waiting *w) {
    struct waiting **at = &s->waiting;
    while (*at) at = &(*at)->next;
    *at = w;
    w->next = NULL;
}

void server_model_wait(struct server *s, struct exchange *x, void (*handle)(struct server *s, struct exchange *x)) {
    struct waiting *w = xcalloc(1, sizeof *w);
    *w = (struct waiting){.server = s, .exchange = x, .wanted = s->wanted, .handle = handle};
    append(s, w);
    x->owner = w, x->gone = leave;
    s->n_waiting++;
}

// Whether the model's context is as large as wanted, or as it can be.
static bool has_context(const struct server *s, const struct wanted *w) {
    const struct server_model *m = w->model;
    const int set = s->settings.context, most = set && set < m->info->n_context ? set : m->info->n_context;
    if (m == s->lent || w->context <= m->context) return true;
    return (w->context < most ? w->context : most) <= server_model_context(m);
}

static bool is_ready(const struct server *s, const struct wanted *w) {
    return w->model->client && !w->model->leaving && has_context(s, w);
}

static bool is_over(const struct waiting *w) { // its wait
    if (!w->wanted.model) return !w->server->lookup;
    return w->wanted.model->failure.code || is_ready(w->server, &w->wanted);
}

static void forget_failures(struct server *s) {
    for (struct server_model *m = s->models, *next; m; m = next) {
        const bool forgotten = m->gone && !server_model_is_used(s, m);
        next = m->next;
        m->failure = (struct status){0}, m->gone = false;
        if (forgotten) server_model_remove(s, m);
    }
}

// Those whose wait is over are handled again, in their turn.
static void retry(struct server *s) {
    struct waiting *all = s->waiting;
    s->waiting = NULL;
    for (struct waiting *w; (w = all);) {
        all = w->next;
        struct exchange *x = w->exchange;
        if (x && !is_over(w)) {
            append(s, w);
            continue;
        }
        if (x) x->owner = NULL, s->n_waiting--, w->handle(s, x);
        free(w);
    }
    forget_failures(s);
}

// What is loaded next; NULL: nobody waits for what is not.
static const struct wanted *next_wanted(const struct server *s) {
    const struct waiting *w = s->waiting;
    while (w && (!w->exchange || !w->wanted.model || is_ready(s, &w->wanted))) w = w->next;
    return w ? &w->wanted : NULL;
}

uint64_t server_model_due(const struct server *s) {
    bool now = !s->coming.model && next_wanted(s);
    for (const struct waiting *w = s->waiting; w && !now; w = w->next) now = w->exchange && is_over(w);
    return now ? clock_ns() : server_pool_due(s);
}

bool server_model_is_awaited(const struct server *s, const struct server_model *m) {
    const struct waiting *w = s->waiting;
    while (w && !(w->exchange && w->wanted.model == m)) w = w->next;
    return w;
}

bool server_model_is_used(const struct server *s, const struct server_model *m) {
    return m == s->named || m == s->lent || m->n_uses || m->leaving || m == s->coming.model ||
           server_model_is_awaited(s, m);
}

bool server_model_is_here(const struct server *s, const struct server_model *m) { return m->client || m == s->named; }

// ---- names ----

// "NAME", or "NAME:latest", as Ollama's clients say it.
static bool is_called(const char *name, const char *asked) {
    const size_t size = strlen(name);
    return !strncmp(asked, name, size) && (!asked[size] || !strcmp(asked + size, ":latest"));
}

const struct model_entry *server_model_entry(const struct server *s, const char *name) {
    for (int i = 0; i < s->list.count; i++)
        if (is_called(s->list.entries[i].name, name)) return &s->list.entries[i];
    return NULL;
}

bool server_model_listed(struct server *s) {
    const uint64_t now = clock_ns();
    if (now - s->looked >= LIST_SECONDS * NANOSECONDS || !s->looked) {
        s->looked = now;
        if (!s->lookup) s->lookup = models_lookup_start(s->params.opener, s->models_fd);
    }
    s->wanted = (struct wanted){0};
    return !s->lookup;
}

void server_model_look_again(struct server *s) {
    models_lookup_close(s->lookup);
    s->lookup = NULL;
    s->looked = 0;
    server_model_listed(s);
}

static void take_list(struct server *s) {
    struct model_list list;
    if (!s->lookup || !models_lookup_take(s->lookup, &list)) return;
    models_free(&s->list);
    s->list = list;
    if (!models_lookup_done(s->lookup)) return;
    models_lookup_close(s->lookup);
    s->lookup = NULL;
    s->looked = clock_ns(); // however long it took
}

struct server_model *server_model_known(const struct server *s, const char *name) {
    struct server_model *m = s->models;
    while (m && !is_called(m->name, name)) m = m->next;
    return m;
}

struct server_model *server_model_present(const struct server *s) {
    return s->lent ? s->lent : s->named;
}

struct server_model *server_model_add(struct server *s, const char *name, const char *path) {
    struct server_model *m = xcalloc(1, sizeof *m);
    *m = (struct server_model){.name = xstrdup(name), .path = path ? xstrdup(path) : NULL, .next = s->models};
    return s->models = m;
}

void server_model_set_path(struct server_model *m, const char *path) {
    free(m->path);
    m->path = path ? xstrdup(path) : NULL;
}

void server_model_remove(struct server *s, struct server_model *m) {
    struct server_model **at = &s->models;
    while (*at != m) at = &(*at)->next;
    *at = m->next;
    free(m->name), free(m->path);
    free(m);
}

// ---- finding ----

void server_model_refuse(const char *name, struct refusal *r) {
    refuse(r, 404, "model", "no model '%.200s'", name);
    r->code = "model_not_found";
}

// Of a name that nobody has asked for before. One with a problem may have been on its way when the list was taken.
static enum model_answer find_new(struct server *s, const char *name, struct server_model **out, struct refusal *r) {
    const struct model_entry *e = server_model_entry(s, name);
    if ((!e || e->problem) && !server_model_listed(s)) return MODEL_LATER;
    if (!e) server_model_refuse(name, r);
    else if (e->problem) refuse(r, 400, "model", "%s: %s", e->name, e->problem);
    if (!e || e->problem) return MODEL_REFUSED;
    *out = server_model_add(s, e->name, e->path);
    return MODEL_READY;
}

enum model_answer server_model_find(struct server *s, const struct ask *a, struct server_model **out,
                                    struct refusal *r) {
    const char *name = a->model;
    struct server_model *m = name ? server_model_known(s, name) : server_model_present(s);
    if (!m && !name) refuse(r, 503, "model", "no model is loaded at the moment; requests may name one");
    if (!m && !name) return MODEL_REFUSED;
    const enum model_answer answer = m ? MODEL_READY : find_new(s, name, &m, r);
    if (answer != MODEL_READY) return answer;
    *out = m;
    s->wanted = (struct wanted){m, a->context};
    if (is_ready(s, &s->wanted)) return MODEL_READY;
    if (!m->failure.code) return MODEL_LATER;
    if (m->gone) server_model_refuse(m->name, r);
    else refuse(r, 503, "model", "%s", model_problem(m->path, m->failure.text));
    return MODEL_REFUSED;
}

// ---- using ----

void server_model_begin(struct server *s, struct server_model *m) {
    struct settings own = s->settings;
    settings_follow_model(&own, m->info);
    m->sampling = own.sampling;
    m->loaded = (int64_t)time(NULL);
    m->used = clock_ns();
    server_model_keep(m, m == s->named ? -1 : s->settings.keep_alive);
    const int fd = engine_event_fd(m->client);
    if (epoll_ctl(s->engines_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN}))
        panic("epoll: %s", strerror(errno));
}

void server_model_end(struct server *s, struct server_model *m) {
    epoll_ctl(s->engines_fd, EPOLL_CTL_DEL, engine_event_fd(m->client), NULL);
    m->client = NULL, m->info = NULL, m->file = NULL;
    m->memory = (struct model_memory){0};
    m->own = (struct loaded_model){0};
    m->leaving = false;
}

// Only what was loaded here is unloaded here.
void server_model_keep(struct server_model *m, double seconds) {
    m->keep = seconds < 0 || !m->own.client ? KEEP_FOREVER : (uint64_t)(seconds * (double)NANOSECONDS);
}

int server_model_context(const struct server_model *m) {
    const int context = engine_metrics(m->client)->context;
    return context > 0 ? context : m->info->n_context;
}

void server_model_use(struct server_model *m) {
    m->n_uses++;
    m->used = clock_ns();
}

void server_model_rest(struct server_model *m) {
    m->n_uses--;
    m->used = clock_ns();
}

// ---- a lent one ----

// But for grammars that are being compiled, which then find the model gone.
static void end_uses(struct server *s, const struct server_model *m) {
    generations_stop(s, m, "the model was unloaded");
    while (m->n_uses > m->n_compiling) {
        poll(&(struct pollfd){.fd = worker_fd(s->worker), .events = POLLIN}, 1, -1);
        worker_collect(s->worker);
    }
}

// More was free before its weights were read.
static void count_before(struct server *s, const struct model_memory *lent) {
    const uint64_t before = machine_memory_free() + lent->weights;
    if (before > s->most_free) s->most_free = before;
}

bool server_model_lend(struct server *s, struct engine *engine, const char *name, const char *path,
                       const struct model_info *info, const struct model_file *file, const struct model_memory *memory,
                       struct status *st) {
    server_model_withdraw(s);
    struct engine_client *client = engine_client_open(engine, st);
    if (!client) return false;
    struct server_model *m = server_model_known(s, name);
    if (m) server_model_set_path(m, path);
    else m = server_model_add(s, name, path);
    if (m->client) end_uses(s, m), server_pool_unload(s, m);
    m->client = client, m->info = info, m->file = file;
    m->memory = memory ? *memory : (struct model_memory){0};
    count_before(s, &m->memory);
    server_model_begin(s, m);
    s->lent = m;
    return true;
}

void server_model_withdraw(struct server *s) {
    struct server_model *m = s->lent;
    if (!m) return;
    struct engine_client *client = m->client;
    end_uses(s, m);
    server_model_end(s, m);
    engine_client_close(client);
    s->lent = NULL;
}

// ---- opening, turning, closing ----

bool server_model_open(struct server *s, struct status *st) {
    s->most_free = machine_memory_free();
    s->models_fd = system_open_eventfd(st);
    s->engines_fd = s->models_fd < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    return s->engines_fd >= 0 || (s->models_fd >= 0 && status_fail(st, STATUS_IO, "epoll: %s", strerror(errno)));
}

// Before anybody looks at what they have: what comes afterwards is another notice.
void server_model_hear(struct server *s) {
    uint64_t times;
    const ssize_t ignored = read(s->models_fd, &times, sizeof times);
    (void)ignored;
}

void server_model_turn(struct server *s) {
    server_model_hear(s);
    take_list(s);
    server_pool_turn(s);
    retry(s);
    const struct wanted *next = next_wanted(s);
    if (next && !s->coming.model) server_pool_load(s, next);
}

void server_model_close(struct server *s) {
    for (struct waiting *w; (w = s->waiting); free(w)) s->waiting = w->next;
    server_pool_close(s);
    models_lookup_close(s->lookup);
    models_free(&s->list);
    while (s->models) server_model_remove(s, s->models);
    if (s->models_fd >= 0) close(s->models_fd);
    if (s->engines_fd >= 0) close(s->engines_fd);
}
