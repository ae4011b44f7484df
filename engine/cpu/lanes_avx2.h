// What the kernels of packed weights in 256 bits share, with and without VNNI: all but how bytes are multiplied. A
// strip is computed in halves of 16 rows (two vectors of 8) and at most three inputs at a time, so that all
// accumulators live in registers.
#ifndef CONFAB_CPU_LANES_AVX2_H
#define CONFAB_CPU_LANES_AVX2_H

#include <string.h>

#include "engine/base/lanes_avx2.h"
#include "engine/cpu/kernels.h"

enum { PART_INPUTS = 3 };

// name calls part(s, h, first, width) for both halves of the strip and all inputs, width as a constant.
#define FOR_PARTS(name, part)                                                                                          \
    void name(const struct strip *s) {                                                                                 \
        for (int h = 0; h < 2; h++)                                                                                    \
            for (int first = 0; first < s->width; first += PART_INPUTS) switch (s->width - first) {                    \
                case 1: part(s, h, first, 1); break;                                                                   \
                case 2: part(s, h, first, 2); break;                                                                   \
                default: part(s, h, first, 3); break;                                                                  \
                }                                                                                                      \
    }
_Static_assert(PART_INPUTS == 3, "FOR_PARTS lists every width");

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
// Field f, two bits, of half a pair line.
INLINE __m256i two_bits(const uint8_t *line, int v, int f) {
    return _mm256_and_si256(_mm256_srli_epi16(line_half(line, v), 2 * f), _mm256_set1_epi8(3));
}

// Nibbles joined with bit `bit` of the high line, moved to bit 4.
INLINE __m256i five_bits(__m256i low, __m256i high, int bit) {
    __m256i moved = bit < 4 ? _mm256_slli_epi16(high, 4 - bit) : _mm256_srli_epi16(high, bit - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
}

// Nibbles joined with the two bits of field f of their pair line, moved to bits 4 and 5.
INLINE __m256i six_bits(__m256i low, __m256i high, int f) {
    __m256i moved = f < 2 ? _mm256_slli_epi16(high, 4 - 2 * f) : _mm256_srli_epi16(high, 2 * f - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

// Low and high nibbles of 16 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[16], int high) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return row_bytes(_mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15)));
}

// mxfp4_scale of 8 rows.
INLINE __m256 mxfp4_scales(const uint8_t *p) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), one = _mm256_set1_epi32(1);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, one)));
}

// nvfp4_scale of 8 rows: the seven bits are the top of a tiny float.
INLINE __m256 nvfp4_scales(const uint8_t *p) {
    const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), all = _mm256_set1_epi32(127);
    const __m256i tiny = _mm256_slli_epi32(_mm256_and_si256(bits, all), 20);
    const __m256 scale = _mm256_mul_ps(_mm256_castsi256_ps(tiny), _mm256_set1_ps(0x1p119f));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, all)), scale);
}

// A strip is gone through once for each half and every three inputs, and each time half of the lines are left
// out, which processors do not fetch ahead well: so the first pass fetches what lies ahead, all of it. The others find
// it in the second cache.
INLINE void fetch_part(const struct strip *s, int *turn, const uint8_t *at, size_t bytes, int h, int first) {
    enum { AHEAD = 8192, LINE = 64 };
    (void)turn;
    if (h || first) return;
    const uintptr_t begin = (uintptr_t)at + (s->fetches ? s->ahead : AHEAD); // perhaps past the last
    for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch((const void *)(begin + i), 0, 2);
}

INLINE int stride_of(const struct strip *s, const int width) {
    (void)width;
    return s->width;
}

#endif
