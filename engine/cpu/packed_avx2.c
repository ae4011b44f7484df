// The kernels of packed weights for AVX2 without VNNI: bytes are multiplied in pairs into 16-bit sums. Values of up to
// six bits are multiplied unsigned, wider and signed ones by magnitude.
#include "engine/cpu/packed.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx2.h"

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

// --- four and five bits under one scale and minimum ------------------------------------------------------------------

// Eight steps of at most 15 × 127 × 2 fit 16 bits.
INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    sums pairs;
    clear_sums(pairs, width);
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int g = 0; g < 4; g++)
        dot(pairs, a, width, g + 4 * half, nibbles(q[g][h], 0, half), nibbles(q[g][h], 1, half));
    add_pairs(sum, pairs, width);
}

// Four steps of at most 31 × 127 × 2 fit 16 bits.
INLINE void five_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64],
                          const uint8_t high[2][64], int h) {
    const __m256i h0 = line_half(high[h], 0), h1 = line_half(high[h], 1);
    UNROLL for (int half = 0; half < 2; half++) {
        sums pairs;
        clear_sums(pairs, width);
        UNROLL for (int g = 0; g < 4; g++)
            dot(pairs, a, width, g + 4 * half, five_bits(nibbles(q[g][h], 0, half), h0, g + 4 * half),
                five_bits(nibbles(q[g][h], 1, half), h1, g + 4 * half));
        add_pairs(sum, pairs, width);
    }
}

// --- two bits under a scale and a minimum for 16 columns -------------------------------------------------------------

INLINE void pair_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[2][2][64], int h,
                      int half) {
    sums pairs;
    clear_sums(pairs, width);
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++)
        dot(pairs, a, width, g, two_bits(q[g % 2][h], 0, g / 2), two_bits(q[g % 2][h], 1, g / 2));
    add_pairs(sum, pairs, width);
}

// --- four bits that stand for other values ---------------------------------------------------------------------------

enum { IQ4_OFFSET = 0, FP4_OFFSET = 0, BYTE_OFFSET = 0 }; // they stay signed

INLINE __m256i table_of(const int8_t values[16], int offset) {
    (void)offset;
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)values));
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m256i table,
                       int h, int half) {
    UNROLL for (int g = 0; g < 4; g++)
        signed_dot(sum, a, width, g + 4 * half, _mm256_shuffle_epi8(table, nibbles(q[g][h], 0, half)),
                   _mm256_shuffle_epi8(table, nibbles(q[g][h], 1, half)));
}

// --- six bits under a scale for 16 columns ---------------------------------------------------------------------------

// Two steps of at most 63 × 127 × 2 fit 16 bits.
INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int h, int half) {
    UNROLL for (int two = 0; two < 4; two += 2) {
        const int f = 2 * half + two / 2;
        sums pairs;
        clear_sums(pairs, width);
        UNROLL for (int g = two; g < two + 2; g++)
            dot(pairs, a, width, half * 4 + g, six_bits(nibbles(low[g][h], 0, half), line_half(high[g % 2][h], 0), f),
                six_bits(nibbles(low[g][h], 1, half), line_half(high[g % 2][h], 1), f));
        add_pairs(sum, pairs, width);
    }
}

// --- bytes -----------------------------------------------------------------------------------------------------------

// Line g, made signed again.
INLINE void byte_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[8][2][64], int h, int g) {
    const __m256i flip = _mm256_set1_epi8((char)0x80);
    signed_dot(sum, a, width, g, _mm256_xor_si256(line_half(q[g][h], 0), flip),
               _mm256_xor_si256(line_half(q[g][h], 1), flip));
}

#define PACKED_ISA avx2
#include "engine/cpu/packed_kernels.h"
#endif
