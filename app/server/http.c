// HTTP over libmicrohttpd, which is driven from outside: its epoll descriptor is one of ours. A connection that waits
// for its answer is suspended there, and hears nothing; so ours have each socket too, and tell when the client leaves.
#include "app/server/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/server/bytes.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"

enum { EVENTS = 64, RUNS = 4, BLOCK = 16 << 10, PORT_TEXT = 16 };

struct http {
    struct http_params params;
    struct MHD_Daemon *daemon;
    int listen_fd, fd;
    struct peer *peers;
    size_t body_bytes; // of all requests
    uint64_t exchanges;
};

struct peer { // a connection
    struct http *http;
    struct MHD_Connection *connection;
    int fd;
    uint64_t deadline;         // by which it must have moved on; 0: it waits for us
    bool left;                 // the client has, or will not send any more
    bool served;               // an exchange has ended before
    struct http_state *state;  // of its exchange; NULL: between two
    struct peer *next, **link; // link: what points to it
};

struct http_state {
    struct exchange exchange;
    struct peer *peer;
    struct bytes body;
    struct MHD_Response *response; // NULL: none yet
    int status;
    struct bytes out; // of a stream
    size_t sent;      // of `out`
    bool ended;       // nothing is added to it
    bool gone;        // the connection is to be closed
    bool suspended;
};

static void set_deadline(struct peer *p) { p->deadline = clock_ns() + HTTP_SECONDS * NANOSECONDS; }

// ---- waiting ----

static void suspend(struct http_state *s) {
    MHD_suspend_connection(s->peer->connection);
    s->suspended = true;
    s->peer->deadline = 0;
}

static void wake(struct http_state *s) {
    if (!s->suspended) return;
    s->suspended = false;
    set_deadline(s->peer);
    MHD_resume_connection(s->peer->connection);
}

static void tell_gone(struct http_state *s) {
    struct exchange *x = &s->exchange;
    if (x->owner) x->gone(x->owner);
    x->owner = NULL;
    s->gone = true;
}

// ---- replies ----

static void begin_reply(struct http_state *s, int status, struct MHD_Response *response, const char *type) {
    if (!response) panic("out of memory");
    s->status = status;
    s->response = response;
    http_add_header(&s->exchange, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    http_add_header(&s->exchange, "X-Content-Type-Options", "nosniff");
    if (!s->exchange.origin) return;
    http_add_header(&s->exchange, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, s->exchange.origin);
    http_add_header(&s->exchange, MHD_HTTP_HEADER_VARY, "Origin");
}

void http_add_header(struct exchange *x, const char *name, const char *value) {
    MHD_add_response_header(x->state->response, name, value);
}

static ssize_t read_stream(void *context, uint64_t at, char *out, size_t most) {
    struct http_state *s = context;
    (void)at;
    size_t size = s->out.size - s->sent;
    if (s->gone) return MHD_CONTENT_READER_END_WITH_ERROR;
    if (!size && s->ended) return MHD_CONTENT_READER_END_OF_STREAM;
    if (!size) {
        suspend(s);
        return 0;
    }
    if (size > most) size = most;
    memcpy(out, s->out.data + s->sent, size);
    s->sent += size;
    if (s->sent == s->out.size) s->out.size = s->sent = 0;
    set_deadline(s->peer);
    return (ssize_t)size;
}

void http_stream(struct exchange *x, const char *type) {
    begin_reply(x->state, MHD_HTTP_OK,
                MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, x->state, NULL), type);
    http_add_header(x, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    wake(x->state);
}

// A long one goes in blocks: the library tells of each that the client goes on reading.
void http_reply(struct exchange *x, int status, const char *type, const char *body, size_t size) {
    struct http_state *s = x->state;
    struct MHD_Response *response;
    x->owner = NULL;
    if (size > BLOCK) {
        bytes_add(&s->out, body, size);
        s->ended = true;
        response = MHD_create_response_from_callback(size, BLOCK, read_stream, s, NULL);
    } else {
        response = MHD_create_response_from_buffer(size, (void *)body, MHD_RESPMEM_MUST_COPY);
    }
    begin_reply(s, status, response, type);
    wake(s);
}

// Whoever does not read loses the connection in the next turn.
void http_write(struct exchange *x, const char *data, size_t size) {
    struct http_state *s = x->state;
    bytes_add(&s->out, data, size);
    wake(s);
    if (s->out.size - s->sent > HTTP_UNREAD_BYTES) s->peer->deadline = 1;
}

void http_end(struct exchange *x) {
    x->owner = NULL;
    x->state->ended = true;
    wake(x->state);
}

// ---- requests ----

static struct peer *peer_of(struct MHD_Connection *c) {
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

struct header_search {
    const char *name, *value;
    int count;
};

static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct header_search *search = context;
    (void)kind;
    if (!strcasecmp(name, search->name)) search->count++, search->value = value ? value : "";
    return MHD_YES;
}

static struct header_search find_header(const struct exchange *x, const char *name) {
    struct header_search search = {.name = name};
    MHD_get_connection_values(x->state->peer->connection, MHD_HEADER_KIND, look_at_header, &search);
    return search;
}

const char *http_header(const struct exchange *x, const char *name) {
    const struct header_search search = find_header(x, name);
    return search.count == 1 ? search.value : NULL;
}

int http_header_count(const struct exchange *x, const char *name) { return find_header(x, name).count; }

void http_address(const struct exchange *x, char out[HTTP_ADDRESS]) {
    struct MHD_Connection *c = x->state->peer->connection;
    const struct sockaddr *a = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    const socklen_t size = a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo(a, size, out, HTTP_ADDRESS, NULL, 0, NI_NUMERICHOST)) *out = 0;
}

