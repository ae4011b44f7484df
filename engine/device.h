// Devices: what models can be computed on.
#ifndef CONFAB_DEVICE_H
#define CONFAB_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
