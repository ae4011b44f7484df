// The specification of the kernels, in plain C; those of packed weights are in packed_scalar.c. fmaf is one rounding
// everywhere, with or without hardware.
#include "engine/cpu/kernel_table.h"
#include "engine/cpu/packed.h"
#include "engine/cpu/packed_values.h"

#include <math.h>
#include <string.h>

// --- weights in the file's own layout --------------------------------------------------------------------------------

// Sums 16 lanes as a tree: the order of every reduction of floats.
static float reduce(float lanes[16]) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

static float load_f32(const uint8_t *p) {
    float value;
    memcpy(&value, p, sizeof value);
    return value;
}

static float load_f16(const uint8_t *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return f16_to_f32(half);
}

static float load_bf16(const uint8_t *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return bf16_to_f32(half);
}

// Lane l sums columns l, l + 16, … in order.
#define FLOAT_STRIP(name, load, bytes)                                                                                 \
    static void name(const struct strip *s) {                                                                          \
        for (int r = 0; r < s->rows; r++)                                                                              \
            for (int c = 0; c < s->width; c++) {                                                                       \
                const uint8_t *w = (const uint8_t *)s->weights + (size_t)r * s->row_bytes;                             \
                const float *x = s->values + (size_t)c * s->columns;                                                   \
                float lanes[16] = {0};                                                                                 \
                for (int i = 0; i < s->columns; i++)                                                                   \
                    lanes[i % 16] = fmaf(load(w + (size_t)i * bytes), x[i], lanes[i % 16]);                            \
                s->out[c * STRIP_ROWS + r] = reduce(lanes);                                                            \
            }                                                                                                          \
    }
FLOAT_STRIP(strip_f32, load_f32, 4)
FLOAT_STRIP(strip_f16, load_f16, 2)
FLOAT_STRIP(strip_bf16, load_bf16, 2)

// --- vectors ---------------------------------------------------------------------------------------------------------

// 1 / √(mean of x² + ε)
static float inverse_root(const float *x, int n, float epsilon) {
    float lanes[16] = {0};
    for (int i = 0; i < n; i++) lanes[i % 16] = fmaf(x[i], x[i], lanes[i % 16]);
    return 1 / sqrtf(reduce(lanes) / (float)n + epsilon);
}

static void rms_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    (void)bias;
    const float factor = inverse_root(x, n, epsilon);
    for (int i = 0; i < n; i++) y[i] = x[i] * factor * weight[i];
}

static void layer_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    float lanes[16] = {0};
    for (int i = 0; i < n; i++) lanes[i % 16] += x[i];
    const float mean = reduce(lanes) / (float)n;
    for (int i = 0; i < n; i++) y[i] = x[i] - mean;
    const float factor = inverse_root(y, n, epsilon);
    for (int i = 0; i < n; i++) y[i] = bias ? fmaf(y[i] * factor, weight[i], bias[i]) : y[i] * factor * weight[i];
}

// What rounding takes from a block whose scale has this inverse, in units of the scale, squared.
static float squared_error(const float x[BLOCK_COLUMNS], float inverse) {
    float lanes[16];
    for (int i = 0; i < 16; i++) {
        const float low = x[i] * inverse, high = x[i + 16] * inverse;
        const float low_error = low - rintf(low), high_error = high - rintf(high);
        lanes[i] = fmaf(high_error, high_error, low_error * low_error);
    }
    return reduce(lanes);
}

static float best_scale(const float x[BLOCK_COLUMNS], float maximum) {
    const uint32_t first = activation_scale_bits(maximum);
    float scale[SCALE_CHOICES], errors[SCALE_CHOICES];
    for (int i = 0; i < SCALE_CHOICES; i++) {
        const uint32_t bits = first + (uint32_t)(i * SCALE_STEP_BITS);
        memcpy(&scale[i], &bits, sizeof bits);
        const float unit = scale[i] * (1 / scale[0]); // relative, so that no square overflows
        errors[i] = squared_error(x, 1 / scale[i]) * (unit * unit);
    }
    return scale[least_error(errors)];
}

static void quantize_block(const float *x, struct activation_block *out) {
    float maximum = 0;
    bool finite = true;
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        float magnitude = fabsf(x[i]);
        finite &= magnitude < QUANTIZE_HUGE;
        maximum = magnitude > maximum ? magnitude : maximum;
    }
    const float scale = !finite ? NAN : maximum > QUANTIZE_TINY ? best_scale(x, maximum) : 0;
    const float inverse = scale > 0 ? 1 / scale : 0;
    int sum[2] = {0, 0};
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        out->q[i] = finite ? (int8_t)lrintf(x[i] * inverse) : 0;
        sum[i / 16] += out->q[i];
    }
    activation_finish(out, scale, sum[0], sum[0] + sum[1]);
}

