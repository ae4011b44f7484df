// Process memory: how much of this process is in memory.
#ifndef CONFAB_BASE_PROCESS_MEMORY_H
#define CONFAB_BASE_PROCESS_MEMORY_H

#include <stdint.h>

uint64_t process_memory_resident(void); // bytes, those of mapped files included; 0: not known

#endif
