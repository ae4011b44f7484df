#include "engine/base/processor.h"

#include <stdio.h>
#include <string.h>

bool processor_name(char *out, size_t size) {
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    *out = 0;
    while (f && !*out && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !value) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, size, "%s", value + 1 + strspn(value + 1, " "));
    }
    if (f) fclose(f);
    return *out;
}
