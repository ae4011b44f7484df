// Processor: the name of this machine's processor.
#ifndef CONFAB_BASE_PROCESSOR_H
#define CONFAB_BASE_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

// One line, truncated to size; false and "" if unknown.
bool processor_name(char *out, size_t size);

#endif
