#include "tests/unit/tiny_quantised.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

enum { NF4_BLOCK = 64, NESTED_BLOCK = 256, FP8_ROWS = 16, FP8_COLUMNS = 32 };

// A sign, then `exponent_bits` of exponent with this bias, then the mantissa.
static double small_float(uint8_t code, int mantissa_bits, int bias) {
    int mantissa = code & ((1 << mantissa_bits) - 1), exponent = (code & 127) >> mantissa_bits;
    double value = exponent ? ldexp(1 + (double)mantissa / (1 << mantissa_bits), exponent - bias)
                            : ldexp((double)mantissa / (1 << mantissa_bits), 1 - bias);
    return code & 128 ? -value : value;
}

double tiny_e4m3(uint8_t code) { return (code & 127) == 127 ? (double)NAN : small_float(code, 3, 7); }

double tiny_e5m2(uint8_t code) {
    if ((code & 127) > 124) return (double)NAN;
    return (code & 127) == 124 ? (code & 128 ? (double)-INFINITY : (double)INFINITY) : small_float(code, 2, 15);
}

// The quantiles of a normal distribution that the format's paper gives.
const float tiny_nf4_codes[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                                  -0.09105004f, 0.0f,         0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                  0.44070983f,  0.56261700f,  0.72295684f,  1.0f};

static float absolute_maximum(const float *values, size_t n) {
    float most = 0;
    for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(values[i]));
    return most;
}

static const char *part_name(const char *name, const char *ending) {
    static _Thread_local char text[320];
    snprintf(text, sizeof text, "%s%s", name, ending);
    return text;
}

// ---- FP8 ----

static uint8_t nearest_fp8(double value, double (*decode)(uint8_t)) {
    int best = 0;
    for (int code = 0; code < 256; code++)
        if (isfinite(decode((uint8_t)code)) &&
            fabs(decode((uint8_t)code) - value) < fabs(decode((uint8_t)best) - value))
            best = code;
    return (uint8_t)best;
}

// Scales of blocks of rows × columns.
static void put_fp8(const struct tiny_matrix *m, bool e5m2, uint64_t rows, uint64_t columns, const char *ending,
                    tiny_put *put, void *context) {
    double (*decode)(uint8_t) = e5m2 ? tiny_e5m2 : tiny_e4m3;
    uint64_t down = (m->rows + rows - 1) / rows, across = (m->columns + columns - 1) / columns;
    float *scales = xcalloc(down * across, sizeof *scales);
    uint8_t *codes = xmalloc(m->rows * m->columns);
    for (uint64_t i = 0; i < m->rows * m->columns; i++) {
        float *scale = &scales[i / m->columns / rows * across + i % m->columns / columns];
        *scale = fmaxf(*scale, fabsf(m->values[i]) / (e5m2 ? 57344 : 448));
    }
    for (uint64_t i = 0; i < m->rows * m->columns; i++) {
        float scale = scales[i / m->columns / rows * across + i % m->columns / columns];
        codes[i] = nearest_fp8((double)m->values[i] / (double)scale, decode);
    }
    const uint64_t dims[] = {m->rows, m->columns}, scale_dims[] = {down, across};
    put(context, m->name, e5m2 ? "F8_E5M2" : "F8_E4M3", 2, dims, codes, m->rows * m->columns);
    int n_dims = down * across == 1 ? 0 : 2;
    put(context, part_name(m->name, ending), "F32", n_dims, scale_dims, scales, down * across * sizeof *scales);
    free(codes);
    free(scales);
}

// ---- NF4 ----

