#include "app/session/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"

enum { SOURCES = 16 };

struct loop {
    struct loop_source sources[SOURCES];
    int count;
};

struct loop *loop_open(void) {
    return xcalloc(1, sizeof(struct loop));
}
void loop_close(struct loop *l) { free(l); }

void loop_add(struct loop *l, const struct loop_source *source) {
    if (l->count == SOURCES) panic("too many sources of events");
    l->sources[l->count++] = *source;
}

static int until(uint64_t deadline, uint64_t now) { // in ms, rounded up, so that it has come when poll returns
    const uint64_t ms = deadline <= now ? 0 : (deadline - now) / 1000000 + 1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

void loop_turn(struct loop *l, int timeout_ms) {
    struct pollfd fds[SOURCES];
    uint64_t now = clock_ns();
    for (int i = 0; i < l->count; i++) {
        const struct loop_source *s = &l->sources[i];
        uint64_t due = s->due ? s->due(s->context) : 0;
        if (due && (timeout_ms < 0 || until(due, now) < timeout_ms)) timeout_ms = until(due, now);
        fds[i] = (struct pollfd){.fd = s->fd ? s->fd(s->context) : -1, .events = s->events};
    }
    int ready = poll(fds, (nfds_t)l->count, timeout_ms);
    if (ready < 0 && errno != EINTR) panic("poll: %s", strerror(errno));
    for (int i = 0; i < l->count; i++) l->sources[i].turn(l->sources[i].context, ready > 0 && fds[i].revents);
}
