// Input in memory of its own.
#ifndef CONFAB_TESTS_EXACT_COPY_H
#define CONFAB_TESTS_EXACT_COPY_H

#include <stddef.h>

// A copy exactly as long, so that a sanitizer sees a byte read behind it, and aligned as a mapping is. The caller
// frees.
void *exact_copy(const void *bytes, size_t size);

#endif
