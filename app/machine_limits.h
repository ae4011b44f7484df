// Machine limits: what this machine can do at most, measured now with loops that do nothing else. Benchmarks show their
// figures as a share of these.
#ifndef CONFAB_APP_MACHINE_LIMITS_H
#define CONFAB_APP_MACHINE_LIMITS_H

#include "engine/base/status.h"

struct machine_limits {
    int n_threads;
    const char *int8_name;      // "AVX-512 VNNI"; "" when there is no loop for this processor
    double int8_operations;     // a second, multiplies and adds counted apart; 0 with int8_name ""
    double read_bytes;          // a second, from memory, huge pages where the system gives them
};

// Takes about a second. False when there is no memory for it.
bool machine_limits_measure(struct machine_limits *out, int n_threads, struct status *st);

#endif
