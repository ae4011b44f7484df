// AVX2 with FMA and F16C: weights in the file's own layout, vectors and attention. Packed weights are in
// packed_avx2.c, and where there is AVX-VNNI in packed_avxvnni.c.
#include "engine/cpu/kernel_table.h"
#include "engine/cpu/packed.h"
#include "engine/cpu/packed_values.h"

#if defined(__x86_64__)
#include <math.h>

#include "engine/cpu/lanes_avx2.h"

// --- weights in the file's own layout --------------------------------------------------------------------------------

INLINE __m256 load_f32(const void *p) { return _mm256_loadu_ps(p); }
INLINE __m256 load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
INLINE __m256 load_bf16(const void *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}

enum { FLOAT_ROWS = 2 };

// The last columns of a row, followed by zeros, where a whole vector may be read.
INLINE const void *padded(uint8_t *buffer, const void *from, size_t bytes) {
    memset(buffer, 0, LANES * sizeof(float));
    memcpy(buffer, from, bytes);
    return buffer;
}

#define FLOAT_STRIP(name, load, bytes)                                                                                 \
    INLINE void name##_step(const uint8_t *const *w, const float *const *x, const int rows, const int width,           \
                            __m256 total[FLOAT_ROWS][PART_INPUTS][2]) {                                                \
        UNROLL for (int v = 0; v < 2; v++) {                                                                           \
            __m256 weight[FLOAT_ROWS];                                                                                 \
            UNROLL for (int k = 0; k < rows; k++) weight[k] = load(w[k] + 8 * v * bytes);                              \
            UNROLL for (int c = 0; c < width; c++) {                                                                   \
                __m256 value = _mm256_loadu_ps(x[c] + 8 * v);                                                          \
                UNROLL for (int k = 0; k < rows; k++) total[k][c][v] =                                                 \
                    _mm256_fmadd_ps(weight[k], value, total[k][c][v]);                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void name##_rows(const struct strip *s, int row, const int rows, int first, const int width) {              \
        const uint8_t *w[FLOAT_ROWS];                                                                                  \
        const float *x[PART_INPUTS];                                                                                   \
        __m256 total[FLOAT_ROWS][PART_INPUTS][2];                                                                      \
        UNROLL for (int c = 0; c < width; c++) x[c] = s->values + (size_t)(first + c) * s->columns;                    \
        UNROLL for (int k = 0; k < rows; k++) {                                                                        \
            w[k] = (const uint8_t *)s->weights + (size_t)(row + k) * s->row_bytes;                                     \
            UNROLL for (int c = 0; c < width; c++) total[k][c][0] = total[k][c][1] = _mm256_setzero_ps();              \
        }                                                                                                              \
        int i = 0;                                                                                                     \
        for (; i + LANES <= s->columns; i += LANES) {                                                                  \
            name##_step(w, x, rows, width, total);                                                                     \
            UNROLL for (int k = 0; k < rows; k++) {                                                                    \
                fetch_ahead(s, w[k]);                                                                                  \
                w[k] += LANES * bytes;                                                                                 \
            }                                                                                                          \
            UNROLL for (int c = 0; c < width; c++) x[c] += LANES;                                                      \
        }                                                                                                              \
        if (i < s->columns) {                                                                                          \
            uint8_t buffer[FLOAT_ROWS + PART_INPUTS][LANES * sizeof(float)];                                           \
            const size_t left = (size_t)(s->columns - i);                                                              \
            UNROLL for (int k = 0; k < rows; k++) w[k] = padded(buffer[k], w[k], left * bytes);                        \
            UNROLL for (int c = 0; c < width; c++) x[c] = padded(buffer[FLOAT_ROWS + c], x[c], left * sizeof(float));  \
            name##_step(w, x, rows, width, total);                                                                     \
        }                                                                                                              \
        UNROLL for (int k = 0; k < rows; k++) UNROLL for (int c = 0; c < width; c++)                                   \
            s->out[(first + c) * STRIP_ROWS + row + k] = lanes_sum(total[k][c]);                                       \
    }                                                                                                                  \
    INLINE void name##_part(const struct strip *s, int h, int first, const int width) {                                \
        const int end = s->rows < 16 * h + 16 ? s->rows : 16 * h + 16;                                                 \
        int row = 16 * h;                                                                                              \
        for (; row + FLOAT_ROWS <= end; row += FLOAT_ROWS) name##_rows(s, row, FLOAT_ROWS, first, width);              \
        for (; row < end; row++) name##_rows(s, row, 1, first, width);                                                 \
    }                                                                                                                  \
    static FOR_PARTS(name, name##_part)

FLOAT_STRIP(strip_f32, load_f32, 4)
FLOAT_STRIP(strip_f16, load_f16, 2)
FLOAT_STRIP(strip_bf16, load_bf16, 2)

// --- vectors ---------------------------------------------------------------------------------------------------------

// 1 / √(mean of x² + ε)
static float inverse_root(const float *x, int n, float epsilon) {
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
    return 1 / sqrtf(lanes_sum((const vector[]){low, high}) / (float)n + epsilon);
}

static float sum_of(const float *x, int n) {
    __m256 low = _mm256_setzero_ps(), high = low;
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        low = _mm256_add_ps(low, _mm256_loadu_ps(x + i));
        high = _mm256_add_ps(high, _mm256_loadu_ps(x + i + 8));
    }
    if (i < n) {
        uint8_t buffer[LANES * sizeof(float)];
        const float *tail = padded(buffer, x + i, (size_t)(n - i) * sizeof(float));
        low = _mm256_add_ps(low, _mm256_loadu_ps(tail));
        high = _mm256_add_ps(high, _mm256_loadu_ps(tail + 8));
    }
    return lanes_sum((const vector[]){low, high});
}

static void rms_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    (void)bias;
    const float factor = inverse_root(x, n, epsilon);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
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

// As integers magnitudes order like floats, with infinities and NaNs on top.
INLINE float greatest_magnitude(const float *x) {
    __m256i top = _mm256_setzero_si256();
    UNROLL for (int i = 0; i < 4; i++) {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(x + 8 * i));
        top = _mm256_max_epi32(top, _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF)));
    }
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(reduce_max(top))));
}

