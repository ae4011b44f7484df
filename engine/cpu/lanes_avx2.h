// What the AVX2 kernels of prepared weights share. A strip is computed in halves of 16 rows (two vectors of 8) and at most
// three inputs at a time, so that all accumulators live in registers. Without VNNI, bytes are multiplied in pairs into
// 16-bit sums.
#ifndef CONFAB_CPU_LANES_AVX2_H
#define CONFAB_CPU_LANES_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "engine/cpu/kernels.h"
#include "engine/base/unroll.h"

enum { PART_COLUMNS = 3 };

// name calls part(s, h, first, width) for both halves of the strip and all inputs, width as a constant.
#define FOR_PARTS(name, part)                                                                                          \
    void name(const struct strip *s) {                                                                                 \
        for (int h = 0; h < 2; h++)                                                                                    \
            for (int first = 0; first < s->width; first += PART_COLUMNS) switch (s->width - first) {                   \
                case 1: part(s, h, first, 1); break;                                                                   \
                case 2: part(s, h, first, 2); break;                                                                   \
                default: part(s, h, first, 3); break;                                                                  \
                }                                                                                                      \
    }
_Static_assert(PART_COLUMNS == 3, "FOR_PARTS lists every width");

typedef __m256 vector;
typedef __m256i integers;
enum { VECTOR_FLOATS = 8 };

INLINE vector vector_of(float x) { return _mm256_set1_ps(x); }
INLINE vector vector_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vector_store(float *p, vector v) { _mm256_storeu_ps(p, v); }
INLINE vector vector_fma(vector a, vector b, vector c) { return _mm256_fmadd_ps(a, b, c); } // a × b + c
INLINE vector vector_from(integers v) { return _mm256_cvtepi32_ps(v); }
INLINE vector vector_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE integers integers_of(int x) { return _mm256_set1_epi32(x); }

#include "engine/cpu/lanes.h"

INLINE __m256i line_half(const uint8_t *line, int v) { return _mm256_loadu_si256((const __m256i *)line + v); }

INLINE __m256i broadcast_quad(const int8_t *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm256_set1_epi32(quad);
}

// `sums` of 16-bit pairs or of 32-bit rows.
INLINE void clear_sums(sums sum, int width) {
    UNROLL for (int c = 0; c < width; c++) sum[c][0] = sum[c][1] = _mm256_setzero_si256();
}

INLINE __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

// pairs[c] += weights × columns 4g..4g+3, in 16 bits: the caller keeps |weights| × 127 × 2 × steps below 2^15.
INLINE void dot(sums pairs, const struct activation_block *a, int width, int g, __m256i w0, __m256i w1) {
    UNROLL for (int c = 0; c < width; c++) {
        __m256i x = broadcast_quad(a[c].q + 4 * g);
        pairs[c][0] = _mm256_add_epi16(pairs[c][0], _mm256_maddubs_epi16(w0, x));
        pairs[c][1] = _mm256_add_epi16(pairs[c][1], _mm256_maddubs_epi16(w1, x));
    }
}

// sum[c] += signed weights × columns 4g..4g+3: their magnitude times the inputs with their signs. 128 × 127 × 2 fits 16
// bits, once.
INLINE void signed_dot(sums sum, const struct activation_block *a, int width, int g, __m256i w0, __m256i w1) {
    const __m256i magnitude0 = _mm256_abs_epi8(w0), magnitude1 = _mm256_abs_epi8(w1);
    UNROLL for (int c = 0; c < width; c++) {
        __m256i x = broadcast_quad(a[c].q + 4 * g);
        __m256i p0 = _mm256_maddubs_epi16(magnitude0, _mm256_sign_epi8(x, w0));
        __m256i p1 = _mm256_maddubs_epi16(magnitude1, _mm256_sign_epi8(x, w1));
        sum[c][0] = _mm256_add_epi32(sum[c][0], widen(p0));
        sum[c][1] = _mm256_add_epi32(sum[c][1], widen(p1));
    }
}

INLINE void add_pairs(sums sum, sums pairs, int width) {
    UNROLL for (int c = 0; c < width; c++) {
        sum[c][0] = _mm256_add_epi32(sum[c][0], widen(pairs[c][0]));
        sum[c][1] = _mm256_add_epi32(sum[c][1], widen(pairs[c][1]));
    }
}

INLINE struct row_vector row_bytes(__m128i bytes) {
    return (struct row_vector){{_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
                                _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))}};
}
INLINE struct row_vector row_u8(const uint8_t p[16]) { return row_bytes(_mm_loadu_si128((const __m128i *)p)); }
INLINE struct row_vector row_i8(const int8_t p[16]) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return (struct row_vector){{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))}};
}
// Nibbles of half a line, those of columns 0–15 (half 0) or 16–31.
INLINE __m256i nibbles(const uint8_t *line, int v, int half) {
    __m256i w = line_half(line, v);
    return _mm256_and_si256(half ? _mm256_srli_epi16(w, 4) : w, _mm256_set1_epi8(15));
}

#endif
