#include "engine/base/machine_load.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

// cpu  user nice system idle iowait irq softirq steal guest guest_nice, in ticks; guests are counted as users, too.
enum { FIELDS = 8, STEAL = 7 };

struct machine_load machine_load_now(void) {
    struct machine_load load = {0};
    unsigned long long ticks[FIELDS];
    const long second = sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "re");
    int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
                       &ticks[4], &ticks[5], &ticks[6], &ticks[7])
              : 0;
    if (f) fclose(f);
    if (n == FIELDS && second > 0) {
        for (int i = 0; i < FIELDS; i++) load.processors += (double)ticks[i] / (double)second;
        load.stolen = (double)ticks[STEAL] / (double)second;
    }
    struct rusage usage;
    if (!getrusage(RUSAGE_SELF, &usage)) load.faults = usage.ru_majflt, load.switches = usage.ru_nivcsw;
    return load;
}
