// The server's thread: who may ask, and the events of the engine and of HTTP in one loop.
#include "app/server/server.h"

#include <poll.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/base/system.h"

// ---- exchanges ----

// Where a body ends must not depend on who reads it: a proxy before this server could take the rest for another
// request.
static bool is_framed(const struct exchange *x, struct refusal *r) {
    const int n = http_header_count(x, "Content-Length") + http_header_count(x, "Transfer-Encoding");
    const char *coding = http_header(x, "Transfer-Encoding");
    if (n <= 1 && (!coding || !strcasecmp(coding, "chunked"))) return true;
    return refuse(r, 400, NULL, "expected either one Content-Length or a Transfer-Encoding of chunked");
}

static bool allows(const struct server *s, const struct exchange *x, struct refusal *r) {
    const char *host = http_header(x, "Host"), *origin = http_header(x, "Origin");
    if (!host || !guard_allows_host(&s->guard, host))
        return refuse(r, 403, NULL, "host '%.200s' is not allowed (see --allow-host)", host ? host : "");
    if (http_header_count(x, "Origin") && (!origin || !guard_allows_origin(&s->guard, origin, host)))
        return refuse(r, 403, NULL, "origin '%.200s' is not allowed (see --allow-origin)", origin ? origin : "");
    return true;
}

static bool knows_key(const struct server *s, const struct exchange *x, struct refusal *r) {
    if (!strcmp(x->path, "/health")) return true;
    if (guard_allows_key(&s->guard, http_header(x, "Authorization"), http_header(x, "X-Api-Key"))) return true;
    refuse(r, 401, NULL, "the request has no valid API key");
    r->code = "invalid_api_key";
    return false;
}

