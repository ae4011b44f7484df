#include "engine/base/machine_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number after `key` in a system file; 0 if missing.
static uint64_t system_number(const char *folder, const char *name, const char *key) {
    char path[256], line[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    uint64_t value = 0;
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        if ((found = !strncmp(line, key, strlen(key)))) value = strtoull(line + strlen(key), NULL, 10);
    if (f) fclose(f);
    return value;
}

uint64_t machine_memory_group_free(const char *folder) {
    uint64_t limit = system_number(folder, "memory.max", ""); // "max" reads as 0: unlimited
    uint64_t used = system_number(folder, "memory.current", "");
    uint64_t cached =
        system_number(folder, "memory.stat", "inactive_file ") + system_number(folder, "memory.stat", "active_file ");
    used = used > cached ? used - cached : 0; // page cache is reclaimed on demand
    return !limit ? UINT64_MAX : limit > used ? limit - used : 1;
}

uint64_t machine_memory_free(void) {
    uint64_t machine = system_number("/proc", "meminfo", "MemAvailable:") * 1024;
    uint64_t group = machine_memory_group_free("/sys/fs/cgroup");
    return group < machine ? group : machine;
}
