// What the test quantisers share. Each writes one block from the format's number of values.
#ifndef CONFAB_TESTS_TINY_BLOCKS_PARTS_H
#define CONFAB_TESTS_TINY_BLOCKS_PARTS_H

#include "engine/format/block.h"

float tiny_largest(const float *x, int n); // magnitude
// The step nearest to x / scale within [low, high]; 0 where the scale is.
int tiny_step(float x, float scale, int low, int high);
// The place of the value nearest to x / scale.
int tiny_nearest(float x, float scale, const int8_t values[16]);

#define X(id, gguf, name, bytes, elements) void tiny_##id(const float *x, void *block);
QUANTISED_FORMATS(X)
#undef X

#endif
