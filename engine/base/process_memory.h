// Process memory: resident size of this process.
#ifndef CONFAB_BASE_PROCESS_MEMORY_H
#define CONFAB_BASE_PROCESS_MEMORY_H

#include <stdint.h>

uint64_t process_memory_resident(void); // bytes, including mapped files; 0: unknown

#endif
