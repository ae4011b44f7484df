// Simple quantisers for tests: the nearest steps under scales taken from the largest values, nothing cleverer.
#ifndef CONFAB_TESTS_TINY_BLOCKS_H
#define CONFAB_TESTS_TINY_BLOCKS_H

#include <stddef.h>

#include "engine/format/block.h"

// Stores n values (a multiple of the format's block) at `blocks`, which has room for n / elements × bytes.
void tiny_quantise(enum block_id format, const float *values, size_t n, void *blocks);

#endif
