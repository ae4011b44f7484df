// What the AVX-512 kernels of prepared weights share. A strip is two vectors of 16 rows; an input is a broadcast of 4
// bytes, which serves both.
#ifndef CONFAB_CPU_LANES_AVX512_H
#define CONFAB_CPU_LANES_AVX512_H

#include <immintrin.h>
#include <string.h>

#include "engine/cpu/kernels.h"
#include "engine/cpu/unroll.h"

// name calls panel(s, width) with s->width as a constant: compiled once for every width, so that all its accumulators
// live in registers.
#define FOR_WIDTH(name, panel)                                                                                         \
    void name(const struct strip *s) {                                                                                 \
        switch (s->width) {                                                                                            \
        case 1: panel(s, 1); break;                                                                                    \
        case 2: panel(s, 2); break;                                                                                    \
        case 3: panel(s, 3); break;                                                                                    \
        case 4: panel(s, 4); break;                                                                                    \
        case 5: panel(s, 5); break;                                                                                    \
        case 6: panel(s, 6); break;                                                                                    \
        }                                                                                                              \
    }
_Static_assert(PANEL_COLUMNS == 6, "FOR_WIDTH lists every width");

typedef __m512i sums[PANEL_COLUMNS][2];
typedef __m512 totals[PANEL_COLUMNS][2];
struct row_vector { __m512 v[2]; }; // one number for each row of a strip

INLINE __m512i broadcast_quad(const int8_t *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm512_set1_epi32(quad);
}

// sum[c] += weights × columns 4g..4g+3 of every input.
INLINE void dot(sums sum, const struct activation_block *a, int width, int g, __m512i w0, __m512i w1) {
    UNROLL for (int c = 0; c < width; c++) {
        __m512i x = broadcast_quad(a[c].q + 4 * g);
        sum[c][0] = _mm512_dpbusd_epi32(sum[c][0], w0, x);
        sum[c][1] = _mm512_dpbusd_epi32(sum[c][1], w1, x);
    }
}

INLINE void clear(totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) total[c][0] = total[c][1] = _mm512_setzero_ps();
}

INLINE void store(float *out, totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) {
        _mm512_storeu_ps(out + c * STRIP_ROWS, total[c][0]);
        _mm512_storeu_ps(out + c * STRIP_ROWS + 16, total[c][1]);
    }
}

INLINE __m512 halves(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE struct row_vector row_halves(const uint16_t d[32]) { return (struct row_vector){{halves(d), halves(d + 16)}}; }
INLINE struct row_vector row_bytes(__m256i bytes) {
    return (struct row_vector){{_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes))),
                                _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(bytes, 1)))}};
}
INLINE struct row_vector row_u8(const uint8_t p[32]) { return row_bytes(_mm256_loadu_si256((const __m256i *)p)); }
INLINE struct row_vector row_i8(const int8_t p[32]) {
    return (struct row_vector){{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p))),
                                _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p + 1)))}};
}
INLINE struct row_vector row_product(struct row_vector a, struct row_vector b) {
    return (struct row_vector){{_mm512_mul_ps(a.v[0], b.v[0]), _mm512_mul_ps(a.v[1], b.v[1])}};
}

// total[c] += sum[c] × scale × the input's scale
INLINE void add_scaled(totals total, sums sum, const struct activation_block *a, int width, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            __m512 both = _mm512_mul_ps(scale.v[v], _mm512_set1_ps(a[c].scale));
            total[c][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[c][v]), both, total[c][v]);
        }
}

// total[c] += min × minus the input's sum
INLINE void add_minimum(totals total, const struct activation_block *a, int width, struct row_vector min) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++)
            total[c][v] = _mm512_fmadd_ps(min.v[v], _mm512_set1_ps(a[c].minimum), total[c][v]);
}

// Of a block whose halves have scales of their own: half 0 begins `part`, half 1 is added; then add_part adds both.
INLINE void scale_half(totals part, sums sum, int width, int half, struct row_vector scale) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++) {
            __m512 x = _mm512_cvtepi32_ps(sum[c][v]);
            part[c][v] = half ? _mm512_fmadd_ps(x, scale.v[v], part[c][v]) : _mm512_mul_ps(x, scale.v[v]);
        }
}
INLINE void add_part(totals total, totals part, const struct activation_block *a, int width) {
    UNROLL for (int c = 0; c < width; c++)
        UNROLL for (int v = 0; v < 2; v++)
            total[c][v] = _mm512_fmadd_ps(part[c][v], _mm512_set1_ps(a[c].scale), total[c][v]);
}

// −8 × the sum of an input's columns: of half 0 or 1, or of both.
enum { BOTH = 2 };
INLINE int zero_of(const struct activation_block *a, int half) {
    return half == BOTH ? a->zero : half ? a->zero - a->zero_low : a->zero_low;
}

// Nibbles of line g, those of columns 0–15 (half 0) or 16–31.
INLINE __m512i nibbles(const uint8_t *line, int half) {
    __m512i w = _mm512_loadu_si512(line);
    return _mm512_and_si512(half ? _mm512_srli_epi16(w, 4) : w, _mm512_set1_epi8(15));
}

#endif
