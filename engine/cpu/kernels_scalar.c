// The specification of the kernels, in plain C; those of prepared weights are in tiles_scalar.c. fmaf is one rounding
// everywhere, with or without hardware.
#include "engine/cpu/tiles.h"

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

static void quantize_block(const float *x, struct activation_block *out) {
    float maximum = 0;
    bool finite = true;
    for (int i = 0; i < BLOCK_COLUMNS; i++) {
        float magnitude = fabsf(x[i]);
        finite &= magnitude < QUANTIZE_HUGE;
        maximum = magnitude > maximum ? magnitude : maximum;
    }
    const float scale = !finite ? NAN : maximum > QUANTIZE_TINY ? activation_scale(maximum) : 0;
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

static void to_half(const float *x, uint16_t *out, int n) {
    for (int i = 0; i < n; i++) out[i] = f16_from_f32(x[i]);
}

// --- attention -------------------------------------------------------------------------------------------------------

static void half_product(const uint16_t *b, int b_stride, int n, const float *a, int a_stride, int rows, float *out,
                         int out_stride) {
    for (int j = 0; j < n; j++) {
        float line[32];
        for (int t = 0; t < 32; t++) line[t] = f16_to_f32(b[(size_t)j * b_stride + t]);
        for (int i = 0; i < rows; i++)
            for (int t = 0; t < 32; t++)
                out[i * out_stride + t] = fmaf(a[i * a_stride + j], line[t], out[i * out_stride + t]);
    }
}

static float softmax_page(float *scores, int first, int end, struct softmax *state) {
    float maximum = state->maximum, lanes[16];
    for (int t = first; t < end; t++) maximum = maximum > scores[t] ? maximum : scores[t];
    for (int t = 0; t < 32; t++) scores[t] = t >= first && t < end ? exponential(scores[t] - maximum) : 0;
    for (int t = 0; t < 16; t++) lanes[t] = scores[t] + scores[t + 16];
    float correction = exponential(state->maximum - maximum);
    state->sum = fmaf(state->sum, correction, reduce(lanes));
    state->maximum = maximum;
    return correction;
}

static void scale(float *x, int n, float factor) {
    for (int i = 0; i < n; i++) x[i] *= factor;
}

const struct cpu_kernels kernels_scalar = {
    .name = "scalar",
    .strip = {[BLOCK_F32] = strip_f32,
              [BLOCK_F16] = strip_f16,
              [BLOCK_BF16] = strip_bf16,
#define X(id, tile) [id] = strip_##tile##_scalar,
              TILE_FORMATS(X)
#undef X
    },
    .norm = {[NORM_RMS] = rms_norm, [NORM_LAYER] = layer_norm},
    .quantize = quantize,
    .activate = {[ACTIVATION_SILU] = silu, [ACTIVATION_GELU] = gelu, [ACTIVATION_SILU_CLAMPED] = silu_clamped},
    .softcap = softcap,
    .accumulate = accumulate,
    .to_half = to_half,
    .half_product = half_product,
    .softmax_page = softmax_page,
    .scale = scale,
};
