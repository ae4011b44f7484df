// The kernels of packed weights for AVX2 with VNNI in 256 bits: weights are made unsigned bytes, and what that adds
// is taken off by where the sums begin. vpdpbusd adds up in 32 bits, so that no sum needs care.
//
// The product has this file in the VEX encoding (AVX-VNNI) alone: whatever has the EVEX encoding of 256 bits
// (AVX512-VNNI with AVX512-VL) has all that the AVX-512 kernels need, which are faster. EVEX is for processors that run
// the tests without AVX-VNNI: tests/kernels/packed_evex.c includes this file, with another name for its kernels.
#include "engine/cpu/packed.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx2.h"

#if defined(__AVXVNNI__)
#define BYTE_PRODUCTS _mm256_dpbusd_avx_epi32
#else
#define BYTE_PRODUCTS _mm256_dpbusd_epi32
#endif

// sum[c] += weights × columns 4g..4g+3 of every input.
INLINE void dot(sums sum, const struct activation_block *a, int width, int g, __m256i w0, __m256i w1) {
    UNROLL for (int c = 0; c < width; c++) {
        const __m256i x = broadcast_quad(a[c].q + 4 * g);
        sum[c][0] = BYTE_PRODUCTS(sum[c][0], w0, x);
        sum[c][1] = BYTE_PRODUCTS(sum[c][1], w1, x);
    }
}

INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    UNROLL for (int g = 0; g < 4; g++) UNROLL for (int half = 0; half < 2; half++)
        dot(sum, a, width, g + 4 * half, nibbles(q[g][h], 0, half), nibbles(q[g][h], 1, half));
}

INLINE void five_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64],
                          const uint8_t high[2][64], int h) {
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, five_bits(nibbles(q[g][h], 0, half), line_half(high[h], 0), g + 4 * half),
            five_bits(nibbles(q[g][h], 1, half), line_half(high[h], 1), g + 4 * half));
}

INLINE void pair_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[2][2][64], int h,
                      int half) {
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++)
        dot(sum, a, width, g, two_bits(q[g % 2][h], 0, g / 2), two_bits(q[g % 2][h], 1, g / 2));
}

enum { IQ4_OFFSET = 128, FP4_OFFSET = 12, BYTE_OFFSET = 128 }; // make weights unsigned

INLINE __m256i table_of(const int8_t values[16], int offset) {
    const __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i *)values), _mm_set1_epi8((char)offset));
    return _mm256_broadcastsi128_si256(table);
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m256i table,
                       int h, int half) {
    UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, _mm256_shuffle_epi8(table, nibbles(q[g][h], 0, half)),
            _mm256_shuffle_epi8(table, nibbles(q[g][h], 1, half)));
}

INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int h, int half) {
    UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, 4 * half + g,
            six_bits(nibbles(low[g][h], 0, half), line_half(high[g % 2][h], 0), 2 * half + g / 2),
            six_bits(nibbles(low[g][h], 1, half), line_half(high[g % 2][h], 1), 2 * half + g / 2));
}

INLINE void byte_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[8][2][64], int h, int g) {
    dot(sum, a, width, g, line_half(q[g][h], 0), line_half(q[g][h], 1));
}

#ifndef PACKED_ISA
#define PACKED_ISA avxvnni
#endif
#include "engine/cpu/packed_kernels.h"
#endif
