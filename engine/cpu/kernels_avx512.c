// AVX-512: weights in the file's own layout, vectors and attention. Packed weights are in packed_avx512.c.
#include "engine/cpu/kernel_table.h"
#include "engine/cpu/packed.h"
#include "engine/cpu/packed_values.h"

#if defined(__x86_64__)
#include <math.h>

#include "engine/cpu/lanes_avx512.h"

// --- weights in the file's own layout --------------------------------------------------------------------------------

INLINE __m512 load_f32(const uint8_t *p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
INLINE __m512 load_f16(const uint8_t *p, __mmask16 mask) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p)); }
INLINE __m512 load_bf16(const uint8_t *p, __mmask16 mask) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

enum { FLOAT_ROWS = 8 };
INLINE int float_rows(int width) { return width <= 3 ? FLOAT_ROWS : 4; } // weight rows at once: at most 24 accumulators

#define FLOAT_STEP(load, bytes, mask)                                                                                  \
    __m512 weight[FLOAT_ROWS];                                                                                         \
    UNROLL for (int k = 0; k < rows; k++) {                                                                            \
        weight[k] = load(w + (size_t)k * s->row_bytes + (size_t)i * bytes, mask);                                      \
        fetch_ahead(s, w + (size_t)k * s->row_bytes + (size_t)i * bytes);                                              \
    }                                                                                                                  \
    UNROLL for (int c = 0; c < width; c++) {                                                                           \
        __m512 value = _mm512_maskz_loadu_ps(mask, s->values + (size_t)c * s->columns + i);                            \
        UNROLL for (int k = 0; k < rows; k++) total[k][c] = _mm512_fmadd_ps(weight[k], value, total[k][c]);            \
    }

#define FLOAT_STRIP(name, load, bytes)                                                                                 \
    INLINE void name##_rows(const struct strip *s, int first, const int rows, const int width) {                       \
        const uint8_t *w = (const uint8_t *)s->weights + (size_t)first * s->row_bytes;                                 \
        __m512 total[FLOAT_ROWS][PANEL_INPUTS];                                                                        \
        UNROLL for (int k = 0; k < rows; k++) UNROLL for (int c = 0; c < width; c++) total[k][c] =                     \
            _mm512_setzero_ps();                                                                                       \
        int i = 0;                                                                                                     \
        for (; i + 16 <= s->columns; i += 16) {                                                                        \
            FLOAT_STEP(load, bytes, 0xFFFF)                                                                            \
        }                                                                                                              \
        if (i < s->columns) {                                                                                          \
            const __mmask16 tail = (__mmask16)((1u << (s->columns - i)) - 1);                                          \
            FLOAT_STEP(load, bytes, tail)                                                                              \
        }                                                                                                              \
        UNROLL for (int k = 0; k < rows; k++) UNROLL for (int c = 0; c < width; c++)                                   \
            s->out[c * STRIP_ROWS + first + k] = lanes_sum(&total[k][c]);                                              \
    }                                                                                                                  \
    INLINE void name##_panel(const struct strip *s, const int width) {                                                 \
        const int rows = float_rows(width);                                                                            \
        int r = 0;                                                                                                     \
        for (; r + rows <= s->rows; r += rows) name##_rows(s, r, rows, width);                                         \
        for (; r < s->rows; r++) name##_rows(s, r, 1, width);                                                          \
    }                                                                                                                  \
    static FOR_WIDTH(name, name##_panel)

FLOAT_STRIP(strip_f32, load_f32, 4)
FLOAT_STRIP(strip_f16, load_f16, 2)
FLOAT_STRIP(strip_bf16, load_bf16, 2)

// --- vectors ---------------------------------------------------------------------------------------------------------

INLINE __mmask16 mask_of(int n) { return n >= 16 ? 0xFFFF : (__mmask16)((1u << n) - 1); }

// 1 / √(mean of x² + ε)
static float inverse_root(const float *x, int n, float epsilon) {
    __m512 lanes = _mm512_setzero_ps();
    for (int i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(mask_of(n - i), x + i);
        lanes = _mm512_fmadd_ps(v, v, lanes);
    }
    return 1 / sqrtf(lanes_sum(&lanes) / (float)n + epsilon);
}

static float sum_of(const float *x, int n) {
    __m512 lanes = _mm512_setzero_ps();
    for (int i = 0; i < n; i += 16) lanes = _mm512_add_ps(lanes, _mm512_maskz_loadu_ps(mask_of(n - i), x + i));
    return lanes_sum(&lanes);
}

static void rms_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    (void)bias;
    const __m512 factor = _mm512_set1_ps(inverse_root(x, n, epsilon));
    for (int i = 0; i < n; i += 16) {
        __mmask16 m = mask_of(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), factor);
        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, weight + i)));
    }
}

// As integers magnitudes order like floats, with infinities and NaNs on top.
INLINE float greatest_magnitude(const float *x) {
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i bits = _mm512_max_epi32(_mm512_and_si512(_mm512_loadu_si512(x), magnitude),
                                          _mm512_and_si512(_mm512_loadu_si512(x + 16), magnitude));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(bits))));
}

