// AVX2 with FMA and F16C, without VNNI: bytes are multiplied in pairs into 16-bit sums. A strip is computed in halves of
// 16 rows (two vectors of 8) and at most three inputs at a time, so that all accumulators live in registers.
#include "engine/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "engine/cpu/unroll.h"

enum { PART_COLUMNS = 3 };

// Calls function_part(s, h, first, width) for both halves of the strip and all inputs, width as a constant.
#define FOR_PARTS(function)                                                                                            \
    static void function(const struct strip *s) {                                                                     \
        for (int h = 0; h < 2; h++)                                                                                    \
            for (int first = 0; first < s->width; first += PART_COLUMNS) switch (s->width - first) {                   \
                case 1: function##_part(s, h, first, 1); break;                                                        \
                case 2: function##_part(s, h, first, 2); break;                                                        \
                default: function##_part(s, h, first, 3); break;                                                       \
                }                                                                                                      \
    }
_Static_assert(PART_COLUMNS == 3, "FOR_PARTS lists every width");

// --- prepared weights ------------------------------------------------------------------------------------------------

typedef __m256i sums[PART_COLUMNS][2]; // of 16-bit pairs or of 32-bit rows
typedef __m256 totals[PART_COLUMNS][2];

INLINE __m256i line_half(const uint8_t *line, int v) { return _mm256_loadu_si256((const __m256i *)line + v); }

INLINE __m256i broadcast_quad(const int8_t *q) {
    int32_t quad;
    memcpy(&quad, q, sizeof quad);
    return _mm256_set1_epi32(quad);
}

INLINE void clear_sums(sums sum, int width) {
    UNROLL for (int c = 0; c < width; c++) sum[c][0] = sum[c][1] = _mm256_setzero_si256();
}

INLINE void clear(totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) total[c][0] = total[c][1] = _mm256_setzero_ps();
}

// pairs[c] += weights × columns 4g..4g+3, in 16 bits: the caller keeps |weights| × 127 × 2 × steps below 2^15.
INLINE void dot(sums pairs, const struct activation_block *a, int width, int g, __m256i w0, __m256i w1) {
    UNROLL for (int c = 0; c < width; c++) {
        __m256i x = broadcast_quad(a[c].q + 4 * g);
        pairs[c][0] = _mm256_add_epi16(pairs[c][0], _mm256_maddubs_epi16(w0, x));
        pairs[c][1] = _mm256_add_epi16(pairs[c][1], _mm256_maddubs_epi16(w1, x));
    }
}

INLINE __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

INLINE void add_scaled(totals total, sums sum, const struct activation_block *a, int width, __m256 scale0, __m256 scale1) {
    UNROLL for (int c = 0; c < width; c++) {
        __m256 scale = _mm256_set1_ps(a[c].scale);
        total[c][0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c][0]), _mm256_mul_ps(scale0, scale), total[c][0]);
        total[c][1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[c][1]), _mm256_mul_ps(scale1, scale), total[c][1]);
    }
}

INLINE void store(const struct strip *s, int h, int first, totals total, int width) {
    UNROLL for (int c = 0; c < width; c++) {
        float *out = s->out + (first + c) * STRIP_ROWS + 16 * h;
        _mm256_storeu_ps(out, total[c][0]);
        _mm256_storeu_ps(out + 8, total[c][1]);
    }
}

INLINE __m256 halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE __m256 bytes_u8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
INLINE __m256 bytes_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

// Eight steps of at most 15 × 127 × 2 fit 16 bits.
INLINE void nibble_dots(sums sum, const struct activation_block *a, int width, const uint8_t q[4][2][64], int h) {
    const __m256i mask = _mm256_set1_epi8(15);
    sums pairs;
    clear_sums(pairs, width);
    UNROLL for (int g = 0; g < 4; g++) {
        __m256i w0 = line_half(q[g][h], 0), w1 = line_half(q[g][h], 1);
        dot(pairs, a, width, g, _mm256_and_si256(w0, mask), _mm256_and_si256(w1, mask));
        w0 = _mm256_and_si256(_mm256_srli_epi16(w0, 4), mask);
        w1 = _mm256_and_si256(_mm256_srli_epi16(w1, 4), mask);
        dot(pairs, a, width, g + 4, w0, w1);
    }
    UNROLL for (int c = 0; c < width; c++) {
        sum[c][0] = widen(pairs[c][0]);
        sum[c][1] = widen(pairs[c][1]);
    }
}

