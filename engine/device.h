// Devices: what models can be computed on.
#ifndef CONFAB_DEVICE_H
#define CONFAB_DEVICE_H

#include <stdint.h>

struct memory_heap {
    char name[24];
    uint64_t bytes, free; // 0: unknown
};

struct device {
    char name[16];         // as --device takes it: "cpu"
    char description[128]; // such as the processor's name and instruction set
    struct memory_heap heaps[4];
    int n_heaps;
};

enum { DEVICE_MOST = 32 };

// All devices of all backends, into out [DEVICE_MOST]; returns how many. The first is used where none is asked for.
int device_list(struct device *out);

#endif
