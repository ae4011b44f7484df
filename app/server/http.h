// HTTP: listens, and has exchanges of requests and replies with its clients, over libmicrohttpd.
//
//   headers ──► admit ──► body ──► handle ──► a whole reply, or a stream that is written to until it ends
//                └──► refused                 └──► gone: the client left before the end
//
// All of it happens on one thread, in http_turn, which never waits; clients cannot make it: what they may send, how
// long they may take for it, and what they may leave unread is limited, and so is their number.
#ifndef CONFAB_SERVER_HTTP_H
#define CONFAB_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define HTTP_HEADER_BYTES (32u << 10)
#define HTTP_BODY_BYTES   (4u << 20)
#define HTTP_BODIES_BYTES (64u << 20) // of all requests
#define HTTP_UNREAD_BYTES (1u << 20)  // of a stream that a client is slow to read
#define HTTP_CONNECTIONS  768
#define HTTP_SECONDS      30 // until a request is complete, and between two reads of a reply

struct exchange {
    uint64_t number;           // of those that there were, from 1 on
    const char *method, *path; // of the request, without its query
    const char *body;          // NUL-terminated
    size_t size;
    int body_status; // of HTTP, why there is none: 413 or, where that of all requests is too much, 503; 0: it is there
    uint64_t complete;         // clock_ns when all of it was there; 0: it is not yet
    const char *origin;        // that may read the reply, set by `admit`; NULL: none is named
    void *owner;               // of whoever replies later; NULL: nobody
    void (*gone)(void *owner); // called, if the client leaves before that, when x is about to be no longer valid
    struct http_state *state;
};

struct http_params {
    const char *host;
    int port;                                          // 0: any that is free
    void (*admit)(void *context, struct exchange *x);  // may reply already
    void (*handle)(void *context, struct exchange *x); // replies now or later
    void *context;
};

struct http;
struct http *http_open(const struct http_params *p, struct status *st);
void http_close(struct http *h); // all clients are gone

int http_port(const struct http *h);
int http_fd(const struct http *h); // readable when there is something to do
uint64_t http_due(struct http *h); // clock_ns at which there is; 0: never
void http_turn(struct http *h);

// The value of a header of the request; NULL: it has none, or several.
const char *http_header(const struct exchange *x, const char *name);
int http_header_count(const struct exchange *x, const char *name);
#define HTTP_ADDRESS 48
void http_address(const struct exchange *x, char out[HTTP_ADDRESS]); // the client's, without its port
// Calls `visit` with every exchange that somebody replies to later; it must not reply.
void http_each(const struct http *h, void (*visit)(void *context, struct exchange *x), void *context);

// A whole reply, copied.
void http_reply(struct exchange *x, int status, const char *type, const char *body, size_t size);
// A reply that is written bit by bit; after http_end x is no longer valid.
void http_stream(struct exchange *x, const char *type);
void http_write(struct exchange *x, const char *data, size_t size);
void http_end(struct exchange *x);
// Of a reply that has begun, before anything else happens.
void http_add_header(struct exchange *x, const char *name, const char *value);

#endif
