// The reference: weights decoded by their format's definition, sums in double, the C library's functions.
#include "engine/cpu/kernels.h"

#include <math.h>

enum { DECODED = 256 }; // a multiple of every format's block

static void strip(const struct strip *s) {
    for (int r = 0; r < s->rows; r++) {
        const uint8_t *row = (const uint8_t *)s->weights + (size_t)r * s->row_bytes;
        double sum[PANEL_INPUTS] = {0};
        for (int first = 0; first < s->columns; first += DECODED) {
            float weight[DECODED];
            const int n = s->columns - first < DECODED ? s->columns - first : DECODED;
            s->format->decode(row + (size_t)first / s->format->elements * s->format->bytes, weight, (size_t)n);
            for (int c = 0; c < s->width; c++)
                for (int i = 0; i < n; i++) sum[c] += (double)weight[i] * s->values[(size_t)c * s->columns + first + i];
        }
        for (int c = 0; c < s->width; c++) s->out[c * STRIP_ROWS + r] = (float)sum[c];
    }
}

static void rms_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    (void)bias;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
    const double scale = 1 / sqrt(sum / n + (double)epsilon);
    for (int i = 0; i < n; i++) y[i] = (float)(x[i] * scale * weight[i]);
}

static void layer_norm(const float *x, const float *weight, const float *bias, float *y, int n, float epsilon) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    const double mean = sum / n;
    for (int i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / sqrt(squares / n + (double)epsilon);
    for (int i = 0; i < n; i++) y[i] = (float)((x[i] - mean) * scale * weight[i] + (bias ? (double)bias[i] : 0));
}

static double gated(double x, double slope) { return x / (1 + exp(-slope)); } // x·σ(slope)

static void silu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++) gate[i] = (float)(gated(gate[i], gate[i]) * up[i]);
}

static void gelu(float *gate, const float *up, int n) {
    const double root = 2 * sqrt(2 / acos(-1.0));
    for (int i = 0; i < n; i++) {
        const double g = gate[i];
        gate[i] = (float)(gated(g, root * (g + 0.044715 * g * g * g)) * up[i]);
    }
}

static void silu_clamped(float *gate, const float *up, int n) {
    const double limit = CLAMPED_LIMIT;
    for (int i = 0; i < n; i++) {
        const double g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
        gate[i] = (float)(gated(g, 1.702 * g) * (u + 1));
    }
}

static void softcap(float *x, int n, float cap) {
    for (int i = 0; i < n; i++) x[i] = (float)(cap * tanh((double)x[i] / cap));
}

static void accumulate(float *sum, const float *x, int n, float factor) {
    for (int i = 0; i < n; i++) sum[i] = (float)(sum[i] + (double)factor * x[i]);
}

const struct cpu_kernels kernels_exact = {
    .name = "exact",
    .in_place = true,
#define X(id, gguf, name, bytes, elements) .strip[id] = strip,
    BLOCK_FORMATS(X)
#undef X
        .norm = {[NORM_RMS] = rms_norm, [NORM_LAYER] = layer_norm},
    .activate = {[ACTIVATION_SILU] = silu, [ACTIVATION_GELU] = gelu, [ACTIVATION_SILU_CLAMPED] = silu_clamped},
    .softcap = softcap,
    .accumulate = accumulate,
};
