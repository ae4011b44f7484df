// Rows of logits in vectors of sixteen floats.
#include "engine/serve/row.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "engine/base/unroll.h"

typedef __m512 vector;
typedef __v16si integers;
enum { VECTOR_FLOATS = 16 };

INLINE vector vector_of(float x) { return _mm512_set1_ps(x); }
INLINE vector vector_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE vector vector_max(vector a, vector b) { return _mm512_max_ps(a, b); }
// v where x > limit, else 0.
INLINE vector vector_above(vector v, vector x, vector limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ), v);
}
INLINE float vector_largest(vector v) { return _mm512_reduce_max_ps(v); }
INLINE float lanes_sum(const vector v[1]) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v[0]), _mm512_extractf32x8_ps(v[0], 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
// A bit for each of sixteen floats that is least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    __m512 x = _mm512_loadu_ps(p);
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, _mm512_set1_ps(least), _CMP_GE_OQ), x, _mm512_set1_ps(most),
                                   _CMP_LE_OQ);
}

#include "engine/serve/row_lanes.h"

const struct row_kernels row_kernels_avx512 = {.maxima = maxima, .sums = sums, .weigh = weigh, .collect = collect};
#endif
