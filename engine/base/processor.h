// Processor: what the system calls this machine's.
#ifndef CONFAB_BASE_PROCESSOR_H
#define CONFAB_BASE_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

// One line, cut to size; false and "" where the system does not say.
bool processor_name(char *out, size_t size);

#endif
