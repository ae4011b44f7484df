// Vectors of four floats for the baseline of every processor, without FMA; see lanes_avx2.h.
#ifndef CONFAB_BASE_LANES_BASELINE_H
#define CONFAB_BASE_LANES_BASELINE_H

#include <stdint.h>
#include <string.h>

#include "engine/base/unroll.h"

typedef float vector __attribute__((vector_size(16)));
typedef int32_t integers __attribute__((vector_size(16)));
enum { VECTOR_FLOATS = 4 };
enum { LANES = 16, VECTORS = LANES / VECTOR_FLOATS }; // sums use sixteen lanes in every width

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
// v if x > limit, otherwise 0.
INLINE vector vector_above(vector v, vector x, vector limit) { return (vector)((integers)v & (x > limit)); }
// Adds the low bits of `shifted`, an integer plus 1.5·2^23, to the exponent of x.
INLINE vector vector_raised(vector x, vector shifted) { return (vector)((integers)x + ((integers)shifted << 23)); }

INLINE float vector_largest(vector v) {
    float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}
// Sums 16 lanes as a tree: l with l + 8, l + 4, l + 2, l + 1.
INLINE float lanes_sum(const vector v[VECTORS]) {
    vector four = (v[0] + v[2]) + (v[1] + v[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
}
// A bit per float, of sixteen, set if least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    unsigned bits = 0;
    for (int i = 0; i < LANES; i++) bits |= (unsigned)((p[i] >= least) & (p[i] <= most)) << i;
    return bits;
}

#endif
