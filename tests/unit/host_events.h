// What the tests of the model host wait for. Only they link the host, so it is no helper that every test has.
#ifndef CONFAB_TESTS_HOST_EVENTS_H
#define CONFAB_TESTS_HOST_EVENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "app/models/model_host.h"

// Returns the next event other than progress; fails after a minute without one.
static inline enum model_host_event next_event(struct model_host *h, struct status *st) {
    for (int i = 0; i < 600; i++) {
        struct pollfd fd = {.fd = model_host_fd(h), .events = POLLIN};
        enum model_host_event event = model_host_poll(h, st);
        if (event != HOST_NOTHING && event != HOST_PROGRESS) return event;
        if (event == HOST_NOTHING) poll(&fd, 1, 100);
    }
    fail_msg("no event");
    return HOST_NOTHING;
}

#endif
