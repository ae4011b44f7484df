// Rows of logits in vectors of four floats.
#include "engine/serve/row.h"

#include "engine/base/lanes_baseline.h"
#include "engine/serve/row_lanes.h"

float row_exp(float x) { return exponential(vector_of(x))[0]; }

const struct row_kernels row_kernels_scalar = {.maxima = maxima, .sums = sums, .weigh = weigh, .collect = collect};
