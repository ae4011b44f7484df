// The kernels of prepared weights for AVX2. Values of up to five bits are multiplied unsigned, wider and signed ones by
// magnitude.
#include "engine/cpu/tiles.h"

#if defined(__x86_64__)
#include "engine/cpu/lanes_avx2.h"

// sum[c] = −offset × the sum of the columns of the input, or of one half of them
INLINE void begin(sums sum, const struct activation_block *a, int width, int half, const int offset) {
    UNROLL for (int c = 0; c < width; c++) {
        const int zero = zero_of(&a[c], half);
        sum[c][0] = sum[c][1] = _mm256_set1_epi32(offset % 8 ? zero / 8 * offset : zero * (offset / 8));
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

INLINE void q4_0_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q4_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        begin(sum, a, width, BOTH, 8);
        nibble_dots(sum, a, width, t->q, h);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void q4_1_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q4_1 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        clear_sums(sum, width);
        nibble_dots(sum, a, width, t->q, h);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
        add_minimum(total, a, width, row_halves(t->min + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void q4_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q4_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            sums sum;
            clear_sums(sum, width);
            nibble_dots(sum, a, width, t->part[p].q, h);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_u8(t->part[p].scale + 16 * h)));
            add_minimum(total, a, width, row_product(row_halves(t->dmin + 16 * h), row_u8(t->part[p].min + 16 * h)));
        }
    store(s, h, first, total, width);
}

INLINE void q5_0_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q5_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        begin(sum, a, width, BOTH, 16);
        five_bit_dots(sum, a, width, t->q, t->high, h);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void q5_1_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q5_1 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        clear_sums(sum, width);
        five_bit_dots(sum, a, width, t->q, t->high, h);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
        add_minimum(total, a, width, row_halves(t->min + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void q5_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q5_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            sums sum;
            clear_sums(sum, width);
            five_bit_dots(sum, a, width, t->part[p].q, t->part[p].high, h);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_u8(t->part[p].scale + 16 * h)));
            add_minimum(total, a, width, row_product(row_halves(t->dmin + 16 * h), row_u8(t->part[p].min + 16 * h)));
        }
    store(s, h, first, total, width);
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

// part[c] −= min × the sum of the input's half, which is there times −8
INLINE void subtract_half(totals part, const struct activation_block *a, int width, int half, struct row_vector min) {
    UNROLL for (int v = 0; v < 2; v++) {
        const __m256 eighth = _mm256_mul_ps(min.v[v], _mm256_set1_ps(0.125f));
        UNROLL for (int c = 0; c < width; c++) part[c][v] =
            _mm256_fmadd_ps(_mm256_set1_ps((float)zero_of(&a[c], half)), eighth, part[c][v]);
    }
}

// Low and high nibbles of 16 bytes as numbers.
INLINE struct row_vector row_nibbles(const uint8_t p[16], int high) {
    const __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return row_bytes(_mm_and_si128(high ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15)));
}

INLINE void q2_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q2_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            totals part;
            UNROLL for (int half = 0; half < 2; half++) {
                sums sum;
                clear_sums(sum, width);
                pair_dots(sum, a, width, t->part[p].q, h, half);
                scale_half(part, sum, width, half,
                           row_product(row_halves(t->d + 16 * h), row_nibbles(t->part[p].scale[half] + 16 * h, 0)));
            }
            UNROLL for (int half = 0; half < 2; half++) subtract_half(
                part, a, width, half,
                row_product(row_halves(t->dmin + 16 * h), row_nibbles(t->part[p].scale[half] + 16 * h, 1)));
            add_part(total, part, a, width);
        }
    store(s, h, first, total, width);
}

// --- four bits that stand for other values ---------------------------------------------------------------------------

INLINE __m256i table_of(const int8_t values[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)values));
}

INLINE void table_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], __m256i table,
                       int h, int half) {
    UNROLL for (int g = 0; g < 4; g++)
        signed_dot(sum, a, width, g + 4 * half, _mm256_shuffle_epi8(table, nibbles(q[g][h], 0, half)),
                   _mm256_shuffle_epi8(table, nibbles(q[g][h], 1, half)));
}

INLINE void iq4_nl_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_iq4_nl *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    const __m256i table = table_of(iq4_values);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        clear_sums(sum, width);
        table_dots(sum, a, width, t->q, table, h, 0);
        table_dots(sum, a, width, t->q, table, h, 1);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void iq4_xs_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_iq4_xs *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    const __m256i table = table_of(iq4_values);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            sums sum;
            clear_sums(sum, width);
            table_dots(sum, a, width, t->part[p].q, table, h, 0);
            table_dots(sum, a, width, t->part[p].q, table, h, 1);
            add_scaled(total, sum, a, width, row_product(row_halves(t->d + 16 * h), row_i8(t->part[p].scale + 16 * h)));
        }
    store(s, h, first, total, width);
}

// mxfp4_scale of 8 rows.
INLINE __m256 mxfp4_scales(const uint8_t *p) {
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), one = _mm256_set1_epi32(1);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, _mm256_cmpgt_epi32(e, one)));
}

