// Server: answers other programs over HTTP, by the APIs that they know (routes.c), from the engines of any models of
// this machine: it loads what they ask for. Nothing of a request is kept, and none of its words reaches the file
// system.
//
// One thread has all of it, whoever calls server_run; what takes long happens in engines, or on threads of its own.
#ifndef CONFAB_SERVER_SERVER_H
#define CONFAB_SERVER_SERVER_H

#include <stdatomic.h>

#include "app/base/settings.h"
#include "app/models/model.h"
#include "app/session/loop.h"

struct server_params {
    const struct settings *settings; // borrowed, and unchanged until it is closed
    const struct model_opener *opener;
    const atomic_bool *hurries; // while somebody waits for the end of a turn, requests are refused; NULL: nobody does
};

struct server;
struct server *server_open(const struct server_params *p, struct status *st); // without a model
// Loads the one that the settings name, which answers where a request names none, and waits for it. name: of it, for
// clients. After a failure it may be tried again.
bool server_load(struct server *s, const char *name, struct status *st);
void server_close(struct server *s); // what is being answered is cut off

int server_port(const struct server *s);
void server_run(struct server *s);                  // until it is stopped
void server_turn(struct server *s, int timeout_ms); // waits for something to do, and does it
void server_add(struct server *s, const struct loop_source *source); // copied; served last in each turn
void server_stop(struct server *s);                 // from any thread, and from signal handlers

// "127.0.0.1:8080": where the settings have it listen, at this port. The caller frees.
char *server_address(const struct settings *s, int port);
// Why that may be unwise; NULL: nothing. The caller frees.
char *server_warning(const struct settings *s);

#endif