// Of the sixteen lanes of the scalar kernel l + 8.
INLINE __m256 squared_errors(const float *x, float inverse) {
    __m512 error[2];
    UNROLL for (int i = 0; i < 2; i++) // what is left of each after rounding
        error[i] = _mm512_reduce_ps(_mm512_loadu_ps(x + 16 * i) * _mm512_set1_ps(inverse),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512 sum = _mm512_fmadd_ps(error[1], error[1], error[0] * error[0]);
    return _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
}

// q[0..31]; returns the sums of their halves.
INLINE struct half_sums round_block(const float *x, float inverse, int8_t q[BLOCK_COLUMNS]) {
    __m128i half[2];
    UNROLL for (int i = 0; i < 2; i++) half[i] =
        _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_loadu_ps(x + 16 * i) * _mm512_set1_ps(inverse)));
    const __m256i bytes = _mm256_set_m128i(half[1], half[0]);
    _mm256_storeu_si256((__m256i *)q, bytes);
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
    sum = _mm256_hadd_epi32(sum, sum);
    sum = _mm256_hadd_epi32(sum, sum);
    return (struct half_sums){_mm256_extract_epi32(sum, 0), _mm256_extract_epi32(sum, 4)};
}

enum { MATMUL_ROWS = 8 }; // with two vectors each: sixteen accumulators

#include "engine/cpu/vector_kernels.h"

static void accumulate(float *sum, const float *x, int n, float factor) {
    for (int i = 0; i < n; i += 16) {
        const __mmask16 m = mask_of(n - i);
        const __m512 v =
            _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_set1_ps(factor), _mm512_maskz_loadu_ps(m, sum + i));
        _mm512_mask_storeu_ps(sum + i, m, v);
    }
}

static void to_f16(const float *x, uint16_t *out, int n) {
    for (int i = 0; i < n; i += 16) {
        __mmask16 m = mask_of(n - i);
        __m256i h = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(out + i, m, h);
    }
}

// --- attention -------------------------------------------------------------------------------------------------------

INLINE vector vector_bf16(const uint16_t *p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

// The greatest of the 16 numbers of each of 4 or 8 vectors, as unsigned integers: that of vector i is in element
// top_at(i).
INLINE __m512i greatest_of(const __m512i *top, const int n) {
    __m512i four[2];
    UNROLL for (int i = 0; i < n / 4; i++) {
        const __m512i *t = top + 4 * i;
        const __m512i ab = _mm512_max_epu32(_mm512_unpacklo_epi32(t[0], t[1]), _mm512_unpackhi_epi32(t[0], t[1])),
                      cd = _mm512_max_epu32(_mm512_unpacklo_epi32(t[2], t[3]), _mm512_unpackhi_epi32(t[2], t[3]));
        four[i] = _mm512_max_epu32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    }
    const __m512i other = four[n / 4 - 1]; // 128 bits each: a quarter of the numbers of vectors 0–3, or of 4–7
    const __m512i pairs =
        _mm512_max_epu32(_mm512_shuffle_i32x4(four[0], other, 0x44), _mm512_shuffle_i32x4(four[0], other, 0xEE));
    return _mm512_max_epu32(pairs, _mm512_shuffle_i32x4(pairs, pairs, 0xB1));
}
INLINE int top_at(int i) { return i / 4 * 8 + i % 4; }

// As in kernels_scalar.c, for some rows at once. Scaled weights are not negative: as unsigned integers they order like
// floats, with infinities and NaNs on top.
INLINE void weigh_bytes(const float *weights, const uint16_t *d, uint8_t bytes[][32], float *scale, const int rows) {
    const __m512 d0 = vector_halves(d), d1 = vector_halves(d + 16), zero = _mm512_setzero_ps();
    const int padded = (rows + 3) / 4 * 4;
    __m512 v0[MATMUL_ROWS], v1[MATMUL_ROWS];
    __m512i top[MATMUL_ROWS];
    UNROLL for (int i = 0; i < rows; i++) {
        const __m512 w0 = _mm512_loadu_ps(weights + i * 32), w1 = _mm512_loadu_ps(weights + i * 32 + 16);
        v0[i] = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(w0, zero, _CMP_NEQ_UQ), w0, d0);
        v1[i] = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(w1, zero, _CMP_NEQ_UQ), w1, d1);
        top[i] = _mm512_max_epu32(_mm512_castps_si512(v0[i]), _mm512_castps_si512(v1[i]));
    }
    UNROLL for (int i = rows; i < padded; i++) top[i] = top[0];
    const __m512i most = greatest_of(top, padded);
    const __m512 maximum = _mm512_castsi512_ps(most), bytes_most = _mm512_set1_ps(WEIGHT_MOST);
    const __mmask16 finite = _mm512_cmplt_epu32_mask(most, _mm512_set1_epi32(0x7F800000)),
                    some = finite & _mm512_cmp_ps_mask(maximum, _mm512_set1_ps(QUANTIZE_TINY), _CMP_GT_OQ);
    float inverses[16], scales[16];
    _mm512_storeu_ps(inverses, _mm512_maskz_div_ps(some, bytes_most, maximum));
    _mm512_storeu_ps(scales,
                     _mm512_mask_blend_ps(finite, _mm512_set1_ps(NAN), _mm512_maskz_div_ps(some, maximum, bytes_most)));
    UNROLL for (int i = 0; i < rows; i++) { // what is not finite becomes −2^31, whose lowest byte is 0
        const __m512 inverse = _mm512_set1_ps(inverses[top_at(i)]);
        scale[i] = scales[top_at(i)];
        _mm_storeu_si128((__m128i *)bytes[i], _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v0[i] * inverse)));
        _mm_storeu_si128((__m128i *)bytes[i] + 1, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v1[i] * inverse)));
    }
}