void http_each(const struct http *h, void (*visit)(void *context, struct exchange *x), void *context) {
    for (const struct peer *p = h->peers; p; p = p->next)
        if (p->state && p->state->exchange.owner) visit(context, &p->state->exchange);
}

static enum MHD_Result begin_request(struct peer *p, const char *path, const char *method, void **state) {
    struct http_state *s = xcalloc(1, sizeof *s);
    *s = (struct http_state){.peer = p, .exchange = {.method = method, .path = path, .body = "", .state = s}};
    s->exchange.number = ++p->http->exchanges;
    if (p->served) set_deadline(p); // what was left of it had passed while the connection was idle
    *state = p->state = s;
    p->http->params.admit(p->http->params.context, &s->exchange);
    if (!s->response) return MHD_YES;
    return MHD_queue_response(p->connection, (unsigned)s->status, s->response);
}

static void take_body(struct http_state *s, const char *data, size_t size) {
    struct http *h = s->peer->http;
    if (s->body.size + size > HTTP_BODY_BYTES) s->exchange.body_status = 413;
    else if (h->body_bytes + size > HTTP_BODIES_BYTES) s->exchange.body_status = 503;
    if (s->exchange.body_status) return;
    h->body_bytes += size;
    bytes_add(&s->body, data, size);
}

static void handle(struct http_state *s) {
    const struct http_params *params = &s->peer->http->params;
    s->exchange.size = s->body.size;
    bytes_add(&s->body, "", 1);
    s->exchange.body = s->body.data;
    s->exchange.complete = clock_ns();
    params->handle(params->context, &s->exchange);
    if (!s->response && s->peer->left) tell_gone(s);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *size, void **state) {
    struct http_state *s = *state;
    (void)context, (void)version;
    if (!s) return begin_request(peer_of(c), path, method, state);
    if (*size) {
        take_body(s, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (!s->exchange.complete) handle(s);
    if (s->gone) return MHD_NO;
    if (!s->response) {
        suspend(s);
        return MHD_YES;
    }
    set_deadline(s->peer);
    return MHD_queue_response(c, (unsigned)s->status, s->response);
}

static void on_completed(void *context, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode code) {
    struct http_state *s = *state;
    (void)context, (void)c, (void)code;
    if (!s) return;
    tell_gone(s);
    s->peer->http->body_bytes -= s->body.size - !!s->exchange.complete; // its NUL is none
    if (s->response) MHD_destroy_response(s->response);
    s->peer->state = NULL;
    s->peer->served = true;
    set_deadline(s->peer);
    bytes_free(&s->body), bytes_free(&s->out);
    free(s);
    *state = NULL;
}

// ---- connections ----

static void *peer_new(struct http *h, struct MHD_Connection *c) {
    struct peer *p = xcalloc(1, sizeof *p);
    *p = (struct peer){.http = h, .connection = c, .next = h->peers, .link = &h->peers};
    p->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (p->next) p->next->link = &p->next;
    h->peers = p;
    set_deadline(p);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = p};
    if (epoll_ctl(h->fd, EPOLL_CTL_ADD, p->fd, &event)) log_error("server", "epoll: %s", strerror(errno));
    return p;
}

static void peer_free(struct peer *p) {
    epoll_ctl(p->http->fd, EPOLL_CTL_DEL, p->fd, NULL);
    if (p->next) p->next->link = p->link;
    *p->link = p->next;
    free(p);
}

static void on_connection(void *context, struct MHD_Connection *c, void **socket_context,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) *socket_context = peer_new(context, c);
    else peer_free(*socket_context);
}

