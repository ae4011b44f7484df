#include "engine/base/system.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

// As printed by ulimit.
static const char *limit_text(int resource, char out[24]) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
    snprintf(out, 24, "%llu", (unsigned long long)limit.rlim_cur);
    return out;
}

bool system_start_thread(pthread_t *thread, void *(*main)(void *), void *argument, struct status *st) {
    char limit[24];
    const int error = pthread_create(thread, NULL, main, argument);
    if (!error) return true;
    return status_fail(st, STATUS_LIMIT, "cannot start a thread: %s (ulimit -u is %s; a control group may allow fewer)",
                       strerror(error), limit_text(RLIMIT_NPROC, limit));
}

int system_open_eventfd(struct status *st) {
    char limit[24];
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        status_fail(st, STATUS_LIMIT, "cannot open an eventfd: %s (ulimit -n is %s)", strerror(errno),
                    limit_text(RLIMIT_NOFILE, limit));
    return fd;
}
