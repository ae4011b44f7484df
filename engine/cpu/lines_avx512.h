// What packed blocks hold, for the AVX-512 kernels: lines of weights as unsigned bytes, as a 4-way byte dot product
// takes, and scales of rows. Line g of 0–7 is that of columns 4g..4g+3, h the half of the strip: rows 16h..16h+15.
#ifndef CONFAB_CPU_LINES_AVX512_H
#define CONFAB_CPU_LINES_AVX512_H

#include "engine/cpu/lanes_avx512.h"
#include "engine/cpu/packed.h"

// What is added to weights that are not unsigned codes already.
enum { IQ4_OFFSET = 128, FP4_OFFSET = 12, BYTE_OFFSET = 128 };

// Reads so many lines in order, before they are needed here and there.
INLINE void touch(const uint8_t *lines, const int n) {
    in_order();
    UNROLL for (int i = 0; i < n; i++) {
        const __m512i line = _mm512_loadu_si512(lines + 64 * i);
        __asm__ volatile("" ::"v"(line) : "memory");
    }
}

// --- lines -----------------------------------------------------------------------------------------------------------

INLINE __m512i nibble_line(const uint8_t q[4][2][64], int g, int h) { return nibbles(q[g % 4][h], g / 4); }

// Bits of field g, moved from bit g to bit 4 and joined.
INLINE __m512i five_bit_line(const uint8_t q[4][2][64], const uint8_t high[2][64], int g, int h) {
    const __m512i bits = _mm512_loadu_si512(high[h]);
    const __m512i moved =
        g < 4 ? _mm512_slli_epi16(bits, (unsigned)(4 - g)) : _mm512_srli_epi16(bits, (unsigned)(g - 4));
    return _mm512_ternarylogic_epi32(nibble_line(q, g, h), moved, _mm512_set1_epi8(16), 0xF8); // low | (moved & 16)
}

INLINE __m512i pair_line(const uint8_t q[2][2][64], int g, int h) {
    const __m512i pairs = _mm512_srli_epi16(_mm512_loadu_si512(q[g % 2][h]), (unsigned)(g / 2 * 2));
    return _mm512_and_si512(pairs, _mm512_set1_epi8(3));
}

// Pairs of field f, moved from bit 2f to bits 4 and 5 and joined.
INLINE __m512i six_bit_line(const uint8_t low[4][2][64], const uint8_t high[2][2][64], int g, int h) {
    const __m512i pairs = _mm512_loadu_si512(high[g % 2][h]);
    const int f = g / 2;
    const __m512i moved =
        f < 2 ? _mm512_slli_epi16(pairs, (unsigned)(4 - 2 * f)) : _mm512_srli_epi16(pairs, (unsigned)(2 * f - 4));
    return _mm512_ternarylogic_epi32(nibble_line(low, g, h), moved, _mm512_set1_epi8(0x30), 0xF8);
}

INLINE __m512i table_of(const int8_t values[16], int offset) {
    __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i *)values), _mm_set1_epi8((char)offset));
    return _mm512_broadcast_i32x4(table);
}
INLINE __m512i table_line(const uint8_t q[4][2][64], __m512i table, int g, int h) {
    return _mm512_shuffle_epi8(table, nibble_line(q, g, h));
}

INLINE __m512i byte_line(const uint8_t q[8][2][64], int g, int h) { return _mm512_loadu_si512(q[g][h]); }

// --- scales ----------------------------------------------------------------------------------------------------------

// Low and high nibbles of 32 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[32], int high) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    return row_bytes(_mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15)));
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

#endif