static void quantize(const float *x, int n_blocks, struct activation_block *out, int stride) {
    for (int b = 0; b < n_blocks; b++) quantize_block(x + b * BLOCK_COLUMNS, out + (size_t)b * stride);
}

// A NaN stays one.
static float exponential(float x) {
    x = EXP_HIGH < x ? EXP_HIGH : x;
    x = EXP_LOW > x ? EXP_LOW : x;
    float n = rintf(x * EXP_LOG2E);
    float r = fmaf(n, -EXP_LN2_HIGH, x);
    r = fmaf(n, -EXP_LN2_LOW, r);
    float p = fmaf(r, EXP_C6, EXP_C5);
    p = fmaf(p, r, EXP_C4);
    p = fmaf(p, r, EXP_C3);
    p = fmaf(p, r, EXP_C2);
    p = fmaf(p, r, 1);
    p = fmaf(p, r, 1);
    return isnan(x) ? x : ldexpf(p, (int)n);
}

static float gated(float x, float slope) { return x / (1 + exponential(-slope)); } // x·σ(slope)

static void silu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++) gate[i] = gated(gate[i], gate[i]) * up[i];
}

static void gelu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++) {
        const float g = gate[i];
        gate[i] = gated(g, fmaf(g * g, GELU_CUBIC, GELU_LINEAR) * g) * up[i];
    }
}

// A NaN stays one.
static float at_most(float x, float limit) { return limit < x ? limit : x; }
static float at_least(float x, float limit) { return limit > x ? limit : x; }

static void silu_clamped(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++) {
        const float g = at_most(gate[i], CLAMPED_LIMIT), u = at_least(at_most(up[i], CLAMPED_LIMIT), -CLAMPED_LIMIT);
        gate[i] = gated(g, g * CLAMPED_SLOPE) * (u + 1);
    }
}

// tanh(v) = 1 − 2 / (1 + e^2v)
static void softcap(float *x, int n, float cap) {
    const float twice = 2 / cap;
    for (int i = 0; i < n; i++) x[i] = (1 - 2 / (1 + exponential(x[i] * twice))) * cap;
}

static void accumulate(float *sum, const float *x, int n, float factor) {
    for (int i = 0; i < n; i++) sum[i] = fmaf(x[i], factor, sum[i]);
}

static void to_f16(const float *x, uint16_t *out, int n) {
    for (int i = 0; i < n; i++) out[i] = f16_from_f32(x[i]);
}

static void to_bf16(const float *x, uint16_t *out, int n) {
    for (int i = 0; i < n; i++) out[i] = bf16_rounded(x[i]);
}

// --- attention -------------------------------------------------------------------------------------------------------

typedef float half_loader(uint16_t half);

// total[0..31] += Σ_j a[j] × b[j][0..31]
static void half_steps(float total[32], half_loader *load, const uint16_t *b, int b_stride, int n, const float *a) {
    for (int j = 0; j < n; j++)
        for (int t = 0; t < 32; t++) total[t] = fmaf(a[j], load(b[(size_t)j * b_stride + t]), total[t]);
}

static void half_scores(const struct scoring *s, half_loader *load) {
    for (int i = 0; i < s->rows; i++) {
        float *out = s->out + i * KV_PAGE_TOKENS;
        memset(out, 0, KV_PAGE_TOKENS * sizeof *out);
        half_steps(out, load, s->keys, KV_PAGE_TOKENS, s->size, s->queries + (size_t)i * s->size);
    }
}

static void half_weigh(const struct weighing *w, half_loader *load) {
    for (int i = 0; i < w->rows; i++)
        for (int p = 0; p < w->n_pages; p++) {
            const int begin = slot_in_page(w->first, p), end = slot_in_page(w->end, p);
            const uint16_t *values = (const uint16_t *)w->pages[p] + (size_t)begin * w->size;
            const float *weights = w->weights + (size_t)p * w->page_stride + i * KV_PAGE_TOKENS + begin;
            for (int d = 0; d < w->size; d += 32)
                half_steps(w->out + (size_t)i * w->size + d, load, values + d, w->size, end - begin, weights);
        }
}

static void f16_scores(const struct scoring *s) { half_scores(s, f16_to_f32); }
static void bf16_scores(const struct scoring *s) { half_scores(s, bf16_to_f32); }
static void f16_weigh(const struct weighing *w) { half_weigh(w, f16_to_f32); }
static void bf16_weigh(const struct weighing *w) { half_weigh(w, bf16_to_f32); }