// Of the sixteen lanes of the scalar kernel l + 8.
INLINE __m256 squared_errors(const float *x, float inverse) {
    __m256 error[4];
    UNROLL for (int i = 0; i < 4; i++) {
        const __m256 v = _mm256_loadu_ps(x + 8 * i) * _mm256_set1_ps(inverse);
        error[i] = v - _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    return _mm256_add_ps(_mm256_fmadd_ps(error[2], error[2], error[0] * error[0]),
                         _mm256_fmadd_ps(error[3], error[3], error[1] * error[1]));
}

// q[0..31]; returns the sums of their halves.
INLINE struct half_sums round_block(const float *x, float inverse, int8_t out[BLOCK_COLUMNS]) {
    __m256i q[4];
    UNROLL for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_loadu_ps(x + 8 * i) * _mm256_set1_ps(inverse));
    // Packing works in 128-bit lanes; the permutation puts the quads back into order.
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    _mm256_storeu_si256((__m256i *)out, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    return (struct half_sums){reduce_sum(_mm256_add_epi32(q[0], q[1])), reduce_sum(_mm256_add_epi32(q[2], q[3]))};
}

enum { MATMUL_ROWS = 5 }; // with two vectors each: ten accumulators

#include "engine/cpu/vector_kernels.h"

static void accumulate(float *sum, const float *x, int n, float factor) {
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(factor), _mm256_loadu_ps(sum + i));
        _mm256_storeu_ps(sum + i, v);
    }
    for (; i < n; i++) sum[i] = fmaf(x[i], factor, sum[i]);
}

static void to_f16(const float *x, uint16_t *out, int n) {
    int i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++) out[i] = f16_from_f32(x[i]);
}

// --- attention -------------------------------------------------------------------------------------------------------

INLINE vector vector_bf16(const uint16_t *p) { return load_bf16(p); }

// As in kernels_scalar.c. Scaled weights are not negative: as integers they order like floats, with infinities and NaNs
// on top.
INLINE float weigh_row_bytes(const float *weights, const uint16_t *d, uint8_t bytes[32]) {
    __m256 scaled[4];
    __m256i top = _mm256_setzero_si256(), q[4];
    for (int v = 0; v < 4; v++) {
        const __m256 w = _mm256_loadu_ps(weights + 8 * v), seen = _mm256_cmp_ps(w, _mm256_setzero_ps(), _CMP_NEQ_UQ);
        scaled[v] = _mm256_and_ps(w * vector_halves(d + 8 * v), seen);
        top = _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(scaled[v]), _mm256_set1_epi32(0x7FFFFFFF)));
    }
    const int32_t most = reduce_max(top);
    float maximum;
    memcpy(&maximum, &most, sizeof maximum);
    const bool finite = most < 0x7F800000, tiny = !(maximum > QUANTIZE_TINY);
    const __m256 inverse = _mm256_set1_ps(finite && !tiny ? WEIGHT_MOST / maximum : 0);
    for (int v = 0; v < 4; v++)
        q[v] = _mm256_and_si256(_mm256_cvtps_epi32(scaled[v] * inverse), _mm256_set1_epi32(finite ? -1 : 0));
    __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)bytes, packed);
    return !finite ? NAN : tiny ? 0 : maximum / WEIGHT_MOST;
}
INLINE void weigh_bytes(const float *weights, const uint16_t *d, uint8_t bytes[][32], float *scale, const int rows) {
    UNROLL for (int i = 0; i < rows; i++) scale[i] = weigh_row_bytes(weights + i * 32, d, bytes[i]);
}

