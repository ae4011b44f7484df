// Memory nodes: on machines with several, each has processors that reach its memory faster than that of the others.
//
// What all workers read is spread over the nodes page by page, so that the memory of all is read at once, and each
// worker keeps to the processors of one node. Where the process may use the processors of one node only, nothing is
// done.
#ifndef CONFAB_BASE_NUMA_H
#define CONFAB_BASE_NUMA_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { NUMA_MOST_NODES = 64 };

struct numa {
    int n_nodes;                           // that have processors which this process may use
    int ids[NUMA_MOST_NODES];              // [n_nodes] ascending, < NUMA_MOST_NODES
    cpu_set_t processors[NUMA_MOST_NODES]; // [n_nodes] those processors, never none
};

// From a folder like /sys/devices/system/node; what cannot be read there does not exist.
void numa_read(struct numa *out, const char *folder, const cpu_set_t *allowed);
// This machine, as it was when first asked for.
const struct numa *numa_machine(void);
// The processors that worker 0 ≤ i < n keeps to: neighbours share a node, and nodes have workers as they have
// processors. NULL: it need not care.
const cpu_set_t *numa_processors(const struct numa *numa, int i, int n);
// Spreads whole pages that nothing was written to yet; false when the system did not do it, which changes speed only.
bool numa_spread(const struct numa *numa, void *memory, size_t size);

#endif
