// NUMA nodes: places workers and memory on machines with several.
//
// Memory read by all workers is interleaved over the nodes page by page, to use the bandwidth of all, and each worker
// is bound to the processors of one node. With processors of one node only, nothing is done.
#ifndef CONFAB_BASE_NUMA_H
#define CONFAB_BASE_NUMA_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { NUMA_MAX_NODES = 64 };

struct numa {
    int n_nodes;                          // nodes with processors that this process may use
    int ids[NUMA_MAX_NODES];              // [n_nodes] ascending, < NUMA_MAX_NODES
    cpu_set_t processors[NUMA_MAX_NODES]; // [n_nodes] those processors, at least one
};

// Reads a folder like /sys/devices/system/node; unreadable nodes are ignored.
void numa_read(struct numa *out, const char *folder, const cpu_set_t *allowed);
// This machine, read on the first call.
const struct numa *numa_machine(void);
// The processors for worker i of n: neighbours share a node, and nodes get workers in proportion to their processors.
// NULL if there is only one node.
const cpu_set_t *numa_processors(const struct numa *numa, int i, int n);
// Interleaves whole pages that have not been written to; false if not possible, which affects only speed.
bool numa_spread(const struct numa *numa, void *memory, size_t size);

#endif
