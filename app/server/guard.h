// Guard: which requests are served at all. A page of some web site must not reach a server on this machine through the
// browser, under a name of its own (Host) or from a place of its own (Origin); and where there are keys, a request
// shows one.
#ifndef CONFAB_SERVER_GUARD_H
#define CONFAB_SERVER_GUARD_H

#include "app/base/settings.h"
#include "engine/base/status.h"

struct guard {
    const struct text_list *hosts, *origins; // allowed beside one's own; borrowed
    const char *host;                        // that is listened on; borrowed
    bool open;                               // to other machines
    struct text_list keys;                   // none: nobody is asked for one
};

// keys_path: a file with a key on each line, which nobody but its owner may read; NULL: no keys.
bool guard_open(struct guard *g, const char *keys_path, struct status *st);
void guard_close(struct guard *g);

bool guard_allows_host(const struct guard *g, const char *host);
// host: of the request; a page from there is at home.
bool guard_allows_origin(const struct guard *g, const char *origin, const char *host);
bool guard_allows_key(const struct guard *g, const char *authorization, const char *key);

#endif
