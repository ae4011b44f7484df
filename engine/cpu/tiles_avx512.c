// The kernels of prepared weights for AVX-512 with VNNI: weights are made unsigned bytes, and what that adds is taken
// off by where the sums begin. All rows of a strip are computed at once, so that h is 0 throughout.
#include "engine/cpu/tiles.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx512.h"

// --- four and five bits under one scale and minimum ------------------------------------------------------------------

INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    (void)h;
    UNROLL for (int g = 0; g < 4; g++) UNROLL for (int half = 0; half < 2; half++)
        dot(sum, a, width, g + 4 * half, nibbles(q[g][0], half), nibbles(q[g][1], half));
}

// Nibbles joined with bit `bit` of the high line, moved to bit 4.
INLINE __m512i five_bits(__m512i low, __m512i high, int bit) {
    __m512i moved =
        bit < 4 ? _mm512_slli_epi16(high, (unsigned)(4 - bit)) : _mm512_srli_epi16(high, (unsigned)(bit - 4));
    return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(16), 0xF8); // low | (moved & 16)
}

INLINE void five_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64],
                          const uint8_t high[2][64], int h) {
    (void)h;
    const __m512i h0 = _mm512_loadu_si512(high[0]), h1 = _mm512_loadu_si512(high[1]);
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, five_bits(nibbles(q[g][0], half), h0, g + 4 * half),
            five_bits(nibbles(q[g][1], half), h1, g + 4 * half));
}

// --- two bits under a scale and a minimum for 16 columns -------------------------------------------------------------

INLINE void pair_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[2][2][64], int h,
                      int half) {
    (void)h;
    const __m512i mask = _mm512_set1_epi8(3);
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) {
        __m512i w0 = _mm512_srli_epi16(_mm512_loadu_si512(q[g % 2][0]), (unsigned)(g / 2 * 2));
        __m512i w1 = _mm512_srli_epi16(_mm512_loadu_si512(q[g % 2][1]), (unsigned)(g / 2 * 2));
        dot(sum, a, width, g, _mm512_and_si512(w0, mask), _mm512_and_si512(w1, mask));
    }
}

// Low and high nibbles of 32 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[32], int high) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    return row_bytes(_mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15)));
}

// --- four bits that stand for other values ---------------------------------------------------------------------------

enum { IQ4_OFFSET = 128, FP4_OFFSET = 12, BYTE_OFFSET = 128 }; // make weights unsigned

INLINE __m512i table_of(const int8_t values[16], int offset) {
    __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i *)values), _mm_set1_epi8((char)offset));
    return _mm512_broadcast_i32x4(table);
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m512i table,
                       int h, int half) {
    (void)h;
    UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, _mm512_shuffle_epi8(table, nibbles(q[g][0], half)),
            _mm512_shuffle_epi8(table, nibbles(q[g][1], half)));
}

// mxfp4_scale of 16 rows.
INLINE __m512 mxfp4_scales(const uint8_t *p) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), one = _mm512_set1_epi32(1);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(e, one), subnormal, normal));
}

// nvfp4_scale of 16 rows: the seven bits are the top of a tiny float.
INLINE __m512 nvfp4_scales(const uint8_t *p) {
    const __m512i bits = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    const __m512i tiny = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(127)), 20);
    const __mmask16 number = _mm512_cmpneq_epi32_mask(bits, _mm512_set1_epi32(127));
    return _mm512_maskz_mul_ps(number, _mm512_castsi512_ps(tiny), _mm512_set1_ps(0x1p119f));
}

// --- six bits under a scale for 16 columns ---------------------------------------------------------------------------

// Nibbles joined with the two bits of field f of their pair line, moved to bits 4 and 5.
INLINE __m512i six_bits(__m512i low, __m512i high, int f) {
    __m512i moved =
        f < 2 ? _mm512_slli_epi16(high, (unsigned)(4 - 2 * f)) : _mm512_srli_epi16(high, (unsigned)(2 * f - 4));
    return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(0x30), 0xF8); // low | (moved & 0x30)
}

INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int h, int half) {
    (void)h;
    UNROLL for (int g = 0; g < 4; g++) {
        const __m512i h0 = _mm512_loadu_si512(high[g % 2][0]), h1 = _mm512_loadu_si512(high[g % 2][1]);
        dot(sum, a, width, 4 * half + g, six_bits(nibbles(low[g][0], half), h0, 2 * half + g / 2),
            six_bits(nibbles(low[g][1], half), h1, 2 * half + g / 2));
    }
}

// --- bytes -----------------------------------------------------------------------------------------------------------

INLINE void byte_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[8][2][64], int h, int g) {
    (void)h;
    dot(sum, a, width, g, _mm512_loadu_si512(q[g][0]), _mm512_loadu_si512(q[g][1]));
}

INLINE int stride_of(const struct strip *s, const int width) {
    (void)s; // a panel is computed whole
    return width;
}

#define TILE_ISA avx512
#include "engine/cpu/tile_kernels.h"
#endif
