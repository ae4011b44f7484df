// The kernels of prepared weights for AVX2. Values of up to five bits are multiplied unsigned, wider and signed ones by
// magnitude.
#include "engine/cpu/tiles.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx2.h"

// --- four and five bits under one scale and minimum ------------------------------------------------------------------

// Eight steps of at most 15 × 127 × 2 fit 16 bits.
INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    sums pairs;
    clear_sums(pairs, width);
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int g = 0; g < 4; g++)
        dot(pairs, a, width, g + 4 * half, nibbles(q[g][h], 0, half), nibbles(q[g][h], 1, half));
    add_pairs(sum, pairs, width);
}

// Nibbles joined with bit `bit` of the high line, moved to bit 4.
INLINE __m256i five_bits(__m256i low, __m256i high, int bit) {
    __m256i moved = bit < 4 ? _mm256_slli_epi16(high, 4 - bit) : _mm256_srli_epi16(high, bit - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
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
    const __m256i mask = _mm256_set1_epi8(3);
    sums pairs;
    clear_sums(pairs, width);
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) {
        __m256i w0 = _mm256_srli_epi16(line_half(q[g % 2][h], 0), g / 2 * 2);
        __m256i w1 = _mm256_srli_epi16(line_half(q[g % 2][h], 1), g / 2 * 2);
        dot(pairs, a, width, g, _mm256_and_si256(w0, mask), _mm256_and_si256(w1, mask));
    }
    add_pairs(sum, pairs, width);
}

// Low and high nibbles of 16 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[16], int high) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return row_bytes(_mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15)));
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

// --- six bits under a scale for 16 columns ---------------------------------------------------------------------------

// Nibbles joined with the two bits of field f of their pair line, moved to bits 4 and 5.
INLINE __m256i six_bits(__m256i low, __m256i high, int f) {
    __m256i moved = f < 2 ? _mm256_slli_epi16(high, 4 - 2 * f) : _mm256_srli_epi16(high, 2 * f - 4);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(0x30)));
}

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

INLINE int stride_of(const struct strip *s, const int width) {
    (void)width;
    return s->width;
}

#define TILE_ISA avx2
#include "engine/cpu/tile_kernels.h"
#endif
