#include "engine/base/machine_use.h"

#include <glob.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "engine/base/panic.h"

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

// cpu  user nice system idle iowait irq softirq steal, in ticks
static void add_processors(struct machine_use *use) {
    enum { FIELDS = 8, IDLE = 3, IOWAIT = 4 };
    unsigned long long t[FIELDS];
    const double second = (double)sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "re");
    const int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
                             &t[6], &t[7])
                    : 0;
    if (f) fclose(f);
    if (n != FIELDS || second <= 0) return;
    use->all = 0;
    for (int i = 0; i < FIELDS; i++) use->all += (double)t[i] / second;
    use->busy = use->all - (double)(t[IDLE] + t[IOWAIT]) / second;
}

static double read_joules(const char *path) {
    double microjoules;
    FILE *f = fopen(path, "re");
    const bool read = f && fscanf(f, "%lf", &microjoules) == 1;
    if (f) fclose(f);
    return read ? microjoules * 1e-6 : NAN;
}

// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it.
double machine_use_joules(const char *folder) {
    double sum = NAN;
    glob_t found;
    char *pattern = xasprintf("%s/intel-rapl:[0-9]/energy_uj", folder);
    if (!glob(pattern, 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const double joules = read_joules(found.gl_pathv[i]);
            if (!isnan(joules)) sum = isnan(sum) ? joules : sum + joules;
        }
        globfree(&found);
    }
    free(pattern);
    return sum;
}

struct machine_use machine_use_now(void) {
    struct machine_use use = {NAN, NAN, NAN, machine_use_joules("/sys/class/powercap")};
    struct rusage usage;
    if (!getrusage(RUSAGE_SELF, &usage)) use.own = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    add_processors(&use);
    return use;
}