// Weights of 32 slots times the slots' scales as bytes; returns what one of these is worth. A slot of weight 0 is not
// seen, whatever its scale.
static float weigh_bytes(const float *weights, const uint16_t *d, uint8_t bytes[32]) {
    float scaled[32], maximum = 0;
    bool finite = true;
    for (int t = 0; t < 32; t++) {
        scaled[t] = weights[t] != 0 ? weights[t] * f16_to_f32(d[t]) : 0;
        finite &= isfinite(scaled[t]) != 0;
        maximum = scaled[t] > maximum ? scaled[t] : maximum;
    }
    const float inverse = finite && maximum > QUANTIZE_TINY ? WEIGHT_MOST / maximum : 0;
    for (int t = 0; t < 32; t++) bytes[t] = finite ? (uint8_t)lrintf(scaled[t] * inverse) : 0;
    return !finite ? NAN : maximum > QUANTIZE_TINY ? maximum / WEIGHT_MOST : 0;
}

// Element d of the values of slot t.
static int q8_0_value(const void *packed, int t, int d) {
    return ((const struct packed_values_q8_0 *)packed)->q[t / 4][d / 16][d % 16 * 4 + t % 4];
}
static int q4_0_value(const void *packed, int t, int d) {
    return (((const struct packed_values_q4_0 *)packed)->q[t / 4][d % 16 * 4 + t % 4] >> d / 16 * 4 & 15) - 8;
}

typedef int value_reader(const void *packed, int t, int d);

static void packed_weigh_block(const void *packed, value_reader *value, const float *weights, float *out) {
    uint8_t bytes[32];
    const float scale = weigh_bytes(weights, packed, bytes); // packed blocks begin with the scales
    for (int d = 0; d < 32; d++) {
        int sum = 0;
        for (int t = 0; t < 32; t++) sum += bytes[t] * value(packed, t, d);
        out[d] = fmaf((float)sum, scale, out[d]);
    }
}

static void packed_weigh(const struct weighing *w, size_t packed_bytes, value_reader *value) {
    for (int i = 0; i < w->rows; i++)
        for (int p = 0; p < w->n_pages; p++)
            for (int block = 0; block < w->size / 32; block++)
                packed_weigh_block((const uint8_t *)w->pages[p] + (size_t)block * packed_bytes, value,
                                   w->weights + (size_t)p * w->page_stride + i * KV_PAGE_TOKENS,
                                   w->out + (size_t)i * w->size + 32 * block);
}

static void q8_0_weigh(const struct weighing *w) { packed_weigh(w, sizeof(struct packed_values_q8_0), q8_0_value); }
static void q4_0_weigh(const struct weighing *w) { packed_weigh(w, sizeof(struct packed_values_q4_0), q4_0_value); }

static float softmax(float *scores, int page_stride, int n_pages, int first, int end, struct softmax *state) {
    float maximum = state->maximum, lanes[16] = {0};
    for (int i = first; i < end; i++) {
        const float score = scores[(size_t)(i / KV_PAGE_TOKENS) * page_stride + i % KV_PAGE_TOKENS];
        maximum = maximum > score ? maximum : score;
    }
    for (int i = 0; i < n_pages * KV_PAGE_TOKENS; i++) {
        float *score = &scores[(size_t)(i / KV_PAGE_TOKENS) * page_stride + i % KV_PAGE_TOKENS];
        *score = i >= first && i < end ? exponential(*score - maximum) : 0;
        lanes[i % 16] += *score;
    }
    const float correction = exponential(state->maximum - maximum);
    state->sum = fmaf(state->sum, correction, reduce(lanes));
    state->maximum = maximum;
    return correction;
}

static void softmax_merge(struct softmax *state, float *sum, const struct softmax *part, const float *part_sum, int n) {
    const float top = state->maximum > part->maximum ? state->maximum : part->maximum;
    const float keep = exponential(state->maximum - top), take = exponential(part->maximum - top);
    for (int i = 0; i < n; i++) sum[i] = fmaf(part_sum[i], take, sum[i] * keep);
    state->sum = fmaf(part->sum, take, state->sum * keep);
    state->maximum = top;
}

static void scale(float *x, int n, float factor) {
    for (int i = 0; i < n; i++) x[i] *= factor;
}

#define STRIP(id, name) [id] = strip_##name##_scalar,

const struct cpu_kernels kernels_scalar = KERNEL_TABLE("scalar", STRIP, );
