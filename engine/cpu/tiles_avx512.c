// The kernels of prepared weights for AVX-512 with VNNI: weights are made unsigned bytes, and what that adds is taken
// off by where the sums begin.
#include "engine/cpu/tiles.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx512.h"

// sum[c] = −offset × the sum of the columns of the input, or of one half of them
INLINE void begin(sums sum, const struct activation_block *a, int width, int half, const int offset) {
    UNROLL for (int c = 0; c < width; c++) {
        const int zero = zero_of(&a[c], half);
        sum[c][0] = sum[c][1] = _mm512_set1_epi32(offset % 8 ? zero / 8 * offset : zero * (offset / 8));
    }
}

// --- four and five bits under one scale and minimum ------------------------------------------------------------------

INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64]) {
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
                          const uint8_t high[2][64]) {
    const __m512i h0 = _mm512_loadu_si512(high[0]), h1 = _mm512_loadu_si512(high[1]);
    UNROLL for (int half = 0; half < 2; half++) UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, five_bits(nibbles(q[g][0], half), h0, g + 4 * half),
            five_bits(nibbles(q[g][1], half), h1, g + 4 * half));
}

INLINE void q4_0_panel(const struct strip *s, const int width) {
    const struct tile_q4_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, 8);
        nibble_dots(sum, a, width, t->q);
        add_scaled(total, sum, a, width, row_halves(t->d));
    }
    store(s->out, total, width);
}

INLINE void q4_1_panel(const struct strip *s, const int width) {
    const struct tile_q4_1 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, 0);
        nibble_dots(sum, a, width, t->q);
        add_scaled(total, sum, a, width, row_halves(t->d));
        add_minimum(total, a, width, row_halves(t->min));
    }
    store(s->out, total, width);
}

INLINE void q4_k_panel(const struct strip *s, const int width) {
    const struct tile_q4_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 8; p++, a += width) {
            sums sum;
            begin(sum, a, width, BOTH, 0);
            nibble_dots(sum, a, width, t->part[p].q);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d), row_u8(t->part[p].scale)));
            add_minimum(total, a, width, row_product(row_halves(t->dmin), row_u8(t->part[p].min)));
        }
    store(s->out, total, width);
}

INLINE void q5_0_panel(const struct strip *s, const int width) {
    const struct tile_q5_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, 16);
        five_bit_dots(sum, a, width, t->q, t->high);
        add_scaled(total, sum, a, width, row_halves(t->d));
    }
    store(s->out, total, width);
}

INLINE void q5_1_panel(const struct strip *s, const int width) {
    const struct tile_q5_1 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, 0);
        five_bit_dots(sum, a, width, t->q, t->high);
        add_scaled(total, sum, a, width, row_halves(t->d));
        add_minimum(total, a, width, row_halves(t->min));
    }
    store(s->out, total, width);
}

INLINE void q5_k_panel(const struct strip *s, const int width) {
    const struct tile_q5_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 8; p++, a += width) {
            sums sum;
            begin(sum, a, width, BOTH, 0);
            five_bit_dots(sum, a, width, t->part[p].q, t->part[p].high);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d), row_u8(t->part[p].scale)));
            add_minimum(total, a, width, row_product(row_halves(t->dmin), row_u8(t->part[p].min)));
        }
    store(s->out, total, width);
}

// --- two bits under a scale and a minimum for 16 columns -------------------------------------------------------------

INLINE void pair_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[2][2][64], int half) {
    const __m512i mask = _mm512_set1_epi8(3);
    UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) {
        __m512i w0 = _mm512_srli_epi16(_mm512_loadu_si512(q[g % 2][0]), (unsigned)(g / 2 * 2));
        __m512i w1 = _mm512_srli_epi16(_mm512_loadu_si512(q[g % 2][1]), (unsigned)(g / 2 * 2));
        dot(sum, a, width, g, _mm512_and_si512(w0, mask), _mm512_and_si512(w1, mask));
    }
}

// part[c] −= min × the sum of the input's half, which is there times −8
INLINE void subtract_half(totals part, const struct activation_block *a, int width, int half, struct row_vector min) {
    UNROLL for (int v = 0; v < 2; v++) {
        const __m512 eighth = _mm512_mul_ps(min.v[v], _mm512_set1_ps(0.125f));
        UNROLL for (int c = 0; c < width; c++) part[c][v] =
            _mm512_fmadd_ps(_mm512_set1_ps((float)zero_of(&a[c], half)), eighth, part[c][v]);
    }
}