// What a browser asks before a page of another origin may.
static void reply_options(struct exchange *x) {
    const char *asked = http_header(x, "Access-Control-Request-Headers");
    http_reply(x, 204, "text/plain", "", 0);
    http_add_header(x, "Allow", "GET, POST, DELETE, OPTIONS");
    if (!x->origin) return;
    http_add_header(x, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    http_add_header(x, "Access-Control-Max-Age", "600");
    if (asked) http_add_header(x, "Access-Control-Allow-Headers", asked);
}

static void on_admit(void *context, struct exchange *x) {
    const struct server *s = context;
    struct refusal r = {0};
    if (!is_framed(x, &r) || !allows(s, x, &r)) {
        reply_refusal(x, route_form(x->path), &r);
        http_add_header(x, "Connection", "close");
        return;
    }
    x->origin = http_header(x, "Origin");
    if (!strcmp(x->method, "OPTIONS")) reply_options(x);
    else if (!knows_key(s, x, &r) || !route_find(x, &r)) reply_refusal(x, route_form(x->path), &r);
}

static void on_handle(void *context, struct exchange *x) {
    struct server *s = context;
    struct refusal r;
    const struct route *route = route_find(x, &r); // it was admitted
    log_debug("server", "%s %s", route->method, route->path);
    if (s->params.hurries && atomic_load(s->params.hurries)) {
        refuse(&r, 503, NULL, "the model is being changed");
        reply_refusal(x, route_form(x->path), &r);
    } else {
        route->handle(s, x);
    }
}

// ---- the loop ----

static int stop_fd(void *context) { return ((const struct server *)context)->stop_fd; }

static void stop_turn(void *context, bool ready) {
    if (ready) ((struct server *)context)->stopped = true;
}

static int engine_fd(void *context) { return ((const struct server *)context)->engines_fd; }

static void engine_turn(void *context, bool ready) {
    struct server *s = context;
    struct engine_event e;
    for (struct server_model *m = s->models; m && ready; m = m->next)
        while (m->client && engine_poll(m->client, &e)) generation_take(s, m, &e);
    generations_ping(s);
}

static uint64_t engine_due(void *context) { return generations_due(context); }

static int worker_ready_fd(void *worker) { return worker_fd(worker); }

static void worker_turn(void *worker, bool ready) {
    if (ready) worker_collect(worker);
}

static int models_fd(void *context) { return ((const struct server *)context)->models_fd; }
static uint64_t models_due(void *context) { return server_model_due(context); }

static void models_turn(void *context, bool ready) {
    (void)ready;
    server_model_turn(context);
}

static int clients_fd(void *context) { return http_fd(((const struct server *)context)->http); }
static uint64_t clients_due(void *context) { return http_due(((const struct server *)context)->http); }

static void clients_turn(void *context, bool ready) {
    (void)ready;
    http_turn(((const struct server *)context)->http);
}

// Clients come last, so that what the engine said is sent in the same turn.
static void add_sources(struct server *s) {
    loop_add(s->loop, &(struct loop_source){stop_fd, POLLIN, NULL, stop_turn, s});
    loop_add(s->loop, &(struct loop_source){engine_fd, POLLIN, engine_due, engine_turn, s});
    loop_add(s->loop, &(struct loop_source){worker_ready_fd, POLLIN, NULL, worker_turn, s->worker});
    loop_add(s->loop, &(struct loop_source){worker_ready_fd, POLLIN, NULL, worker_turn, s->compiler});
    loop_add(s->loop, &(struct loop_source){models_fd, POLLIN, models_due, models_turn, s});
    loop_add(s->loop, &(struct loop_source){clients_fd, POLLIN, clients_due, clients_turn, s});
}

void server_turn(struct server *s, int timeout_ms) { loop_turn(s->loop, timeout_ms); }

void server_add(struct server *s, const struct loop_source *source) { loop_add(s->loop, source); }

void server_run(struct server *s) {
    while (!s->stopped) loop_turn(s->loop, -1);
}

void server_stop(struct server *s) {
    const uint64_t one = 1;
    const ssize_t ignored = write(s->stop_fd, &one, sizeof one);
    (void)ignored;
}

// ---- where it is ----

static const char *host_of(const struct settings *s) { return s->host ? s->host : "127.0.0.1"; }

char *server_address(const struct settings *s, int port) {
    const bool bracket = strchr(host_of(s), ':');
    return xasprintf("%s%s%s:%d", bracket ? "[" : "", host_of(s), bracket ? "]" : "", port);
}

char *server_warning(const struct settings *s) {
    const char *host = host_of(s);
    const bool here = !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
    return here || s->api_keys ? NULL : xasprintf("whoever reaches %s may use this server (see --api-keys)", host);
}

// ---- opening and closing ----

static bool open_parts(struct server *s, struct status *st) {
    const struct settings *set = s->params.settings;
    const char *host = host_of(set);
    s->guard = (struct guard){.hosts = &set->allow_hosts,
                              .origins = &set->allow_origins,
                              .host = host,
                              .open = strcmp(host, "127.0.0.1") && strcmp(host, "localhost") && strcmp(host, "::1")};
    if (!guard_open(&s->guard, set->api_keys, st)) return false;
    s->stop_fd = system_open_eventfd(st);
    s->worker = s->stop_fd < 0 ? NULL : worker_open(st);
    s->compiler = s->worker ? worker_open(st) : NULL;
    if (!s->compiler || !server_model_open(s, st)) return false;
    s->http = http_open(
        &(struct http_params){.host = host, .port = set->port, .admit = on_admit, .handle = on_handle, .context = s},
        st);
    return s->http;
}

struct server *server_open(const struct server_params *p, struct status *st) {
    struct server *s = xcalloc(1, sizeof *s);
    *s = (struct server){.params = *p,
                         .settings = *p->settings,
                         .loop = loop_open(),
                         .engines_fd = -1,
                         .stop_fd = -1,
                         .started = (uint64_t)time(NULL),
                         .models_fd = -1};
    if (!open_parts(s, st)) {
        server_close(s);
        return NULL;
    }
    add_sources(s);
    return s;
}

bool server_load(struct server *s, const char *name, struct status *st) {
    char *path = NULL;
    const char *word = s->params.settings->model;
    if (word && !models_resolve(word, &path, st)) return false;
    struct server_model *m = s->named = server_model_add(s, name, path);
    free(path);
    server_pool_load(s, &(struct wanted){.model = m});
    while (s->coming.model) {
        struct pollfd fds[] = {{.fd = s->models_fd, .events = POLLIN}, {.fd = worker_fd(s->worker), .events = POLLIN}};
        poll(fds, 2, -1);
        worker_collect(s->worker);
        server_model_hear(s);
        server_pool_turn(s);
    }
    if (m->client) return true;
    *st = m->failure;
    s->named = NULL;
    server_model_remove(s, m);
    return false;
}

void server_close(struct server *s) {
    http_close(s->http);
    worker_close(s->compiler);
    generations_stop(s, NULL, "");
    server_model_withdraw(s);
    worker_close(s->worker);
    server_model_close(s);
    guard_close(&s->guard);
    if (s->stop_fd >= 0) close(s->stop_fd);
    loop_close(s->loop);
    free(s);
}

int server_port(const struct server *s) { return http_port(s->http); }
