// Vectors of eight floats, for files compiled for AVX2 with FMA. lanes_avx512.h and lanes_baseline.h define the same
// operations for sixteen and four, so that a kernel computes the same bits in every width.
#ifndef CONFAB_BASE_LANES_AVX2_H
#define CONFAB_BASE_LANES_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "engine/base/unroll.h"

typedef __m256 vector;
typedef __m256i integers; // the same number of 32-bit integers
enum { VECTOR_FLOATS = 8 };
enum { LANES = 16, VECTORS = LANES / VECTOR_FLOATS }; // sums use sixteen lanes in every width

INLINE vector vector_of(float x) { return _mm256_set1_ps(x); }
INLINE vector vector_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vector_store(float *p, vector v) { _mm256_storeu_ps(p, v); }
INLINE vector vector_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE integers integers_of(int x) { return _mm256_set1_epi32(x); }
INLINE vector vector_from(integers v) { return _mm256_cvtepi32_ps(v); }

INLINE vector vector_fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); } // a × b + c
INLINE vector vector_min(vector a, vector b) { return _mm256_min_ps(a, b); }                // b if either is NaN
INLINE vector vector_max(vector a, vector b) { return _mm256_max_ps(a, b); }
// v if x > limit, otherwise 0.
INLINE vector vector_above(vector v, vector x, vector limit) {
    return _mm256_and_ps(v, _mm256_cmp_ps(x, limit, _CMP_GT_OQ));
}
INLINE vector vector_round(vector x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
INLINE vector vector_scaled(vector x, vector n) { // x × 2^n
    const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return x * _mm256_castsi256_ps(exponent);
}
// Adds the low bits of `shifted`, an integer plus 1.5·2^23, to the exponent of x.
INLINE vector vector_raised(vector x, vector shifted) {
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), bits));
}

INLINE float vector_largest(vector v) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}
// Sums 16 lanes as a tree: l with l + 8, l + 4, l + 2, l + 1.
INLINE float lanes_sum(const vector v[VECTORS]) {
    vector eight = _mm256_add_ps(v[0], v[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}
// A bit per float, of sixteen, set if least ≤ x ≤ most.
INLINE unsigned lanes_between(const float *p, float least, float most) {
    unsigned bits = 0;
    for (int i = 0; i < 2; i++) {
        __m256 x = _mm256_loadu_ps(p + 8 * i), above = _mm256_cmp_ps(x, _mm256_set1_ps(least), _CMP_GE_OQ);
        __m256 below = _mm256_cmp_ps(x, _mm256_set1_ps(most), _CMP_LE_OQ);
        bits |= (unsigned)_mm256_movemask_ps(_mm256_and_ps(above, below)) << 8 * i;
    }
    return bits;
}

#endif
