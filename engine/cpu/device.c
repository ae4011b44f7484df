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
    *out = (struct device){.name = "cpu", .n_heaps = 1, .heaps = {{.name = "memory"}}};
    snprintf(out->description, sizeof out->description, "%s, %s", name, kernels_choose()->name);
    out->heaps[0].bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    out->heaps[0].free = machine_memory_free();
    return 1;
}
