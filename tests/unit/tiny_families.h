// A tiny model of every family, several where a family's files differ, all of odd shapes: heads that fill no SIMD
// register, one key-value head, partial rotation, windows and original contexts shorter than what tests feed.
#ifndef CONFAB_TESTS_TINY_FAMILIES_H
#define CONFAB_TESTS_TINY_FAMILIES_H

#include "tests/unit/tiny_shape.h"

extern const struct tiny_shape tiny_families[];
extern const int tiny_family_count;

#endif
