// The model that answers, and choosing another one: the chat's side of the model host.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/base/clean.h"
#include "app/base/units.h"
#include "app/chat/chat_state.h"
#include "app/models/model_name.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

#define PATH_SHOWN 400 // bytes

struct model_texts {
    char size[24], parameters[24], refusal[160];
    char *path;
};

struct chat_models {
    struct view_model *views;
    struct model_texts *texts;
    int count;
    uint32_t version;
    char *path;   // of the model that answers; NULL: the built-in one
    char *folder; // of one's own, as it is shown; NULL: there is none
    struct view_loading loading;
    char size[24]; // of what is being loaded
    int stopped;   // answers, since the last model was let go
    bool reloads;  // the same one is loaded again
};

// ---- the list ----

static void list_clear(struct chat_models *m) {
    for (int i = 0; i < m->count; i++) free(m->texts[i].path);
    free(m->views);
    free(m->texts);
    m->views = NULL, m->texts = NULL, m->count = 0;
    m->version++;
}

// A path as a person would write it, on one line. The caller frees.
static char *short_path(const char *path) {
    const char *home = getenv("HOME");
    size_t size = home ? strlen(home) : 0;
    if (size < 2 || strncmp(path, home, size) || path[size] != '/') return clean_line(path, PATH_SHOWN);
    char *whole = xasprintf("~%s", path + size), *line = clean_line(whole, PATH_SHOWN);
    free(whole);
    return line;
}

static void list_entry(struct view_model *view, struct model_texts *t, const struct model_entry *e, uint64_t room) {
    char need[24], unused[24];
    *view = (struct view_model){.name = e->name,
                                .family = e->family ? e->family : "",
                                .parameters = t->parameters,
                                .format = e->format ? e->format : "",
                                .size = units_bytes((double)e->bytes, t->size),
                                .source = e->source,
                                .path = t->path = short_path(e->path ? e->path : "part of confab")};
    if (e->n_parameters) units_count((double)e->n_parameters, t->parameters);
    if (e->problem) snprintf(t->refusal, sizeof t->refusal, "%s", e->problem);
    else if (room && e->need > room)
        snprintf(t->refusal, sizeof t->refusal, "needs %s, %s are free", units_bytes((double)e->need, need),
                 units_bytes((double)room, unused));
    if (*t->refusal) view->refusal = t->refusal;
}

static void list_take(struct chat *c) {
    struct chat_models *m = c->models;
    const struct model_list *list = model_host_list(c->p.host);
    const struct model_entry *there = model_host_entry(c->p.host);
    uint64_t room = model_host_room(c->p.host);
    list_clear(m);
    m->count = list->count;
    m->views = xcalloc((size_t)m->count + 1, sizeof *m->views);
    m->texts = xcalloc((size_t)m->count + 1, sizeof *m->texts);
    for (int i = 0; i < m->count; i++) {
        list_entry(&m->views[i], &m->texts[i], &list->entries[i], room);
        m->views[i].loaded = c->client && &list->entries[i] == there;
    }
}

// ---- the model that answers ----

static void take_model(struct chat *c) {
    const struct model_info *info = model_host_info(c->p.host);
    c->client = model_host_client(c->p.host);
    const char *path = model_host_path(c->p.host);
    free(c->model_name), free(c->model_short), free(c->models->path);
    c->models->path = path ? xstrdup(path) : NULL;
    c->model_name = model_title(info);
    c->model_short = model_short_name(info);
    c->n_samples = 0;
    c->prefill_rate = 0;
    c->moment = 0;
    c->watched = 0;
    c->page = -1;
    c->time = (struct view_time){0};
    chat_limits_engine(c);
    settings_follow_model(c->p.settings, info);
    session_set_client(c->session, c->client, c->model_name);
    session_set_titles(c->session, path ? info : NULL); // the built-in one knows confab, not chats
    session_begin_with_defaults(c->session); // chats that have begun keep their knobs
    list_take(c);
    if (c->client) engine_focus(c->client, c->current->conversation.id);
    chat_serve_lend(c);
}

// Requests wait for the model that is being loaded.
static void hold(struct chat *c) {
    session_hold(c->session, !c->client || model_host_loading(c->p.host) || model_host_choosing(c->p.host));
}

static const char *stopped_text(const struct chat *c, char text[64]) {
    int n = c->models->stopped;
    snprintf(text, 64, n == 1 ? "%d answer was stopped" : "%d answers were stopped", n);
    return text;
}

static void release(void *context) {
    struct chat *c = context;
    char text[64];
    c->models->stopped = chat_serve_clients(c) + session_abandon(c->session, "stopped for another model");
    chat_serve_withdraw(c);
    chat_timeline_release(c);
    c->client = NULL;
    session_set_client(c->session, NULL, c->model_name);
    c->tick = 0;
    chat_limits_engine(c);
    if (c->models->stopped) chat_say(c, false, "%s", stopped_text(c, text));
}

