// Which model answers: one at a time is loaded, and requests for another wait until those before them have ended.
//
//   request ──► its model is loaded ──► answered
//      ▲               │ another, or none yet
//      └── again ◄── waiting: for the answers that run, then for the model that is loaded in place of theirs
//
// Those that wait keep their order. Once somebody waits for another model, later ones for the present model wait as
// well, so that nobody is passed over for ever. Models go by the names of a list; what clients send is compared with
// these names, and never taken as a path.
#include <stdio.h>
#include <time.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"

#define LIST_SECONDS 60 // after which the machine is searched again, if somebody asks

struct waiting {
    struct server *server;
    struct exchange *exchange; // NULL: the client is gone
    void (*handle)(struct server *s, struct exchange *x);
    struct waiting *next;
};

// ---- waiting ----

static void leave(void *owner) {
    struct waiting *w = owner;
    w->exchange = NULL;
    w->server->retries = true;
}

void server_model_wait(struct server *s, struct exchange *x, void (*handle)(struct server *s, struct exchange *x)) {
    struct waiting *w = xcalloc(1, sizeof *w), **at = &s->waiting;
    *w = (struct waiting){.server = s, .exchange = x, .handle = handle};
    while (*at) at = &(*at)->next;
    *at = w;
    x->owner = w, x->gone = leave;
    s->n_waiting++;
}

// Each is handled again, in its turn; those that still cannot be answered wait again, in the same order.
static void retry(struct server *s) {
    struct waiting *all = s->waiting;
    s->waiting = NULL;
    s->n_waiting = 0;
    s->retries = s->switching = false;
    for (struct waiting *w; (w = all);) {
        all = w->next;
        struct exchange *x = w->exchange;
        if (x) x->owner = NULL, w->handle(s, x);
        free(w);
    }
    free(s->failed);
    s->failed = NULL;
}

void server_model_free_waiting(struct server *s) {
    for (struct waiting *w; (w = s->waiting); free(w)) s->waiting = w->next;
}

// ---- names ----

// "NAME", or "NAME:latest", as Ollama's clients say it.
static bool is_called(const char *name, const char *asked) {
    const size_t size = strlen(name);
    return !strncmp(asked, name, size) && (!asked[size] || !strcmp(asked + size, ":latest"));
}

const struct model_entry *server_model_entry(const struct server *s, const char *name) {
    const struct model_list *list = model_host_list(s->params.host);
    for (int i = 0; i < list->count; i++)
        if (is_called(list->entries[i].name, name)) return &list->entries[i];
    return NULL;
}

bool server_model_is_current(const struct server *s, const char *name) {
    return !name || is_called(s->model.name, name);
}

bool server_model_listed(struct server *s) {
    const uint64_t now = clock_ns();
    if (now - s->looked >= LIST_SECONDS * NANOSECONDS || !s->looked) {
        s->looked = now;
        model_host_look(s->params.host);
    }
    return !model_host_looking(s->params.host);
}

// ---- choosing ----

void server_model_refuse(const char *name, struct refusal *r) {
    refuse(r, 404, "model", "no model '%.200s'", name);
    r->code = "model_not_found";
}

static bool is_changing(const struct server *s) {
    return model_host_loading(s->params.host) || model_host_choosing(s->params.host);
}

static void choose(struct server *s, const char *name) {
    if (s->generations) return; // when they have ended
    free(s->chosen);
    s->chosen = xstrdup(name);
    model_host_choose(s->params.host, name);
}

static enum model_answer find_current(const struct server *s, struct refusal *r) {
    if (is_changing(s) || s->switching) return MODEL_LATER;
    if (s->model.client) return MODEL_READY;
    refuse(r, 503, "model", "%s", s->failure.text);
    return MODEL_REFUSED;
}

enum model_answer server_model_find(struct server *s, const char *name, struct refusal *r) {
    if (server_model_is_current(s, name)) return find_current(s, r);
    const struct model_entry *e = server_model_entry(s, name);
    if (!e && !server_model_listed(s)) return MODEL_LATER;
    const bool failed = e && s->failed && !strcmp(s->failed, e->name);
    if (!e) server_model_refuse(name, r);
    else if (e->problem) refuse(r, 400, "model", "%s: %s", e->name, e->problem);
    else if (failed) refuse(r, 503, "model", "%s", model_problem(e->path, s->failure.text));
    if (!e || e->problem || failed) return MODEL_REFUSED;
    if (!is_changing(s) && !s->switching) choose(s, e->name);
    s->switching = true;
    return MODEL_LATER;
}

// ---- what the host says ----

static bool same_path(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static void take_model(struct server *s, struct status *st) {
    struct server_model *m = &s->model;
    const char *path = model_host_path(s->params.host);
    if (s->chosen && !same_path(path, m->path)) {
        free(m->name);
        m->name = s->chosen;
        s->chosen = NULL;
    }
    free(m->path);
    m->path = path ? xstrdup(path) : NULL;
    m->info = model_host_info(s->params.host);
    m->file = model_host_file(s->params.host);
    m->loaded = (int64_t)time(NULL);
    engine_client_close(m->client);
    m->client = model_host_engine(s->params.host) ? engine_client_open(model_host_engine(s->params.host), st) : NULL;
    settings_follow_model(&s->settings, m->info);
}

// Nothing may use the engine any more, and soon not the file.
static void release(void *context) {
    struct server *s = context;
    generations_stop(s, "the model was unloaded");
    worker_wait(s->worker, -1);
    engine_client_close(s->model.client);
    s->model.client = NULL;
}

static void fail(struct server *s, const struct status *st) {
    log_error("server", "%s: %s", s->chosen ? s->chosen : s->model.name, st->text);
    free(s->failed);
    s->failed = s->chosen;
    s->chosen = NULL;
    s->failure = *st;
}

void server_model_turn(struct server *s) {
    for (;;) {
        struct status st = {0};
        const enum model_host_event event = model_host_poll(s->params.host, &st);
        if (event == HOST_NOTHING) break;
        if (event == HOST_LOADED) take_model(s, &st);
        if (event == HOST_REFUSED || event == HOST_FAILED || st.code) fail(s, &st);
        s->retries |= event != HOST_PROGRESS;
    }
    if (s->switching && !s->generations && !is_changing(s)) s->retries = true;
    if (s->waiting && s->retries) retry(s);
    s->retries = false;
}

bool server_model_open(struct server *s, struct status *st) {
    s->model.name = xstrdup(s->params.name);
    model_host_watch(s->params.host, release, s);
    take_model(s, st);
    return s->model.client;
}

void server_model_close(struct server *s) {
    model_host_watch(s->params.host, NULL, NULL);
    engine_client_close(s->model.client);
    free(s->model.name), free(s->model.path), free(s->chosen), free(s->failed);
}