INLINE void strip_q4_0_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q4_0 *tile = s->weights, *end = tile + s->columns / BLOCK_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; tile < end; tile++, a += s->width) {
        sums sum;
        nibble_dots(sum, a, width, tile->q, h);
        UNROLL for (int c = 0; c < width; c++) {
            sum[c][0] = _mm256_add_epi32(sum[c][0], _mm256_set1_epi32(a[c].zero));
            sum[c][1] = _mm256_add_epi32(sum[c][1], _mm256_set1_epi32(a[c].zero));
        }
        add_scaled(total, sum, a, width, halves(tile->d + 16 * h), halves(tile->d + 16 * h + 8));
    }
    store(s, h, first, total, width);
}

// The weights' magnitude times the inputs with the weights' signs: 128 × 127 × 2 fits 16 bits, once.
INLINE void strip_q8_0_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q8_0 *tile = s->weights, *end = tile + s->columns / BLOCK_COLUMNS;
    const __m256i flip = _mm256_set1_epi8((char)0x80);
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; tile < end; tile++, a += s->width) {
        sums sum;
        clear_sums(sum, width);
        UNROLL for (int g = 0; g < 8; g++)
            UNROLL for (int v = 0; v < 2; v++) {
                const __m256i w = _mm256_xor_si256(line_half(tile->q[g][h], v), flip), magnitude = _mm256_abs_epi8(w);
                UNROLL for (int c = 0; c < width; c++) {
                    __m256i x = _mm256_sign_epi8(broadcast_quad(a[c].q + 4 * g), w);
                    sum[c][v] = _mm256_add_epi32(sum[c][v], widen(_mm256_maddubs_epi16(magnitude, x)));
                }
            }
        add_scaled(total, sum, a, width, halves(tile->d + 16 * h), halves(tile->d + 16 * h + 8));
    }
    store(s, h, first, total, width);
}

INLINE void strip_q4_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q4_k *tile = s->weights, *end = tile + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; tile < end; tile++)
        for (int p = 0; p < 8; p++, a += s->width) {
            sums sum;
            nibble_dots(sum, a, width, tile->part[p].q, h);
            const uint8_t *scale = tile->part[p].scale + 16 * h, *min = tile->part[p].min + 16 * h;
            const uint16_t *d = tile->d + 16 * h, *dmin = tile->dmin + 16 * h;
            add_scaled(total, sum, a, width, _mm256_mul_ps(halves(d), bytes_u8(scale)),
                       _mm256_mul_ps(halves(d + 8), bytes_u8(scale + 8)));
            __m256 min0 = _mm256_mul_ps(halves(dmin), bytes_u8(min));
            __m256 min1 = _mm256_mul_ps(halves(dmin + 8), bytes_u8(min + 8));
            UNROLL for (int c = 0; c < width; c++) {
                total[c][0] = _mm256_fmadd_ps(min0, _mm256_set1_ps(a[c].minimum), total[c][0]);
                total[c][1] = _mm256_fmadd_ps(min1, _mm256_set1_ps(a[c].minimum), total[c][1]);
            }
        }
    store(s, h, first, total, width);
}

// The two upper bits of columns 4(2f + v).. moved to bits 4 and 5.
INLINE __m256i high_bits(__m256i high, int f) {
    __m256i moved = f == 0 ? _mm256_slli_epi16(high, 4) : f == 1 ? _mm256_slli_epi16(high, 2)
                  : f == 2 ? high : _mm256_srli_epi16(high, 2);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
}

// Columns of one half (0–15: the low nibbles, 16–31: the high ones); two steps of 63 × 127 × 2 fit 16 bits.
INLINE void six_bit_dots(sums sum, const struct activation_block *a, int width, const uint8_t low[4][2][64],
                         const uint8_t high[2][2][64], int h, int half) {
    const __m256i mask = _mm256_set1_epi8(15);
    UNROLL for (int two = 0; two < 4; two += 2) {
        sums pairs;
        clear_sums(pairs, width);
        UNROLL for (int g = two; g < two + 2; g++) {
            __m256i w[2];
            UNROLL for (int v = 0; v < 2; v++) {
                __m256i line = line_half(low[g][h], v);
                line = _mm256_and_si256(half ? _mm256_srli_epi16(line, 4) : line, mask);
                w[v] = _mm256_or_si256(line, high_bits(line_half(high[g % 2][h], v), half * 2 + g / 2));
            }
            dot(pairs, a, width, half * 4 + g, w[0], w[1]);
        }
        UNROLL for (int c = 0; c < width; c++) {
            sum[c][0] = _mm256_add_epi32(sum[c][0], widen(pairs[c][0]));
            sum[c][1] = _mm256_add_epi32(sum[c][1], widen(pairs[c][1]));
        }
    }
}