void chat_model_open(struct chat *c) {
    char *folder = model_own_folder();
    c->models = xcalloc(1, sizeof *c->models);
    c->models->folder = folder ? short_path(folder) : NULL;
    free(folder);
    model_host_watch(c->p.host, release, c);
    take_model(c);
    hold(c);
}

void chat_model_close(struct chat *c) {
    model_host_watch(c->p.host, NULL, NULL);
    list_clear(c->models);
    free(c->models->path), free(c->models->folder);
    free(c->models);
    free(c->model_name);
    free(c->model_short);
    free(c->loading);
}

// ---- choosing ----

static void loaded(struct chat *c) {
    const char *path = model_host_path(c->p.host);
    bool another = !c->models->path != !path || (path && strcmp(c->models->path, path));
    const bool again = c->models->reloads && !another;
    char text[64];
    take_model(c);
    hold(c);
    c->models->reloads = false;
    if (again) chat_say(c, false, "%s is loaded again, with the settings as they are now", c->model_name);
    const char *refused = model_host_draft_refused(c->p.host);
    if (!another && refused) chat_say(c, true, "drafting by lookup alone: %s", refused);
    if (!another) return; // the first one, or the old one again
    bool stopped = c->models->stopped;
    chat_say(c, refused, "%s answers from now on%s%s%s%s", c->model_name, stopped ? "; " : "",
             stopped ? stopped_text(c, text) : "", refused ? "; drafting by lookup alone: " : "",
             refused ? refused : "");
    c->models->stopped = 0;
    char *whole = path ? path_absolute(path) : xstrdup(""); // it is read from other folders too
    setting_parse(c->p.settings, SETTING_model, whole, NULL);
    free(whole);
    chat_save_setting(c, SETTING_model);
}

static void failed(struct chat *c, const struct status *st) {
    c->models->reloads = false;
    bool none = !model_host_engine(c->p.host) && !model_host_loading(c->p.host);
    if (st->code == STATUS_CANCELLED) chat_say(c, false, "stopped loading; %s stays", c->model_name);
    else chat_say(c, true, "%s%s", none ? "no model is loaded: " : "not loaded: ", st->text);
    hold(c);
}

// Of a model of the list its path has been shown there; a path that was typed is not said twice.
static void say_refused(struct chat *c, const char *name, const char *message) {
    const struct model_list *list = model_host_list(c->p.host);
    message = model_problem(name, message);
    for (int i = 0; i < list->count; i++)
        if (!strcasecmp(list->entries[i].name, name)) message = model_problem(list->entries[i].path, message);
    chat_say(c, true, "%s: %s", name, message);
}

static void refused(struct chat *c, const struct status *st) {
    say_refused(c, model_host_refused(c->p.host), st->text);
    hold(c);
}

void chat_model_events(struct chat *c) {
    for (;;) {
        struct status st = {0};
        switch (model_host_poll(c->p.host, &st)) {
        case HOST_NOTHING: return;
        case HOST_PROGRESS: hold(c); break;
        case HOST_REFUSED: refused(c, &st); break;
        case HOST_LISTED: list_take(c); break;
        case HOST_LOADED: loaded(c); break;
        case HOST_FAILED: failed(c, &st); break;
        }
        c->stale = true;
    }
}

void chat_model_choose(struct chat *c, const char *word) {
    char *name = word ? clean_line(word, 1000) : xstrdup("");
    for (size_t size = strlen(name); size && name[size - 1] == ' ';) name[--size] = 0;
    if (!*name) {
        model_host_look(c->p.host);
    } else {
        model_host_choose(c->p.host, name);
        hold(c); // what is asked from now on is asked of it
        chat_limits_yield(c);
    }
    free(name);
}

void chat_model_reload(struct chat *c, const struct ui_command *command) {
    (void)command;
    c->models->reloads = true;
    model_host_reload(c->p.host);
    hold(c);
    chat_limits_yield(c);
}

void chat_model_stop(struct chat *c) {
    const struct model_loading *loading = model_host_loading(c->p.host);
    if (!model_host_choosing(c->p.host) && (!loading || !loading->stoppable)) {
        chat_say(c, false, loading ? "the first model has to be loaded" : "no model is being loaded");
        return;
    }
    model_host_stop(c->p.host);
    if (!c->client) return; // the host says when it is so
    chat_say(c, false, "stopped loading; %s stays", c->model_name);
    hold(c);
}

void chat_model_show(struct chat *c, struct screen_view *view) {
    struct chat_models *m = c->models;
    const struct model_loading *loading = model_host_loading(c->p.host);
    view->models = m->views;
    view->n_models = m->count;
    view->models_version = m->version;
    view->models_looking = model_host_looking(c->p.host);
    view->models_folder = m->folder;
    if (!loading) return;
    free(c->loading);
    c->loading = xasprintf("loading %s", loading->title);
    m->loading = (struct view_loading){.text = c->loading,
                                       .size = units_bytes((double)loading->bytes, m->size),
                                       .done = loading->done,
                                       .stoppable = loading->stoppable};
    view->loading = &m->loading;
}
