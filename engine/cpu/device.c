// The processor as a device, and its memory.
#include <stdio.h>
#include <unistd.h>

#include "engine/base/machine_memory.h"
#include "engine/base/processor.h"
#include "engine/cpu/cpu.h"

int cpu_devices(struct device *out, int most) {
    char name[96];
    if (most < 1) return 0;
    if (!processor_name(name, sizeof name)) snprintf(name, sizeof name, "processor");
    *out = (struct device){.name = "cpu"};
    snprintf(out->description, sizeof out->description, "%s, %s", name, kernels_choose()->name);
    return 1;
}

void cpu_heaps(int device, struct device *out) {
    (void)device;
    out->n_heaps = 1;
    out->heaps[0] = (struct memory_heap){.name = "memory",
                                         .bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                                         .free = machine_memory_free()};
}