// sum[i] = Σ over a block's slots of bytes[i] × its values, of the 16 elements from 16h on. A pair of bytes times bytes
// may not fit 16 bits: slots of even and of odd number are widened apart.
INLINE void q8_0_value_dots(integers sum[][2], const struct packed_values_q8_0 *packed, ptrdiff_t ahead,
                            uint8_t bytes[][32], const int rows, const int h) {
    clear_sums(sum, rows);
    for (int g = 0; g < 8; g++) {
        fetch(packed->q[g][h], ahead);
        for (int v = 0; v < 2; v++) {
            const __m256i line = line_half((const uint8_t *)packed->q[g][h], v);
            const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(line, 8), 8), odd = _mm256_srai_epi16(line, 8);
            UNROLL for (int i = 0; i < rows; i++) {
                const __m256i x = broadcast_quad((const int8_t *)bytes[i] + 4 * g);
                const __m256i x0 = _mm256_and_si256(x, _mm256_set1_epi16(255)), x1 = _mm256_srli_epi16(x, 8);
                const __m256i both = _mm256_add_epi32(_mm256_madd_epi16(even, x0), _mm256_madd_epi16(odd, x1));
                sum[i][v] = _mm256_add_epi32(sum[i][v], both);
            }
        }
    }
}

// Sums of pairs: 255 × 8 × 2 × 8 lines fit 16 bits.
INLINE void q4_0_value_dots(integers sum[][2], const struct packed_values_q4_0 *packed, ptrdiff_t ahead,
                            uint8_t bytes[][32], const int rows, const int h) {
    clear_sums(sum, rows);
    for (int g = 0; g < 8; g++) {
        fetch(packed->q[g], ahead);
        for (int v = 0; v < 2; v++) {
            const __m256i value = _mm256_sub_epi8(nibbles(packed->q[g], v, h), _mm256_set1_epi8(8));
            UNROLL for (int i = 0; i < rows; i++) {
                const __m256i x = broadcast_quad((const int8_t *)bytes[i] + 4 * g);
                sum[i][v] = _mm256_add_epi16(sum[i][v], _mm256_maddubs_epi16(x, value));
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < 2; v++) sum[i][v] = widen(sum[i][v]);
}

#include "engine/cpu/attention_kernels.h"

static float softmax(float *scores, int page_stride, int n_pages, int first, int end, struct softmax *state) {
    float maximum = state->maximum;
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 highest = _mm256_set1_ps(maximum);
    for (int p = 0; p < n_pages; p++) {
        float *s = scores + (size_t)p * page_stride;
        const int from = slot_in_page(first, p), to = slot_in_page(end, p);
        for (int t = 0; t < from; t++) s[t] = -INFINITY;
        for (int t = to; t < KV_PAGE_TOKENS; t++) s[t] = -INFINITY;
        for (int v = 0; v < 4; v++) highest = _mm256_max_ps(highest, _mm256_loadu_ps(s + 8 * v));
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, highest);
    for (int t = 0; t < 8; t++) maximum = maximum > lanes[t] ? maximum : lanes[t];
    for (int p = 0; p < n_pages; p++) {
        float *s = scores + (size_t)p * page_stride;
        const __m256i from = _mm256_set1_epi32(slot_in_page(first, p)), to = _mm256_set1_epi32(slot_in_page(end, p));
        for (int v = 0; v < 4; v++) {
            const __m256 x = _mm256_sub_ps(_mm256_loadu_ps(s + 8 * v), _mm256_set1_ps(maximum));
            const __m256i slot = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * v));
            const __m256i inside = _mm256_andnot_si256(_mm256_cmpgt_epi32(from, slot), _mm256_cmpgt_epi32(to, slot));
            const __m256 weight = _mm256_and_ps(exponential(x), _mm256_castsi256_ps(inside));
            _mm256_storeu_ps(s + 8 * v, weight);
            sum[v % 2] = _mm256_add_ps(sum[v % 2], weight);
        }
    }
    const float correction = _mm256_cvtss_f32(exponential(_mm256_set1_ps(state->maximum - maximum)));
    state->sum = fmaf(state->sum, correction, lanes_sum(sum));
    state->maximum = maximum;
    return correction;
}

#define AVX2_STRIP(id, name)    [id] = strip_##name##_avx2,
#define AVXVNNI_STRIP(id, name) [id] = strip_##name##_avxvnni,

const struct cpu_kernels kernels_avx2 = KERNEL_TABLE("AVX2", AVX2_STRIP, );
const struct cpu_kernels kernels_avxvnni = KERNEL_TABLE("AVX-VNNI", AVXVNNI_STRIP, );
#endif
