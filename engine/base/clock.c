#include "engine/base/clock.h"

#include <time.h>

static _Atomic uint64_t frozen;

static uint64_t read_clock(clockid_t clock) {
    if (frozen) return frozen;
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void) { return read_clock(CLOCK_MONOTONIC); }

uint64_t clock_wall_ns(void) { return read_clock(CLOCK_REALTIME); }

void clock_freeze(uint64_t ns) { frozen = ns; }