INLINE void strip_q6_k_part(const struct strip *s, int h, int first, const int width) {
    const struct tile_q6_k *tile = s->weights, *end = tile + s->columns / SUPER_COLUMNS;
    totals total;
    clear(total, width);
    for (const struct activation_block *a = s->blocks + first; tile < end; tile++)
        for (int p = 0; p < 8; p++, a += s->width) {
            totals part;
            sums sum;
            UNROLL for (int half = 0; half < 2; half++) {
                UNROLL for (int c = 0; c < width; c++) {
                    int32_t zero = half ? a[c].zero - a[c].zero_low : a[c].zero_low;
                    sum[c][0] = sum[c][1] = _mm256_set1_epi32(zero * 4);
                }
                six_bit_dots(sum, a, width, tile->part[p].low, tile->part[p].high, h, half);
                const int8_t *scale = tile->part[p].scale[half] + 16 * h;
                __m256 scale0 = _mm256_mul_ps(halves(tile->d + 16 * h), bytes_i8(scale));
                __m256 scale1 = _mm256_mul_ps(halves(tile->d + 16 * h + 8), bytes_i8(scale + 8));
                UNROLL for (int c = 0; c < width; c++) {
                    __m256 sum0 = _mm256_cvtepi32_ps(sum[c][0]), sum1 = _mm256_cvtepi32_ps(sum[c][1]);
                    part[c][0] = half ? _mm256_fmadd_ps(sum0, scale0, part[c][0]) : _mm256_mul_ps(sum0, scale0);
                    part[c][1] = half ? _mm256_fmadd_ps(sum1, scale1, part[c][1]) : _mm256_mul_ps(sum1, scale1);
                }
            }
            UNROLL for (int c = 0; c < width; c++) {
                __m256 scale = _mm256_set1_ps(a[c].scale);
                total[c][0] = _mm256_fmadd_ps(part[c][0], scale, total[c][0]);
                total[c][1] = _mm256_fmadd_ps(part[c][1], scale, total[c][1]);
            }
        }
    store(s, h, first, total, width);
}

FOR_PARTS(strip_q4_0)
FOR_PARTS(strip_q8_0)
FOR_PARTS(strip_q4_k)
FOR_PARTS(strip_q6_k)

// --- weights in the file's own layout --------------------------------------------------------------------------------

