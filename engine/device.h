// Devices: what models can be computed on.
#ifndef CONFAB_DEVICE_H
#define CONFAB_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/status.h"

struct memory_heap {
    char name[24];
    uint64_t bytes, free; // 0: unknown
};

struct device {
    char name[16];         // as --device takes it: "cpu"
    char description[128]; // such as the processor's name and instruction set
    bool emulated;         // by the processor, as Mesa's lavapipe is: never used unasked
    uint64_t own_free;     // bytes free of the memory that only it has, where models lie; 0: they lie in the machine's
    struct memory_heap heaps[4];
    int n_heaps;
};

enum { DEVICE_MOST = 32 };

// All devices of all backends, into out [DEVICE_MOST]; returns how many. The first is the processor.
int device_list(struct device *out);

// What runs on the processor itself, which is no device of its own.
static inline bool device_is_processor(const char *name) { return !strcmp(name, "cpu"); }

struct device_limits {       // a second, at most
    double read_bytes;       // from its memory
    double float_operations; // multiplies and adds, of 32-bit floats
    double int8_operations;  // the same of bytes, in dot products
};

#define DEVICE_LIMITS_BYTES (256u << 20) // of the device's memory, while it is measured: more than any cache holds

// Measures a device in some tens of milliseconds; right only while nothing else runs on it, which waits meanwhile. Any
// thread. False also for the processor: nothing here measures that.
bool device_limits(const char *name, struct device_limits *out, struct status *st);

#endif
