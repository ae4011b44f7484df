// Server: answers other programs over HTTP, by the APIs that they know (routes.c), from a model's engine, of which it
// is one client among others. Nothing of a request is kept, and none of its words reaches the file system.
//
// One thread has all of it, whoever calls server_run; what takes long happens in the engine.
#ifndef CONFAB_SERVER_SERVER_H
#define CONFAB_SERVER_SERVER_H

#include "app/base/settings.h"
#include "engine/engine.h"

struct server_params {
    const struct settings *settings; // borrowed, as all that follows
    const char *name;                // of the model, for clients
    struct model_file *file;
    struct engine *engine;
};

struct server;
struct server *server_open(const struct server_params *p, struct status *st);
void server_close(struct server *s); // what is being answered is cut off

int server_port(const struct server *s);
void server_run(struct server *s);                  // until it is stopped
void server_turn(struct server *s, int timeout_ms); // waits for something to do, and does it
void server_stop(struct server *s);                 // from any thread, and from signal handlers

#endif
