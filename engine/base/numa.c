#include "engine/base/numa.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

// Parses a list like "0-15,32-47" of a file, up to the first error.
static void read_processors(const char *path, cpu_set_t *out) {
    FILE *f = fopen(path, "r");
    int first, last, separator = ',';
    CPU_ZERO(out);
    if (!f) return;
    while (separator == ',' && fscanf(f, "%d", &first) == 1 && first >= 0) {
        last = first;
        if ((separator = getc(f)) == '-') {
            if (fscanf(f, "%d", &last) != 1) break;
            separator = getc(f);
        }
        for (int i = first; i <= last && i < CPU_SETSIZE; i++) CPU_SET(i, out);
    }
    fclose(f);
}

void numa_read(struct numa *out, const char *folder, const cpu_set_t *allowed) {
    out->n_nodes = 0;
    for (int id = 0; id < NUMA_MAX_NODES; id++) {
        char path[512];
        cpu_set_t all, *own = &out->processors[out->n_nodes];
        snprintf(path, sizeof path, "%s/node%d/cpulist", folder, id);
        read_processors(path, &all);
        CPU_AND(own, &all, allowed);
        if (CPU_COUNT(own)) out->ids[out->n_nodes++] = id;
    }
}

static struct numa machine;

static void read_machine(void) {
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof allowed, &allowed)) numa_read(&machine, "/sys/devices/system/node", &allowed);
}

const struct numa *numa_machine(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_machine);
    return &machine;
}

const cpu_set_t *numa_processors(const struct numa *numa, int i, int n) {
    int total = 0, before = 0, node = 0;
    if (numa->n_nodes < 2) return NULL;
    for (int k = 0; k < numa->n_nodes; k++) total += CPU_COUNT(&numa->processors[k]);
    const int processor = (int)((2 * (int64_t)i + 1) * total / (2 * (int64_t)n)); // the middle of the worker's share
    while (processor >= before + CPU_COUNT(&numa->processors[node])) before += CPU_COUNT(&numa->processors[node++]);
    return &numa->processors[node];
}

bool numa_spread(const struct numa *numa, void *memory, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)memory + page - 1) & ~(page - 1),
                    end = ((uintptr_t)memory + size) & ~(page - 1);
    unsigned long nodes[NUMA_MAX_NODES / (8 * sizeof(unsigned long))] = {0};
    if (numa->n_nodes < 2) return true;
    for (int i = 0; i < numa->n_nodes; i++)
        nodes[(size_t)numa->ids[i] / (8 * sizeof *nodes)] |= 1ul << ((size_t)numa->ids[i] % (8 * sizeof *nodes));
    // The kernel uses one bit less than maxnode.
    return begin >= end || !syscall(SYS_mbind, begin, end - begin, MPOL_INTERLEAVE, nodes, NUMA_MAX_NODES + 1, 0);
}