// sum[i] = Σ over a packed block's slots of bytes[i] × its values
#define VALUE_DOTS(name, line0, line1)                                                                                 \
    INLINE void name##_value_dots(integers sum[][2], const struct packed_values_##name *packed, ptrdiff_t ahead,       \
                                  uint8_t bytes[][32], const int rows, const int h) {                                  \
        (void)h;                                                                                                       \
        UNROLL for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = _mm512_setzero_si512();                          \
        UNROLL for (int g = 0; g < 8; g++) {                                                                           \
            const __m512i v0 = line0, v1 = line1;                                                                      \
            for (size_t line = 0; line < sizeof packed->q[g]; line += 64)                                              \
                fetch((const char *)packed->q[g] + line, ahead);                                                       \
            UNROLL for (int i = 0; i < rows; i++) {                                                                    \
                const __m512i x = broadcast_quad((const int8_t *)bytes[i] + 4 * g);                                    \
                sum[i][0] = _mm512_dpbusd_epi32(sum[i][0], x, v0);                                                     \
                sum[i][1] = _mm512_dpbusd_epi32(sum[i][1], x, v1);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }
VALUE_DOTS(q8_0, _mm512_loadu_si512(packed->q[g][0]), _mm512_loadu_si512(packed->q[g][1]))
VALUE_DOTS(q4_0, _mm512_sub_epi8(nibbles(packed->q[g], 0), _mm512_set1_epi8(8)),
           _mm512_sub_epi8(nibbles(packed->q[g], 1), _mm512_set1_epi8(8)))

#include "engine/cpu/attention_kernels.h"

// The slots [first, end) of several pages that lie in page p, as bits.
INLINE uint32_t slot_bits(int first, int end, int p) {
    const int from = slot_in_page(first, p), to = slot_in_page(end, p);
    return (uint32_t)(((UINT64_C(1) << to) - 1) & ~((UINT64_C(1) << from) - 1));
}

static float softmax(float *scores, int page_stride, int n_pages, int first, int end, struct softmax *state) {
    const __m512 lowest = _mm512_set1_ps(state->maximum);
    __m512 top0 = lowest, top1 = lowest, sum = _mm512_setzero_ps();
    for (int p = 0; p < n_pages; p++) {
        const uint32_t inside = slot_bits(first, end, p);
        const float *s = scores + (size_t)p * page_stride;
        top0 = _mm512_max_ps(top0, _mm512_mask_loadu_ps(lowest, (__mmask16)inside, s));
        top1 = _mm512_max_ps(top1, _mm512_mask_loadu_ps(lowest, (__mmask16)(inside >> 16), s + 16));
    }
    const float maximum = _mm512_reduce_max_ps(_mm512_max_ps(top0, top1));
    const __m512 top = _mm512_set1_ps(maximum);
    for (int p = 0; p < n_pages; p++) {
        const uint32_t inside = slot_bits(first, end, p);
        float *s = scores + (size_t)p * page_stride;
        const __m512 w0 = _mm512_maskz_mov_ps((__mmask16)inside, exponential(_mm512_loadu_ps(s) - top));
        const __m512 w1 = _mm512_maskz_mov_ps((__mmask16)(inside >> 16), exponential(_mm512_loadu_ps(s + 16) - top));
        _mm512_storeu_ps(s, w0);
        _mm512_storeu_ps(s + 16, w1);
        sum = sum + w0 + w1;
    }
    const float correction = _mm512_cvtss_f32(exponential(_mm512_set1_ps(state->maximum - maximum)));
    state->sum = fmaf(state->sum, correction, lanes_sum(&sum));
    state->maximum = maximum;
    return correction;
}

#define STRIP(id, name) [id] = strip_##name##_avx512,
#define MANY(id, name)  [id] = many_##name##_avx512,

const struct cpu_kernels kernels_avx512 =
    KERNEL_TABLE("AVX-512 VNNI", STRIP, .many = {PACKED_BITS_FORMATS(MANY)}, .many_inputs = MANY_INPUTS);
#endif