// Sums 16 lanes as a tree: l with l + 8, l + 4, l + 2, l + 1.
INLINE float reduce(__m256 low, __m256 high) {
    __m256 a = _mm256_add_ps(low, high);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

INLINE __m256 load_f32(const void *p) { return _mm256_loadu_ps(p); }
INLINE __m256 load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
INLINE __m256 load_bf16(const void *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

enum { FLOAT_ROWS = 2, LANES = 16 };

// The last columns of a row, followed by zeros, where a whole vector may be read.
INLINE const void *padded(uint8_t *buffer, const void *from, size_t bytes) {
    memset(buffer, 0, LANES * sizeof(float));
    memcpy(buffer, from, bytes);
    return buffer;
}

#define FLOAT_STRIP(name, load, bytes)                                                                                 \
    INLINE void name##_step(const uint8_t *const *w, const float *const *x, const int rows, const int width,           \
                            __m256 total[FLOAT_ROWS][PART_COLUMNS][2]) {                                               \
        UNROLL for (int v = 0; v < 2; v++) {                                                                           \
            __m256 weight[FLOAT_ROWS];                                                                                 \
            UNROLL for (int k = 0; k < rows; k++) weight[k] = load(w[k] + 8 * v * bytes);                              \
            UNROLL for (int c = 0; c < width; c++) {                                                                   \
                __m256 value = _mm256_loadu_ps(x[c] + 8 * v);                                                          \
                UNROLL for (int k = 0; k < rows; k++) total[k][c][v] = _mm256_fmadd_ps(weight[k], value, total[k][c][v]); \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void name##_rows(const struct strip *s, int row, const int rows, int first, const int width) {              \
        const uint8_t *w[FLOAT_ROWS];                                                                                  \
        const float *x[PART_COLUMNS];                                                                                  \
        __m256 total[FLOAT_ROWS][PART_COLUMNS][2];                                                                     \
        UNROLL for (int c = 0; c < width; c++) x[c] = s->values + (size_t)(first + c) * s->columns;                    \
        UNROLL for (int k = 0; k < rows; k++) {                                                                        \
            w[k] = (const uint8_t *)s->weights + (size_t)(row + k) * s->row_bytes;                                     \
            UNROLL for (int c = 0; c < width; c++) total[k][c][0] = total[k][c][1] = _mm256_setzero_ps();              \
        }                                                                                                              \
        int i = 0;                                                                                                     \
        for (; i + LANES <= s->columns; i += LANES) {                                                                  \
            name##_step(w, x, rows, width, total);                                                                     \
            UNROLL for (int k = 0; k < rows; k++) w[k] += LANES * bytes;                                               \
            UNROLL for (int c = 0; c < width; c++) x[c] += LANES;                                                      \
        }                                                                                                              \
        if (i < s->columns) {                                                                                          \
            uint8_t buffer[FLOAT_ROWS + PART_COLUMNS][LANES * sizeof(float)];                                          \
            const size_t left = (size_t)(s->columns - i);                                                              \
            UNROLL for (int k = 0; k < rows; k++) w[k] = padded(buffer[k], w[k], left * bytes);                        \
            UNROLL for (int c = 0; c < width; c++) x[c] = padded(buffer[FLOAT_ROWS + c], x[c], left * sizeof(float));  \
            name##_step(w, x, rows, width, total);                                                                     \
        }                                                                                                              \
        UNROLL for (int k = 0; k < rows; k++)                                                                          \
            UNROLL for (int c = 0; c < width; c++)                                                                     \
                s->out[(first + c) * STRIP_ROWS + row + k] = reduce(total[k][c][0], total[k][c][1]);                   \
    }                                                                                                                  \
    INLINE void name##_part(const struct strip *s, int h, int first, const int width) {                                \
        const int end = s->rows < 16 * h + 16 ? s->rows : 16 * h + 16;                                                 \
        int row = 16 * h;                                                                                              \
        for (; row + FLOAT_ROWS <= end; row += FLOAT_ROWS) name##_rows(s, row, FLOAT_ROWS, first, width);              \
        for (; row < end; row++) name##_rows(s, row, 1, first, width);                                                 \
    }                                                                                                                  \
    FOR_PARTS(name)

FLOAT_STRIP(strip_f32, load_f32, 4)
FLOAT_STRIP(strip_f16, load_f16, 2)
FLOAT_STRIP(strip_bf16, load_bf16, 2)

// --- vectors ---------------------------------------------------------------------------------------------------------

static void rms_norm(const float *x, const float *weight, float *y, int n, float epsilon) {
    __m256 low = _mm256_setzero_ps(), high = low;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    if (i < n) {
        uint8_t buffer[LANES * sizeof(float)];
        const float *tail = padded(buffer, x + i, (size_t)(n - i) * sizeof(float));
        __m256 a = _mm256_loadu_ps(tail), b = _mm256_loadu_ps(tail + 8);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    const float factor = 1 / sqrtf(reduce(low, high) / (float)n + epsilon);
    for (i = 0; i + 8 <= n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(factor));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(v, _mm256_loadu_ps(weight + i)));
    }
    for (; i < n; i++) y[i] = x[i] * factor * weight[i];
}

INLINE int32_t reduce_max(__m256i v) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1)));
}

INLINE int32_t reduce_sum(__m256i v) {
    __m128i m = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_add_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(m, _mm_shuffle_epi32(m, 0xB1)));
}

static void quantize(const float *x, int n_blocks, struct activation_block *out, int stride) {
    for (int b = 0; b < n_blocks; b++, x += BLOCK_COLUMNS, out += stride) {
        __m256i top = _mm256_setzero_si256(), q[4];
        // As integers magnitudes order like floats, with infinities and NaNs on top.
        for (int i = 0; i < 4; i++) {
            __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(x + 8 * i));
            top = _mm256_max_epi32(top, _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF)));
        }
        const int32_t most = reduce_max(top);
        float maximum;
        memcpy(&maximum, &most, sizeof maximum);
        const bool finite = most < 0x7F800000;
        const float inverse = finite && maximum > QUANTIZE_TINY ? 127 / maximum : 0;
        const __m256i keep = _mm256_set1_epi32(finite ? -1 : 0);
        for (int i = 0; i < 4; i++) {
            __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse));
            q[i] = _mm256_and_si256(_mm256_cvtps_epi32(scaled), keep);
        }
        const int low = reduce_sum(_mm256_add_epi32(q[0], q[1])), sum = low + reduce_sum(_mm256_add_epi32(q[2], q[3]));
        // Packing works in 128-bit lanes; the permutation puts the quads back into order.
        __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)out->q, bytes);
        out->scale = !finite ? NAN : maximum > QUANTIZE_TINY ? maximum / 127 : 0;
        out->zero = -8 * sum;
        out->zero_low = -8 * low;
        out->minimum = out->scale * (float)-sum;
    }
}

