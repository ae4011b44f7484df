// Machine memory: how much of it there is to take.
#ifndef CONFAB_BASE_MACHINE_MEMORY_H
#define CONFAB_BASE_MACHINE_MEMORY_H

#include <stdint.h>

// Bytes that this process may still use: of the machine's memory, and of its control group's where that is bounded.
// 0: not known.
uint64_t machine_memory_free(void);
// Bytes that the control group described in `folder` may still use, at least 1; UINT64_MAX: it is not bounded.
uint64_t machine_memory_group_free(const char *folder);

#endif
