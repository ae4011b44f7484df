// What the AVX-512 kernels of packed weights share. A strip is two vectors of 16 rows; an input is a broadcast of 4
// bytes, which serves both.
#ifndef CONFAB_CPU_LANES_AVX512_H
#define CONFAB_CPU_LANES_AVX512_H

#include <string.h>

#include "engine/base/lanes_avx512.h"
#include "engine/cpu/kernels.h"

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
_Static_assert(PANEL_INPUTS == 6, "FOR_WIDTH lists every width");

enum { PART_INPUTS = PANEL_INPUTS };

// As in lanes_avx2.h: part(s, h, first, width) computes rows from 16h on of the inputs from `first` on, here all.
#define FOR_PARTS(name, part)                                                                                          \
    INLINE void part##_whole(const struct strip *s, const int width) { part(s, 0, 0, width); }                         \
    FOR_WIDTH(name, part##_whole)

#include "engine/cpu/lanes.h"

// Into the second-level cache, and only when it is this block's turn.
INLINE void fetch_part(const struct strip *s, int *turn, const uint8_t *at, size_t bytes, int h, int first) {
    (void)h, (void)first; // a panel is one pass
    if ((*turn)--) return;
    *turn = s->turns - 1;
    const uintptr_t begin = (uintptr_t)at + s->ahead; // perhaps past the last
    UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)(begin + i), 0, 2);
}

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

INLINE struct row_vector row_bytes(__m256i bytes) {
    return (struct row_vector){{_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_castsi256_si128(bytes))),
                                _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm256_extracti128_si256(bytes, 1)))}};
}
INLINE struct row_vector row_u8(const uint8_t p[32]) { return row_bytes(_mm256_loadu_si256((const __m256i *)p)); }
INLINE struct row_vector row_i8(const int8_t p[32]) {
    return (struct row_vector){{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p))),
                                _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p + 1)))}};
}
// Nibbles of line g, those of columns 0–15 (half 0) or 16–31.
INLINE __m512i nibbles(const uint8_t *line, int half) {
    __m512i w = _mm512_loadu_si512(line);
    return _mm512_and_si512(half ? _mm512_srli_epi16(w, 4) : w, _mm512_set1_epi8(15));
}

#endif
