#include "engine/base/process_memory.h"

#include <stdio.h>
#include <unistd.h>

uint64_t process_memory_resident(void) {
    unsigned long long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu %llu", &all, &resident) != 2) resident = 0;
    if (f) fclose(f);
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? resident * (uint64_t)page : 0;
}
