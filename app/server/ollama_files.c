// Ollama's delete and copy: of models by their names in the list, on the worker. What clients send is compared with
// names, or has to be one (app/models/model_files.h), and is never taken as a path.
#include "app/models/model_files.h"
#include "app/server/server_state.h"

struct job {
    struct server *server;
    struct exchange *exchange; // NULL: the client is gone
    struct model_entry entry;  // its path owned
    char *destination;         // owned; NULL: it is deleted
    struct status status;
};

// ---- on the worker ----

static void work(void *context) {
    struct job *j = context;
    if (j->destination) model_files_copy(&j->entry, j->destination, &j->status);
    else model_files_delete(&j->entry, &j->status);
}

static void reply_done(struct server *s, struct exchange *x) {
    (void)s;
    http_reply(x, 200, "text/plain", "", 0);
}

// The client hears when the list has changed, too.
static void done(void *context) {
    struct job *j = context;
    struct refusal r;
    if (!j->status.code) server_model_look_again(j->server);
    if (j->exchange && j->status.code) {
        const int refused = j->destination ? 400 : 403;
        refuse(&r, j->status.code == STATUS_USAGE ? refused : 500, j->destination ? "destination" : "model", "%s",
               j->status.text);
        reply_refusal(j->exchange, &ollama_chat, &r);
    } else if (j->exchange) {
        server_model_wait(j->server, j->exchange, reply_done);
    }
    free(j->entry.path), free(j->destination), free(j);
}

static void abandon(void *job) { ((struct job *)job)->exchange = NULL; }

// "NAME:latest" is NAME.
static void begin(struct server *s, struct exchange *x, const struct model_entry *e, const char *destination) {
    struct job *j = xcalloc(1, sizeof *j);
    *j = (struct job){.server = s, .exchange = x, .entry = model_files_entry_copy(e)};
    if (destination) j->destination = xstrdup(destination);
    char *tag = destination ? strstr(j->destination, ":latest") : NULL;
    if (tag && !tag[strlen(":latest")]) *tag = 0;
    x->owner = j, x->gone = abandon;
    worker_do(s->worker, work, done, j);
}

// ---- requests ----

// The entry of what is asked for; NULL: refused, or, with no status, the exchange waits for the list.
static const struct model_entry *find(struct server *s, struct exchange *x, const json_t *object,
                                      const struct field *fields, struct ask *a, struct refusal *r,
                                      void (*again)(struct server *s, struct exchange *x)) {
    const bool read = object && fields_read(object, fields, false, a, r);
    const bool named = read && (a->model || refuse(r, 400, fields[0].name, "is missing"));
    if (named && !server_model_listed(s)) {
        server_model_wait(s, x, again);
        return NULL;
    }
    const struct model_entry *e = named ? server_model_entry(s, a->model) : NULL;
    if (e) return e;
    if (named) server_model_refuse(a->model, r);
    return NULL;
}

// By its file, or its name: a path may be spelt in several ways.
static struct server_model *known_as(const struct server *s, const struct model_entry *e) {
    struct server_model *m = s->models;
    while (m && strcmp(m->name, e->name) && !(m->path && !strcmp(m->path, e->path))) m = m->next;
    return m;
}

// One that is loaded and idle is unloaded; then nobody knows it any more.
static bool let_go(struct server *s, const struct model_entry *e, struct refusal *r) {
    if (strcmp(e->source, MODEL_SOURCE_OWN) || !e->path)
        return refuse(r, 403, "model", "'%.100s' is not in confab's own folder of models (%s)", e->name, e->source);
    for (struct server_model *m; (m = known_as(s, e));) {
        if (server_model_is_used(s, m)) return refuse(r, 403, "model", "'%.100s' is in use", e->name);
        if (m->client) server_pool_unload(s, m);
        server_model_remove(s, m);
    }
    return true;
}

void ollama_delete(struct server *s, struct exchange *x) {
    struct refusal r = {0};
    struct ask a = {0};
    json_t *object = route_parse(x, &r);
    const struct model_entry *e = find(s, x, object, ollama_name_fields, &a, &r, ollama_delete);
    if (e && let_go(s, e, &r)) begin(s, x, e, NULL);
    if (r.status) reply_refusal(x, &ollama_chat, &r);
    json_decref(object);
}

void ollama_copy(struct server *s, struct exchange *x) {
    static const struct field fields[] = {
        {"source", FIELD_TEXT, .place = offsetof(struct ask, model)},
        {"destination", FIELD_TEXT, .place = offsetof(struct ask, destination)},
        {0},
    };
    struct refusal r = {0};
    struct ask a = {0};
    json_t *object = route_parse(x, &r);
    const struct model_entry *e = find(s, x, object, fields, &a, &r, ollama_copy);
    const bool taken = e && a.destination && server_model_entry(s, a.destination);
    if (taken) refuse(&r, 400, "destination", "already exists");
    else if (e && !a.destination) refuse(&r, 400, "destination", "is missing");
    if (r.status) reply_refusal(x, &ollama_chat, &r);
    else if (e) begin(s, x, e, a.destination);
    json_decref(object);
}
