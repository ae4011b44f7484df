// Machine memory: how much is free.
#ifndef CONFAB_BASE_MACHINE_MEMORY_H
#define CONFAB_BASE_MACHINE_MEMORY_H

#include <stdint.h>

// Bytes that this process can still use: of the machine's memory, and of its control group if limited. 0: unknown.
uint64_t machine_memory_free(void);
// Bytes that the control group in `folder` can still use, at least 1; UINT64_MAX if not limited.
uint64_t machine_memory_group_free(const char *folder);

#endif