// Low and high nibbles of 32 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[32], int high) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    return row_bytes(_mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15)));
}

INLINE void q2_k_panel(const struct strip *s, const int width) {
    const struct tile_q2_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 8; p++, a += width) {
            totals part;
            sums sum;
            UNROLL for (int half = 0; half < 2; half++) {
                begin(sum, a, width, half, 0);
                pair_dots(sum, a, width, t->part[p].q, half);
                scale_half(part, sum, width, half,
                           row_product(row_halves(t->d), row_nibbles(t->part[p].scale[half], 0)));
            }
            UNROLL for (int half = 0; half < 2; half++) subtract_half(
                part, a, width, half, row_product(row_halves(t->dmin), row_nibbles(t->part[p].scale[half], 1)));
            add_part(total, part, a, width);
        }
    store(s->out, total, width);
}

// --- four bits that stand for other values ---------------------------------------------------------------------------

enum { IQ4_OFFSET = 128, FP4_OFFSET = 12 }; // make the tables unsigned

INLINE __m512i table_of(const int8_t values[16], int offset) {
    __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i *)values), _mm_set1_epi8((char)offset));
    return _mm512_broadcast_i32x4(table);
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m512i table,
                       int half) {
    UNROLL for (int g = 0; g < 4; g++)
        dot(sum, a, width, g + 4 * half, _mm512_shuffle_epi8(table, nibbles(q[g][0], half)),
            _mm512_shuffle_epi8(table, nibbles(q[g][1], half)));
}

INLINE void iq4_nl_panel(const struct strip *s, const int width) {
    const struct tile_iq4_nl *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    const __m512i table = table_of(iq4_values, IQ4_OFFSET);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, IQ4_OFFSET);
        table_dots(sum, a, width, t->q, table, 0);
        table_dots(sum, a, width, t->q, table, 1);
        add_scaled(total, sum, a, width, row_halves(t->d));
    }
    store(s->out, total, width);
}

INLINE void iq4_xs_panel(const struct strip *s, const int width) {
    const struct tile_iq4_xs *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    const __m512i table = table_of(iq4_values, IQ4_OFFSET);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 8; p++, a += width) {
            sums sum;
            begin(sum, a, width, BOTH, IQ4_OFFSET);
            table_dots(sum, a, width, t->part[p].q, table, 0);
            table_dots(sum, a, width, t->part[p].q, table, 1);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d), row_i8(t->part[p].scale)));
        }
    store(s->out, total, width);
}

// mxfp4_scale of 16 rows.
INLINE __m512 mxfp4_scales(const uint8_t *p) {
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), one = _mm512_set1_epi32(1);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(e, one), subnormal, normal));
}

INLINE void mxfp4_panel(const struct strip *s, const int width) {
    const struct tile_mxfp4 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    const __m512i table = table_of(fp4_values, FP4_OFFSET);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        const struct row_vector scale = {{mxfp4_scales(t->e), mxfp4_scales(t->e + 16)}};
        sums sum;
        begin(sum, a, width, BOTH, FP4_OFFSET);
        table_dots(sum, a, width, t->q, table, 0);
        table_dots(sum, a, width, t->q, table, 1);
        add_scaled(total, sum, a, width, scale);
    }
    store(s->out, total, width);
}

// nvfp4_scale of 16 rows: the seven bits are the top of a tiny float.
INLINE __m512 nvfp4_scales(const uint8_t *p) {
    const __m512i bits = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
    const __m512i tiny = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(127)), 20);
    const __mmask16 number = _mm512_cmpneq_epi32_mask(bits, _mm512_set1_epi32(127));
    return _mm512_maskz_mul_ps(number, _mm512_castsi512_ps(tiny), _mm512_set1_ps(0x1p119f));
}

INLINE void nvfp4_panel(const struct strip *s, const int width) {
    const struct tile_nvfp4 *t = s->weights, *end = t + s->columns / 64;
    const __m512i table = table_of(fp4_values, FP4_OFFSET);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 2; p++, a += width) {
            totals part;
            sums sum;
            UNROLL for (int half = 0; half < 2; half++) {
                const uint8_t *bits = t->part[p].scale[half];
                const struct row_vector scale = {{nvfp4_scales(bits), nvfp4_scales(bits + 16)}};
                begin(sum, a, width, half, FP4_OFFSET);
                table_dots(sum, a, width, t->part[p].q, table, half);
                scale_half(part, sum, width, half, scale);
            }
            add_part(total, part, a, width);
        }
    store(s->out, total, width);
}

