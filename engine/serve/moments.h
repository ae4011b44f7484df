// Moments: of each quarter of a second the slowest token, and what it waited for.
//
// The engine's thread writes. The machine is asked once a quarter, and only while tokens come; what it says of the last
// one is known when the next begins.
#ifndef CONFAB_SERVE_MOMENTS_H
#define CONFAB_SERVE_MOMENTS_H

#include "engine/base/machine_load.h"
#include "engine/metrics.h"

struct moments {
    struct latency_moment ring[METRICS_MOMENTS]; // by number
    int64_t last;                                // its number
    struct machine_load begun, from;             // when it began; from when on it counts
};

// A step ended at `time`; slowest: of its tokens, without number and machine. Seconds of 0: it had none that count.
void moments_add(struct moments *m, const struct latency_moment *slowest, double time);

#endif
