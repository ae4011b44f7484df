// Rows of logits in vectors of eight floats.
#include "engine/serve/row.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/base/unroll.h"

typedef __m256 vector;
typedef __v8si integers;
enum { VECTOR_FLOATS = 8 };

INLINE vector vector_of(float x) { return _mm256_set1_ps(x); }
INLINE vector vector_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE vector vector_max(vector a, vector b) { return _mm256_max_ps(a, b); }
// v where x > limit, else 0.
INLINE vector vector_above(vector v, vector x, vector limit) {
    return _mm256_and_ps(v, _mm256_cmp_ps(x, limit, _CMP_GT_OQ));
}
INLINE float vector_largest(vector v) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}
INLINE float lanes_sum(const vector v[2]) {
    vector eight = _mm256_add_ps(v[0], v[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
// A bit for each of sixteen floats that is least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    unsigned bits = 0;
    for (int i = 0; i < 2; i++) {
        __m256 x = _mm256_loadu_ps(p + 8 * i), above = _mm256_cmp_ps(x, _mm256_set1_ps(least), _CMP_GE_OQ);
        __m256 below = _mm256_cmp_ps(x, _mm256_set1_ps(most), _CMP_LE_OQ);
        bits |= (unsigned)_mm256_movemask_ps(_mm256_and_ps(above, below)) << 8 * i;
    }
    return bits;
}

#include "engine/serve/row_lanes.h"

const struct row_kernels row_kernels_avx2 = {.maxima = maxima, .sums = sums, .weigh = weigh, .collect = collect};
#endif