// --- six bits under a scale for 16 columns ---------------------------------------------------------------------------

// Nibbles joined with the two bits of field f of their pair line, moved to bits 4 and 5.
INLINE __m512i six_bits(__m512i low, __m512i high, int f) {
    __m512i moved =
        f < 2 ? _mm512_slli_epi16(high, (unsigned)(4 - 2 * f)) : _mm512_srli_epi16(high, (unsigned)(2 * f - 4));
    return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(0x30), 0xF8); // low | (moved & 0x30)
}

INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int half) {
    UNROLL for (int g = 0; g < 4; g++) {
        const __m512i h0 = _mm512_loadu_si512(high[g % 2][0]), h1 = _mm512_loadu_si512(high[g % 2][1]);
        dot(sum, a, width, 4 * half + g, six_bits(nibbles(low[g][0], half), h0, 2 * half + g / 2),
            six_bits(nibbles(low[g][1], half), h1, 2 * half + g / 2));
    }
}

INLINE void q6_k_panel(const struct strip *s, const int width) {
    const struct tile_q6_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++)
        for (int p = 0; p < 8; p++, a += width) {
            totals part;
            sums sum;
            UNROLL for (int half = 0; half < 2; half++) {
                begin(sum, a, width, half, 32);
                six_bit_dots(sum, a, width, t->part[p].low, t->part[p].high, half);
                scale_half(part, sum, width, half, row_product(row_halves(t->d), row_i8(t->part[p].scale[half])));
            }
            add_part(total, part, a, width);
        }
    store(s->out, total, width);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

INLINE void q8_0_panel(const struct strip *s, const int width) {
    const struct tile_q8_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++, a += width) {
        sums sum;
        begin(sum, a, width, BOTH, 128);
        UNROLL for (int g = 0; g < 8; g++)
            dot(sum, a, width, g, _mm512_loadu_si512(t->q[g][0]), _mm512_loadu_si512(t->q[g][1]));
        add_scaled(total, sum, a, width, row_halves(t->d));
    }
    store(s->out, total, width);
}

INLINE void bytes_panel(const struct strip *s, const int width) {
    const struct tile_bytes *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks; t < end; t++) {
        const struct row_vector d = {{_mm512_loadu_ps(t->d), _mm512_loadu_ps(t->d + 16)}};
        for (int p = 0; p < 8; p++, a += width) {
            totals part;
            sums sum;
            UNROLL for (int half = 0; half < 2; half++) {
                begin(sum, a, width, half, 128);
                UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) dot(
                    sum, a, width, g, _mm512_loadu_si512(t->part[p].q[g][0]), _mm512_loadu_si512(t->part[p].q[g][1]));
                scale_half(part, sum, width, half, row_product(d, row_i8(t->part[p].scale[half])));
            }
            add_part(total, part, a, width);
        }
    }
    store(s->out, total, width);
}

FOR_WIDTH(strip_q4_0_avx512, q4_0_panel)
FOR_WIDTH(strip_q4_1_avx512, q4_1_panel)
FOR_WIDTH(strip_q4_k_avx512, q4_k_panel)
FOR_WIDTH(strip_q5_0_avx512, q5_0_panel)
FOR_WIDTH(strip_q5_1_avx512, q5_1_panel)
FOR_WIDTH(strip_q5_k_avx512, q5_k_panel)
FOR_WIDTH(strip_q2_k_avx512, q2_k_panel)
FOR_WIDTH(strip_iq4_nl_avx512, iq4_nl_panel)
FOR_WIDTH(strip_iq4_xs_avx512, iq4_xs_panel)
FOR_WIDTH(strip_mxfp4_avx512, mxfp4_panel)
FOR_WIDTH(strip_nvfp4_avx512, nvfp4_panel)
FOR_WIDTH(strip_q6_k_avx512, q6_k_panel)
FOR_WIDTH(strip_q8_0_avx512, q8_0_panel)
FOR_WIDTH(strip_bytes_avx512, bytes_panel)
#endif
