// Clocks. Measuring and waiting use the monotonic clock; tests can freeze it.
#ifndef CONFAB_BASE_CLOCK_H
#define CONFAB_BASE_CLOCK_H

#include <stdint.h>

#define NANOSECONDS 1000000000ull // of a second

uint64_t clock_ns(void); // monotonic, from an arbitrary start
static inline double clock_seconds(void) { return (double)clock_ns() * 1e-9; }
uint64_t clock_wall_ns(void);   // since 1970
void clock_freeze(uint64_t ns); // both clocks return ns from now on (for tests; not thread-safe)

#endif