INLINE void mxfp4_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_mxfp4 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    const __m256i table = table_of(fp4_values);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        const struct row_vector scale = {{mxfp4_scales(t->e + 16 * h), mxfp4_scales(t->e + 16 * h + 8)}};
        sums sum;
        clear_sums(sum, width);
        table_dots(sum, a, width, t->q, table, h, 0);
        table_dots(sum, a, width, t->q, table, h, 1);
        add_scaled(total, sum, a, width, scale);
    }
    store(s, h, first, total, width);
}

// nvfp4_scale of 8 rows: the seven bits are the top of a tiny float.
INLINE __m256 nvfp4_scales(const uint8_t *p) {
    const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), all = _mm256_set1_epi32(127);
    const __m256i tiny = _mm256_slli_epi32(_mm256_and_si256(bits, all), 20);
    const __m256 scale = _mm256_mul_ps(_mm256_castsi256_ps(tiny), _mm256_set1_ps(0x1p119f));
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, all)), scale);
}

INLINE void nvfp4_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_nvfp4 *t = s->weights, *end = t + s->columns / 64;
    const __m256i table = table_of(fp4_values);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 2; p++, a += s->width) {
            totals part;
            UNROLL for (int half = 0; half < 2; half++) {
                const uint8_t *bits = t->part[p].scale[half] + 16 * h;
                const struct row_vector scale = {{nvfp4_scales(bits), nvfp4_scales(bits + 8)}};
                sums sum;
                clear_sums(sum, width);
                table_dots(sum, a, width, t->part[p].q, table, h, half);
                scale_half(part, sum, width, half, scale);
            }
            add_part(total, part, a, width);
        }
    store(s, h, first, total, width);
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

INLINE void q6_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q6_k *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            totals part;
            UNROLL for (int half = 0; half < 2; half++) {
                sums sum;
                begin(sum, a, width, half, 32);
                six_bit_dots(sum, a, width, t->part[p].low, t->part[p].high, h, half);
                scale_half(part, sum, width, half,
                           row_product(row_halves(t->d + 16 * h), row_i8(t->part[p].scale[half] + 16 * h)));
            }
            add_part(total, part, a, width);
        }
    store(s, h, first, total, width);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

// Line g, made signed again.
INLINE void signed_line_dot(sums sum, const struct activation_block *a, int width, const uint8_t q[8][2][64], int h,
                            int g) {
    const __m256i flip = _mm256_set1_epi8((char)0x80);
    signed_dot(sum, a, width, g, _mm256_xor_si256(line_half(q[g][h], 0), flip),
               _mm256_xor_si256(line_half(q[g][h], 1), flip));
}

INLINE void q8_0_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q8_0 *t = s->weights, *end = t + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++, a += s->width) {
        sums sum;
        clear_sums(sum, width);
        UNROLL for (int g = 0; g < 8; g++) signed_line_dot(sum, a, width, t->q, h, g);
        add_scaled(total, sum, a, width, row_halves(t->d + 16 * h));
    }
    store(s, h, first, total, width);
}

INLINE void bytes_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_bytes *t = s->weights, *end = t + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; t < end; t++)
        for (int p = 0; p < 8; p++, a += s->width) {
            totals part;
            const struct row_vector d = {{_mm256_loadu_ps(t->d + 16 * h), _mm256_loadu_ps(t->d + 16 * h + 8)}};
            UNROLL for (int half = 0; half < 2; half++) {
                sums sum;
                clear_sums(sum, width);
                UNROLL for (int g = 4 * half; g < 4 * half + 4; g++) signed_line_dot(sum, a, width, t->part[p].q, h, g);
                scale_half(part, sum, width, half, row_product(d, row_i8(t->part[p].scale[half] + 16 * h)));
            }
            add_part(total, part, a, width);
        }
    store(s, h, first, total, width);
}

FOR_PARTS(strip_q4_0_avx2, q4_0_part)
FOR_PARTS(strip_q4_1_avx2, q4_1_part)
FOR_PARTS(strip_q4_k_avx2, q4_k_part)
FOR_PARTS(strip_q5_0_avx2, q5_0_part)
FOR_PARTS(strip_q5_1_avx2, q5_1_part)
FOR_PARTS(strip_q5_k_avx2, q5_k_part)
FOR_PARTS(strip_q2_k_avx2, q2_k_part)
FOR_PARTS(strip_iq4_nl_avx2, iq4_nl_part)
FOR_PARTS(strip_iq4_xs_avx2, iq4_xs_part)
FOR_PARTS(strip_mxfp4_avx2, mxfp4_part)
FOR_PARTS(strip_nvfp4_avx2, nvfp4_part)
FOR_PARTS(strip_q6_k_avx2, q6_k_part)
FOR_PARTS(strip_q8_0_avx2, q8_0_part)
FOR_PARTS(strip_bytes_avx2, bytes_part)
#endif
