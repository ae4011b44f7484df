// Server: answers other programs over HTTP, by the APIs that they know (routes.c), from the engine of a model, of
// which it is one client among others; they may ask for any model of this machine. Nothing of a request is kept, and
// none of its words reaches the file system.
//
// One thread has all of it, whoever calls server_run; what takes long happens in the engine.
#ifndef CONFAB_SERVER_SERVER_H
#define CONFAB_SERVER_SERVER_H

#include "app/base/settings.h"
#include "app/models/model_host.h"

struct server_params {
    const struct settings *settings;   // borrowed, as all that follows
    struct model_host *host;           // with a model that is loaded
    const struct model_opener *opener; // of models that are only described
    const char *name;                  // of the model, for clients
};

struct server;
struct server *server_open(const struct server_params *p, struct status *st);
void server_close(struct server *s); // what is being answered is cut off

int server_port(const struct server *s);
void server_run(struct server *s);                  // until it is stopped
void server_turn(struct server *s, int timeout_ms); // waits for something to do, and does it
void server_stop(struct server *s);                 // from any thread, and from signal handlers

#endif
