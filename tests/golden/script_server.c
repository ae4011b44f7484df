#include "tests/golden/script_server.h"

#include "engine/base/panic.h"
#include "tests/unit/told_server.h"

void script_server_refuse(const char *problem) { told_server.problem = xstrdup(problem); }

bool script_server_stopped(void) {
    const bool stops = told_server.stops;
    if (stops) told_server_stopped();
    return stops;
}

static int place_of(uint64_t number) {
    const struct server_snapshot *all = &told_server.report.clients;
    int place = 0;
    while (place < all->n_listed && all->clients[place].number != number) place++;
    return place;
}

bool script_server_client(const struct server_client *c) {
    struct server_snapshot all = told_server.report.clients;
    const int place = place_of(c->number), fresh = place == all.n_listed;
    if (place == SNAPSHOT_CLIENTS) return false;
    all.clients[place] = *c;
    told_server_clients(all.clients, all.n_listed + fresh, all.n_clients + fresh);
    return true;
}

bool script_server_gone(uint64_t number) {
    struct server_snapshot all = told_server.report.clients;
    const int place = place_of(number), behind = all.n_listed - place - 1;
    if (behind < 0) return false;
    memmove(&all.clients[place], &all.clients[place + 1], (size_t)behind * sizeof *all.clients);
    told_server_clients(all.clients, all.n_listed - 1, all.n_clients - 1);
    return true;
}

void script_server_unlisted(int count) {
    const struct server_snapshot all = told_server.report.clients;
    told_server_clients(all.clients, all.n_listed, all.n_listed + count);
}

uint64_t script_server_cancelled(void) { return told_server.cancelled; }
