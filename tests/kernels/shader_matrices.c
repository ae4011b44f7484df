#include "tests/kernels/shader_matrices.h"

#ifdef CONFAB_VULKAN

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "tests/kernels/blas_reference.h"
#include "tests/kernels/harness.h"

const char *shader_of(const char *name, int format) {
    static char text[32];
    snprintf(text, sizeof text, "%s_%s", name, block_formats[format].name);
    return text;
}

struct weights weights_random(int format, int rows, int columns) {
    struct trial t = trial_open((enum block_id)format, rows, columns, 1, ++array_seed);
    struct weights w = {.format = t.format, .rows = rows, .columns = columns};
    array_reserve(1, 1); // MXFP4 reads a little before and behind its blocks
    w.blocks = array_copy(t.weight.data, (size_t)rows, t.weight.row_bytes);
    array_reserve(1, 1);
    w.grids = array_copy(block_grids(), 1, sizeof *block_grids());
    w.values = xmalloc((size_t)rows * (size_t)columns * sizeof *w.values);
    for (int r = 0; r < rows; r++)
        t.format->decode((const uint8_t *)t.weight.data + (size_t)r * t.weight.row_bytes, w.values + r * columns,
                         (size_t)columns);
    trial_close(&t);
    return w;
}

struct array choices_random(int n, int count) {
    const struct array choices = array_reserve((size_t)n, 2 * sizeof(int32_t));
    for (int i = 0; i < n; i++) {
        const float weight = random_value(&array_seed);
        choices.i[2 * i] = (int32_t)(random_bits(&array_seed) % (uint64_t)count);
        memcpy(choices.i + 2 * i + 1, &weight, sizeof weight);
    }
    return choices;
}

void choices_group(const struct array *choices, const struct array *order, const struct array *tiles, int n, int count,
                   int tile) {
    const struct {
        VkDeviceAddress choices, order, tiles;
        int32_t n, n_tiles;
    } push = {choices->address, order->address, tiles->address, n, (int32_t)tiles->n};
    DISPATCH("group", push, 1, 1, 1, (uint32_t)count, (uint32_t)tile);
}

struct matmul_arrays matmul_open(const struct matmul *m) {
    struct matmul_arrays a = {.share = m->experts ? USED : 1, .experts = m->experts ? N_EXPERTS : 1};
    array_begin(NULL);
    a.inputs = groups(m->n, a.share);
    a.stride = groups(m->columns, 32) * 32;
    a.to_stride = m->rows + 3;
    a.weights = weights_random(m->format, a.experts * m->rows, m->columns);
    a.from = array_random_rows(a.inputs, m->columns, a.stride);
    a.to = array_random((size_t)(m->n * a.to_stride));
    a.bias = array_random((size_t)(a.experts * m->rows));
    a.choices = choices_random(m->n, a.experts);
    a.order = array_reserve((size_t)m->n, sizeof(int32_t));
    a.tiles = array_reserve(MOST_TILES, 3 * sizeof(int32_t));
    return a;
}

void matmul_close(struct matmul_arrays *a) { free(a->weights.values); }

void matmul_expect(const struct matmul *m, const struct matmul_arrays *a, double **want_out, double **allowed_out) {
    double *want = *want_out = array_expect(&a->to);
    double *allowed = *allowed_out = xcalloc(a->to.n, sizeof *allowed);
    for (int i = 0; i < m->n; i++)
        for (int r = 0; r < m->rows; r++) {
            const int row = (m->experts ? a->choices.i[2 * i] * m->rows : 0) + r, at = i * a->to_stride + r;
            const float *weights = a->weights.values + row * m->columns, *from = a->from.f + i / a->share * a->stride;
            double sum = m->biased ? a->bias.f[row] : 0, magnitude = fabs(sum);
            for (int k = 0; k < m->columns; k++) {
                const double part = (double)weights[k] * from[k];
                sum += part;
                magnitude += fabs(part);
            }
            sum *= m->scale;
            if (m->softcap != 0) sum = m->softcap * tanh(sum / m->softcap);
            allowed[at] = 2e-6 * (magnitude * m->scale + fabs(want[at]));
            want[at] = m->adds ? want[at] + sum : sum;
        }
}

// Rows without what lies behind their columns. The caller frees.
static float *without_stride(const struct array *rows, int n, int columns, int stride) {
    float *out = xmalloc((size_t)n * (size_t)columns * sizeof *out);
    for (int i = 0; i < n; i++) memcpy(out + i * columns, rows->f + i * stride, (size_t)columns * sizeof *out);
    return out;
}

void matmul_check_floats(const struct matmul_arrays *a, double allowed, const char *who) {
    const struct weights *w = &a->weights;
    float *inputs = without_stride(&a->from, a->inputs, w->columns, a->stride),
          *results = without_stride(&a->to, a->inputs, w->rows, a->to_stride);
    reference_check(&(struct reference){w->values, inputs, w->rows, w->columns, a->inputs}, results, allowed, who);
    free(inputs);
    free(results);
}

#endif