static void peer_left(struct peer *p) {
    struct http_state *s = p->state;
    p->left = true;
    if (!s || !s->exchange.complete || s->ended || (s->response && !s->exchange.owner)) return;
    tell_gone(s);
    wake(s);
}

static void expire(struct peer *p) {
    p->deadline = 0;
    shutdown(p->fd, SHUT_RDWR);
    peer_left(p);
}

// ---- turns ----

int http_fd(const struct http *h) { return h->fd; }

uint64_t http_due(struct http *h) {
    MHD_UNSIGNED_LONG_LONG ms;
    uint64_t due = MHD_get_timeout(h->daemon, &ms) == MHD_YES ? clock_ns() + ms * 1000000 : 0;
    for (const struct peer *p = h->peers; p; p = p->next)
        if (p->deadline && (!due || p->deadline < due)) due = p->deadline;
    return due;
}

// The library takes one piece of each request at a time, and says when it could go on at once: not for ever, as it says
// so too of a connection whose buffer is full.
static void run(struct http *h) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    for (int i = 0; i < RUNS && !ms; i++) {
        MHD_run(h->daemon);
        if (MHD_get_timeout(h->daemon, &ms) != MHD_YES) return;
    }
}

// MHD runs last: it alone frees peers.
void http_turn(struct http *h) {
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(h->fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr) peer_left(events[i].data.ptr);
    const uint64_t now = clock_ns();
    for (struct peer *p = h->peers; p; p = p->next)
        if (p->deadline && p->deadline <= now) expire(p);
    run(h);
}

// ---- listening ----

static void log_library(void *context, const char *format, va_list arguments) {
    char text[512];
    (void)context;
    vsnprintf(text, sizeof text, format, arguments);
    text[strcspn(text, "\n")] = 0;
    log_debug("server", "%s", text);
}

static int listen_at(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    const int yes = 1;
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, SOMAXCONN)) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int listen_on(const char *host, int port, struct status *st) {
    char service[PORT_TEXT];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    snprintf(service, sizeof service, "%d", port);
    const int failed = getaddrinfo(host, service, &hints, &found);
    if (failed) {
        status_fail(st, STATUS_USAGE, "host '%s': %s", host, gai_strerror(failed));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) fd = listen_at(a);
    if (fd < 0) status_fail(st, STATUS_IO, "%s, port %d: %s", host, port, strerror(errno));
    freeaddrinfo(found);
    return fd;
}

static bool start(struct http *h, struct status *st) {
    h->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, h,
                         MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL, MHD_OPTION_LISTEN_SOCKET, h->listen_fd,
                         MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)HTTP_HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
    if (!h->daemon) return status_fail(st, STATUS_IO, "libmicrohttpd does not start");
    h->listen_fd = -1; // the daemon's
    const int fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct epoll_event event = {.events = EPOLLIN};
    return !epoll_ctl(h->fd, EPOLL_CTL_ADD, fd, &event) || status_fail(st, STATUS_IO, "epoll: %s", strerror(errno));
}

struct http *http_open(const struct http_params *p, struct status *st) {
    struct http *h = xcalloc(1, sizeof *h);
    *h = (struct http){.params = *p, .listen_fd = listen_on(p->host, p->port, st), .fd = epoll_create1(EPOLL_CLOEXEC)};
    if (h->fd < 0) status_fail(st, STATUS_IO, "epoll: %s", strerror(errno));
    if (h->listen_fd >= 0 && h->fd >= 0 && start(h, st)) return h;
    http_close(h);
    return NULL;
}

int http_port(const struct http *h) { return MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT)->port; }

// The library does not stop while a connection is suspended.
void http_close(struct http *h) {
    if (!h) return;
    for (struct peer *p = h->peers; p; p = p->next) {
        if (p->state) tell_gone(p->state), wake(p->state);
    }
    if (h->daemon) MHD_run(h->daemon), MHD_stop_daemon(h->daemon);
    if (h->listen_fd >= 0) close(h->listen_fd);
    if (h->fd >= 0) close(h->fd);
    free(h);
}
