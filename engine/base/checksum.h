// Checksum: 64 bits over bytes, at the speed of memory. It finds what disks and programs damage; it keeps nobody out.
#ifndef CONFAB_BASE_CHECKSUM_H
#define CONFAB_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

// The same on every machine. Sums of other bytes, sizes or seeds are other numbers; chained by their seeds, they say
// all that went before.
uint64_t checksum(const void *data, size_t size, uint64_t seed);

#endif
