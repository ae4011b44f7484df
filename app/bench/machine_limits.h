// Machine limits: measures how fast this machine, or one of its devices, computes and reads memory at most, with loops
// that do nothing else.
// Benchmarks show their results as a share of these limits. The memory of a shared machine may be half as fast a minute
// later, so the limits are measured right before and after each result: a probe stays open and takes short samples.
#ifndef CONFAB_APP_MACHINE_LIMITS_H
#define CONFAB_APP_MACHINE_LIMITS_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/status.h"

struct machine_limits {
    char device[16];         // "vulkan0"; "": the processor
    int n_threads;           // of the processor
    const char *int8_name;   // "AVX-512 VNNI", or "dot products" of a device; "": no loop for this processor
    double int8_operations;  // per second, counting multiplies and adds; 0 if int8_name is ""
    double float_operations; // per second, likewise, of 32-bit floats
    double read_bytes;       // per second, from memory, in huge pages where possible; 0: unknown
    double cache_bytes;      // of the last-level cache, which may be shared with others; 0: unknown
};

// Data that is read over and over stays in the last-level cache if it fits into CACHE_PART of it; others use it too. Of
// larger data some may still be in the cache: that is assumed if it is read CACHE_SHARE times as fast as memory allows.
#define CACHE_PART  0.5
#define CACHE_SHARE 1.25
double machine_cache_bytes(void); // of the last-level cache; 0: unknown
// For work that reads so many bytes over and over: how many times as fast as memory it may be before its data must come
// from the cache. 0: all of it does.
double machine_cache_share(double bytes, double cache_bytes);

// Operations per second if this share of them, 0 to 1, is on floats and the rest on 8-bit integers, which are computed
// as floats where there is no rate for them; 0: unknown.
double machine_limits_operations(const struct machine_limits *l, double float_share);
// Raises each rate to the other's if that is higher.
void machine_limits_raise(struct machine_limits *l, const struct machine_limits *other);

// Holds threads, which sleep between samples, and memory larger than the caches.
struct machine_limits_probe;

// Takes about a tenth of a second. NULL: not enough memory or threads. Another thread may set *stop (or NULL): within a
// millisecond opening then fails with STATUS_CANCELLED or a sample ends, and the last measurement is invalid.
struct machine_limits_probe *machine_limits_open(int n_threads, const atomic_bool *stop, struct status *st);
// Of a device, as engine/device.h names it; of the processor as above. It holds nothing between samples.
struct machine_limits_probe *machine_limits_open_on(const char *device, int n_threads, const atomic_bool *stop,
                                                    struct status *st);
void machine_limits_close(struct machine_limits_probe *p);            // may be NULL
uint64_t machine_limits_memory(const struct machine_limits_probe *p); // bytes it takes at most

// Measures all threads together for about so many seconds, most of them reading memory; 0.03 give stable rates. A
// device takes as long as it needs; what cannot be measured of it is 0. Blocks.
struct machine_limits machine_limits_sample(struct machine_limits_probe *p, double seconds);
// The best rates of all samples so far.
struct machine_limits machine_limits_best(const struct machine_limits_probe *p);

// Opens a probe, samples for about a second, closes it: returns the best rates. False: not enough memory or threads.
bool machine_limits_measure(struct machine_limits *out, int n_threads, struct status *st);

#endif
