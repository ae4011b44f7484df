#include "engine/base/clock.h"

#include <time.h>

static _Atomic uint64_t frozen;

uint64_t clock_ns(void) {
    if (frozen) return frozen;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void clock_freeze(uint64_t ns) { frozen = ns; }
