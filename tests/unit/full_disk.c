#include "tests/unit/full_disk.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct rlimit before;
static void (*handler_before)(int);

void full_disk_begin(size_t bytes) {
    if (getrlimit(RLIMIT_FSIZE, &before)) abort();
    handler_before = signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, before.rlim_max})) abort();
}

void full_disk_end(void) {
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler_before);
}
