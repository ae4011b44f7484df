// The reference: weights decoded by their format's definition, sums in double, the C library's functions.
#include "engine/cpu/kernels.h"

#include <math.h>

enum { DECODED = 256 }; // a multiple of every format's block

static void strip(const struct strip *s) {
    for (int r = 0; r < s->rows; r++) {
        const uint8_t *row = (const uint8_t *)s->weights + (size_t)r * s->row_bytes;
        double sum[PANEL_COLUMNS] = {0};
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

static void rms_norm(const float *x, const float *weight, float *y, int n, float epsilon) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
    double scale = 1 / sqrt(sum / n + (double)epsilon);
    for (int i = 0; i < n; i++) y[i] = (float)(x[i] * scale * weight[i]);
}

static void swiglu(float *gate, const float *up, int n) {
    for (int i = 0; i < n; i++) gate[i] = (float)(gate[i] / (1 + exp(-(double)gate[i])) * up[i]);
}

const struct cpu_kernels kernels_exact = {
    .name = "exact",
#define X(id, gguf, name, bytes, elements) .strip[id] = strip,
    BLOCK_FORMATS(X)
#undef X
        .rms_norm = rms_norm,
    .swiglu = swiglu,
};