static void put_absmax(const struct tiny_matrix *m, float *absmax, uint64_t n, bool nested, tiny_put *put,
                       void *context) {
    uint64_t blocks = (n + NESTED_BLOCK - 1) / NESTED_BLOCK;
    if (!nested) {
        put(context, part_name(m->name, ".absmax"), "F32", 1, &n, absmax, n * sizeof *absmax);
        return;
    }
    float map[256], *most = xcalloc(blocks, sizeof *most);
    uint8_t *codes = xmalloc(n);
    for (int i = 0; i < 256; i++) map[i] = (float)(i - 127) / 128;
    for (uint64_t i = 0; i < n; i++)
        most[i / NESTED_BLOCK] = fmaxf(most[i / NESTED_BLOCK], fabsf(absmax[i] - 0.25f) * 1.01f);
    for (uint64_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(lrintf((absmax[i] - 0.25f) / most[i / NESTED_BLOCK] * 128) + 127);
    put(context, part_name(m->name, ".absmax"), "U8", 1, &n, codes, n);
    put(context, part_name(m->name, ".nested_absmax"), "F32", 1, &blocks, most, blocks * sizeof *most);
    put(context, part_name(m->name, ".nested_quant_map"), "F32", 1, &(uint64_t){256}, map, sizeof map);
    free(codes);
    free(most);
}

static void put_state(const struct tiny_matrix *m, bool nested, tiny_put *put, void *context) {
    char text[320];
    uint64_t n = (uint64_t)snprintf(text, sizeof text,
                                    "{\"quant_type\": \"nf4\", \"blocksize\": %d, \"dtype\": \"float32\", "
                                    "\"shape\": [%llu, %llu]%s}",
                                    NF4_BLOCK, (unsigned long long)m->rows, (unsigned long long)m->columns,
                                    nested ? ", \"nested_blocksize\": 256, \"nested_dtype\": \"float32\", "
                                             "\"nested_offset\": 0.25"
                                           : "");
    put(context, part_name(m->name, ".quant_state.bitsandbytes__nf4"), "U8", 1, &n, text, n);
}

static int nearest_nf4(float value) {
    int best = 0;
    for (int code = 1; code < 16; code++)
        if (fabsf(tiny_nf4_codes[code] - value) < fabsf(tiny_nf4_codes[best] - value)) best = code;
    return best;
}

static void put_nf4(const struct tiny_matrix *m, bool nested, tiny_put *put, void *context) {
    uint64_t n = m->rows * m->columns, blocks = (n + NF4_BLOCK - 1) / NF4_BLOCK;
    const uint64_t dims[] = {(n + 1) / 2, 1};
    uint8_t *codes = xcalloc(dims[0], 1);
    float *absmax = xmalloc(blocks * sizeof *absmax);
    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t first = b * NF4_BLOCK, length = n - first < NF4_BLOCK ? n - first : NF4_BLOCK;
        absmax[b] = absolute_maximum(m->values + first, length);
        for (uint64_t i = first; i < first + length; i++)
            codes[i / 2] |= (uint8_t)(nearest_nf4(m->values[i] / absmax[b]) << (i % 2 ? 0 : 4));
    }
    put(context, m->name, "U8", 2, dims, codes, dims[0]);
    put(context, part_name(m->name, ".quant_map"), "F32", 1, &(uint64_t){16}, tiny_nf4_codes, sizeof tiny_nf4_codes);
    put_absmax(m, absmax, blocks, nested, put, context);
    put_state(m, nested, put, context);
    free(codes);
    free(absmax);
}

void tiny_quantised(const struct tiny_matrix *m, enum tiny_quantisation how, tiny_put *put, void *context) {
    switch (how) {
    case TINY_FP8_TENSOR: put_fp8(m, false, m->rows, m->columns, "_scale", put, context); break;
    case TINY_FP8_ROWS: put_fp8(m, true, 1, m->columns, "_scale", put, context); break;
    case TINY_FP8_BLOCKS: put_fp8(m, false, FP8_ROWS, FP8_COLUMNS, "_scale_inv", put, context); break;
    case TINY_NF4:
    case TINY_NF4_DOUBLE: put_nf4(m, how == TINY_NF4_DOUBLE, put, context); break;
    case TINY_AS_IT_IS: break;
    }
}
