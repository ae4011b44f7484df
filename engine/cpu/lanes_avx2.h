// What the AVX2 kernels of prepared weights share. A strip is computed in halves of 16 rows (two vectors of 8) and at most
// three inputs at a time, so that all accumulators live in registers. Without VNNI, bytes are multiplied in pairs into
// 16-bit sums.
#ifndef CONFAB_CPU_LANES_AVX2_H
#define CONFAB_CPU_LANES_AVX2_H

#include <immintrin.h>
#include <string.h>

#include "engine/cpu/kernels.h"
#include "engine/cpu/unroll.h"

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

typedef __m256i sums[PART_COLUMNS][2]; // of 16-bit pairs or of 32-bit rows
typedef __m256 totals[PART_COLUMNS][2];
struct row_vector { __m256 v[2]; }; // one number for each of 16 rows

INLINE __m256i line_half(const uint8_t *line, int v) { return _mm256_loadu_si256((const __m256i *)line + v); }

INLINE __m256i broadcast_quad(const int8_t *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm256_set1_epi32(quad);
}

INLINE void clear_sums(sums sum, int width) {
    UNROLL for (int c = 0; c < width; c++) sum[c][0] = sum[c][1] = _mm256_setzero_si256();
}

INLINE void clear(totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) total[c][0] = total[c][1] = _mm256_setzero_ps();
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

INLINE void store(const struct strip *s, int h, int first, totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) {
        float *out = s->out + (first + c) * STRIP_ROWS + 16 * h;
        _mm256_storeu_ps(out, total[c][0]);
        _mm256_storeu_ps(out + 8, total[c][1]);
    }
}

INLINE __m256 halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE struct row_vector row_halves(const uint16_t d[16]) { return (struct row_vector){{halves(d), halves(d + 8)}}; }
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
INLINE struct row_vector row_product(struct row_vector a, struct row_vector b) {
    return (struct row_vector){{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}};
}

// total[c] += sum[c] × scale × the input's scale
INLINE void add_scaled(totals total, sums sum, const struct activation_block *a, int width, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            __m256 both = _mm256_mul_ps(scale.v[v], _mm256_set1_ps(a[c].scale));
            total[c][v] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c][v]), both, total[c][v]);
        }
}

// total[c] += min × minus the input's sum
INLINE void add_minimum(totals total, const struct activation_block *a, int width, struct row_vector min) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++)
            total[c][v] = _mm256_fmadd_ps(min.v[v], _mm256_set1_ps(a[c].minimum), total[c][v]);
}

// Of a block whose halves have scales of their own: half 0 begins `part`, half 1 is added; then add_part adds both.
INLINE void scale_half(totals part, sums sum, int width, int half, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            __m256 x = _mm256_cvtepi32_ps(sum[c][v]);
            part[c][v] = half ? _mm256_fmadd_ps(x, scale.v[v], part[c][v]) : _mm256_mul_ps(x, scale.v[v]);
        }
}
INLINE void add_part(totals total, totals part, const struct activation_block *a, int width) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++)
            total[c][v] = _mm256_fmadd_ps(part[c][v], _mm256_set1_ps(a[c].scale), total[c][v]);
}

// −8 × the sum of an input's columns: of half 0 or 1, or of both.
enum { BOTH = 2 };
INLINE int zero_of(const struct activation_block *a, int half) {
    return half == BOTH ? a->zero : half ? a->zero - a->zero_low : a->zero_low;
}

// Nibbles of half a line, those of columns 0–15 (half 0) or 16–31.
INLINE __m256i nibbles(const uint8_t *line, int v, int half) {
    __m256i w = line_half(line, v);
    return _mm256_and_si256(half ? _mm256_srli_epi16(w, 4) : w, _mm256_set1_epi8(15));
}

#endif
