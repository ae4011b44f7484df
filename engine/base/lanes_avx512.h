// Vectors of sixteen floats, for files compiled for AVX-512; see lanes_avx2.h.
#ifndef CONFAB_BASE_LANES_AVX512_H
#define CONFAB_BASE_LANES_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "engine/base/unroll.h"

typedef __m512 vector;
typedef __m512i integers; // the same number of 32-bit integers
enum { VECTOR_FLOATS = 16 };
enum { LANES = 16, VECTORS = LANES / VECTOR_FLOATS }; // sums use sixteen lanes in every width

INLINE vector vector_of(float x) { return _mm512_set1_ps(x); }
INLINE vector vector_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vector_store(float *p, vector v) { _mm512_storeu_ps(p, v); }
INLINE vector vector_halves(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE integers integers_of(int x) { return _mm512_set1_epi32(x); }
INLINE vector vector_from(integers v) { return _mm512_cvtepi32_ps(v); }

INLINE vector vector_fma(vector a, vector b, vector c) { return _mm512_fmadd_ps(a, b, c); } // a × b + c
INLINE vector vector_min(vector a, vector b) { return _mm512_min_ps(a, b); }                // b if either is NaN
INLINE vector vector_max(vector a, vector b) { return _mm512_max_ps(a, b); }
// v if x > limit, otherwise 0.
INLINE vector vector_above(vector v, vector x, vector limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ), v);
}
INLINE vector vector_round(vector x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vector vector_scaled(vector x, vector n) { return _mm512_scalef_ps(x, n); } // x × 2^n
// Adds the low bits of `shifted`, an integer plus 1.5·2^23, to the exponent of x.
INLINE vector vector_raised(vector x, vector shifted) {
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), bits));
}

INLINE float vector_largest(vector v) { return _mm512_reduce_max_ps(v); }
// Sums 16 lanes as a tree: l with l + 8, l + 4, l + 2, l + 1.
INLINE float lanes_sum(const vector v[VECTORS]) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v[0]), _mm512_extractf32x8_ps(v[0], 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
// A bit per float, of sixteen, set if least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    __m512 x = _mm512_loadu_ps(p);
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, _mm512_set1_ps(least), _CMP_GE_OQ), x, _mm512_set1_ps(most),
                                   _CMP_LE_OQ);
}

#endif
