#include "engine/base/machine_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number after `key` in a small file of the system; 0 when there is none.
static uint64_t system_number(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t value = 0;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        if ((found = !strncmp(line, key, strlen(key)))) value = strtoull(line + strlen(key), NULL, 10);
    if (f) fclose(f);
    return value;
}

uint64_t machine_memory_free(void) {
    uint64_t machine = system_number("/proc/meminfo", "MemAvailable:") * 1024;
    uint64_t limit = system_number("/sys/fs/cgroup/memory.max", ""); // "max" reads as 0: no limit
    uint64_t used = system_number("/sys/fs/cgroup/memory.current", "");
    uint64_t left = limit > used ? limit - used : 0;
    return limit && left < machine ? left : machine;
}
