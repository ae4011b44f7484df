// Rows of logits in vectors of eight floats.
#include "engine/serve/row.h"

#if defined(__x86_64__)
#include "engine/base/lanes_avx2.h"
#include "engine/serve/row_lanes.h"

const struct row_kernels row_kernels_avx2 = {.maxima = maxima, .sums = sums, .weigh = weigh, .collect = collect};
#endif