INLINE __m256 exponential(__m256 x) {
    x = _mm256_min_ps(_mm256_set1_ps(EXP_HIGH), x); // in this order a NaN stays one
    x = _mm256_max_ps(_mm256_set1_ps(EXP_LOW), x);
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_LOG2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_HIGH), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-EXP_LN2_LOW), r);
    __m256 p = _mm256_fmadd_ps(r, _mm256_set1_ps(EXP_C6), _mm256_set1_ps(EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1));
    __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(exponent));
}

static void swiglu(float *gate, const float *up, int n) {
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1);
    for (int i = 0; i < n; i += 8) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, exponential(_mm256_xor_ps(g, sign))));
        _mm256_storeu_ps(gate + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
}

static void to_half(const float *x, uint16_t *out, int n) {
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) out[i] = f16_from_f32(x[i]);
}

static void scale(float *x, int n, float factor) {
    for (int i = 0; i < n; i += 8) _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(factor)));
}

// --- attention -------------------------------------------------------------------------------------------------------

enum { PRODUCT_ROWS = 5 }; // with two vectors each: ten accumulators

INLINE void half_product_rows(const uint16_t *b, int b_stride, int n, const float *a, int a_stride, const int rows,
                              float *out, int out_stride) {
    __m256 total[PRODUCT_ROWS][2];
    UNROLL for (int i = 0; i < rows; i++) {
        total[i][0] = _mm256_loadu_ps(out + (size_t)i * out_stride);
        total[i][1] = _mm256_loadu_ps(out + (size_t)i * out_stride + 8);
    }
    for (int j = 0; j < n; j++, b += b_stride) {
        __m256 b0 = halves(b), b1 = halves(b + 8);
        UNROLL for (int i = 0; i < rows; i++) {
            __m256 x = _mm256_set1_ps(a[(size_t)i * a_stride + j]);
            total[i][0] = _mm256_fmadd_ps(x, b0, total[i][0]);
            total[i][1] = _mm256_fmadd_ps(x, b1, total[i][1]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++) {
        _mm256_storeu_ps(out + (size_t)i * out_stride, total[i][0]);
        _mm256_storeu_ps(out + (size_t)i * out_stride + 8, total[i][1]);
    }
}

static void half_product(const uint16_t *b, int b_stride, int n, const float *a, int a_stride, int rows, float *out,
                         int out_stride) {
    for (int t = 0; t < 32; t += 16) {
        int i = 0;
        for (; i + PRODUCT_ROWS <= rows; i += PRODUCT_ROWS)
            half_product_rows(b + t, b_stride, n, a + (size_t)i * a_stride, a_stride, PRODUCT_ROWS,
                              out + (size_t)i * out_stride + t, out_stride);
        for (; i < rows; i++)
            half_product_rows(b + t, b_stride, n, a + (size_t)i * a_stride, a_stride, 1,
                              out + (size_t)i * out_stride + t, out_stride);
    }
}

static float softmax_page(float *scores, int valid, struct softmax *state) {
    float maximum = state->maximum;
    __m256 weight[4];
    for (int t = 0; t < valid; t++) maximum = maximum > scores[t] ? maximum : scores[t];
    for (int t = valid; t < 32; t++) scores[t] = -INFINITY;
    for (int v = 0; v < 4; v++) {
        const __m256 s = _mm256_sub_ps(_mm256_loadu_ps(scores + 8 * v), _mm256_set1_ps(maximum));
        const __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * v));
        const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(valid), index);
        weight[v] = _mm256_and_ps(exponential(s), _mm256_castsi256_ps(inside));
        _mm256_storeu_ps(scores + 8 * v, weight[v]);
    }
    const float correction = _mm256_cvtss_f32(exponential(_mm256_set1_ps(state->maximum - maximum)));
    const float sum = reduce(_mm256_add_ps(weight[0], weight[2]), _mm256_add_ps(weight[1], weight[3]));
    state->sum = fmaf(state->sum, correction, sum);
    state->maximum = maximum;
    return correction;
}

const struct cpu_kernels kernels_avx2 = {
    .name = "AVX2",
    .strip = {[BLOCK_F32] = strip_f32, [BLOCK_F16] = strip_f16, [BLOCK_BF16] = strip_bf16, [BLOCK_Q8_0] = strip_q8_0,
              [BLOCK_Q4_0] = strip_q4_0, [BLOCK_Q4_K] = strip_q4_k, [BLOCK_Q6_K] = strip_q6_k},
    .rms_norm = rms_norm,
    .quantize = quantize,
    .swiglu = swiglu,
    .to_half = to_half,
    .half_product = half_product,
    .softmax_page = softmax_page,
    .scale = scale,
};
#endif
