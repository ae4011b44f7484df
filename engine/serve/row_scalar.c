// Rows of logits in vectors of four floats, as every compiler makes them for the baseline of its processor.
#include "engine/serve/row.h"

#include <stdint.h>
#include <string.h>

#include "engine/base/unroll.h"

typedef float vector __attribute__((vector_size(16)));
typedef int32_t integers __attribute__((vector_size(16)));
enum { VECTOR_FLOATS = 4 };

INLINE vector vector_of(float x) { return (vector){x, x, x, x}; }
INLINE vector vector_load(const float *p) {
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE vector vector_max(vector a, vector b) {
    integers greater = b > a;
    return (vector)(((integers)b & greater) | ((integers)a & ~greater));
}
// v where x > limit, else 0.
INLINE vector vector_above(vector v, vector x, vector limit) { return (vector)((integers)v & (x > limit)); }
INLINE float vector_largest(vector v) {
    float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}
INLINE float lanes_sum(const vector v[4]) {
    vector four = (v[0] + v[2]) + (v[1] + v[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}
// A bit for each of sixteen floats that is least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    unsigned bits = 0;
    for (int i = 0; i < 16; i++) bits |= (unsigned)((p[i] >= least) & (p[i] <= most)) << i;
    return bits;
}

#include "engine/serve/row_lanes.h"

float row_exp(float x) { return exponential(vector_of(x))[0]; }

const struct row_kernels row_kernels_scalar = {.maxima = maxima, .sums = sums, .weigh = weigh, .collect = collect};
