// Machine limits: what this machine can do at most, measured now with loops that do nothing else. Benchmarks show their
// figures as a share of these. A shared machine's memory may be half as fast a minute later, so a figure's limit is
// measured right before and after it: a probe stays open and takes short samples.
#ifndef CONFAB_APP_MACHINE_LIMITS_H
#define CONFAB_APP_MACHINE_LIMITS_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/status.h"

struct machine_limits {
    int n_threads;
    const char *int8_name;   // "AVX-512 VNNI"; "" when there is no loop for this processor
    double int8_operations;  // a second, multiplies and adds counted apart; 0 with int8_name ""
    double float_operations; // the same of 32-bit floats
    double read_bytes;       // a second, from memory, huge pages where the system gives them
    double cache_bytes;      // of the last cache, which may be shared with others; 0: not known
};

// What is read over and over stays in the last cache when it fits into this part of it, as others use it too. Of what is
// larger some may be found there all the same: when it comes at more than CACHE_SHARE of what memory gives.
#define CACHE_PART  0.5
#define CACHE_SHARE 1.25
double machine_cache_bytes(void); // of the last cache; 0: not known
// Of work that reads so many bytes over and over: the share of what memory gives beyond which they come from caches.
// 0: all do.
double machine_cache_share(double bytes, double cache_bytes);

// Operations a second where such a share of them, 0 to 1, is of floats and the rest of 8-bit integers; 0: not known.
double machine_limits_operations(const struct machine_limits *l, double float_share);
// Each rate becomes the other's where that is higher.
void machine_limits_raise(struct machine_limits *l, const struct machine_limits *other);

// Holds threads of its own, which sleep between samples, and memory larger than the caches.
struct machine_limits_probe;

// Takes about a tenth of a second. NULL when there is no memory for it.
struct machine_limits_probe *machine_limits_open(int n_threads, struct status *st);
// The same, but another thread may set *stop: then opening fails with STATUS_CANCELLED, a sample ends, both within a
// millisecond, and what they measured last is worth nothing.
struct machine_limits_probe *machine_limits_open_stoppable(int n_threads, const atomic_bool *stop, struct status *st);
void machine_limits_close(struct machine_limits_probe *p); // NULL is fine
uint64_t machine_limits_memory(const struct machine_limits_probe *p); // bytes it holds

// What the threads did together in about so many seconds, most of them for the memory; 0.03 gives steady figures. Blocks.
struct machine_limits machine_limits_sample(struct machine_limits_probe *p, double seconds);
// Of each figure the best of all samples so far.
struct machine_limits machine_limits_best(const struct machine_limits_probe *p);

// Opens, takes samples for about a second, closes: the best. False when there is no memory for it.
bool machine_limits_measure(struct machine_limits *out, int n_threads, struct status *st);

#endif
