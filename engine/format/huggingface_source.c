// Decodes the tensors of Hugging Face folders to rows of floats or blocks.
//
// FP8 becomes BF16: a 4-bit (E5M2: 3-bit) significand times its scale, rounded to 8 bits. This is exact if scales are
// powers of two; otherwise rounding adds at most 2⁻⁸ to the 2⁻⁴ lost by the format itself, and F32 would take twice the
// memory. NF4 and FP4 of bitsandbytes become the type in their quant_state, which the original library computes with.
// MXFP4 stays MXFP4, in GGUF's order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/block_encode.h"
#include "engine/format/huggingface_parts.h"

enum { NAME_ROOM = 320, QUANT_STATE_LIMIT = 1 << 16 };

// ---- unaligned values of any float type ----

static float e4m3_to_f32(uint8_t bits) { // no infinities; 127 is NaN
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 127) == 127) return NAN;
    float value = exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
    return bits & 128 ? -value : value;
}

static float e5m2_to_f32(uint8_t bits) { return f16_to_f32((uint16_t)(bits << 8)); }

static float value_at(const struct safetensors_tensor *t, uint64_t i) {
    const uint8_t *p = (const uint8_t *)t->data + i * safetensors_dtype_bytes(t->dtype);
    uint16_t half;
    float value;
    switch (t->dtype) {
    case DTYPE_F32: return memcpy(&value, p, 4), value;
    case DTYPE_F16: return memcpy(&half, p, 2), f16_to_f32(half);
    case DTYPE_BF16: return memcpy(&half, p, 2), bf16_to_f32(half);
    case DTYPE_F8_E8M0: return ldexpf(1, *p - 127);
    default: return 0; // excluded by is_scale
    }
}

static bool is_scale(enum safetensors_dtype dtype) {
    return dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16 || dtype == DTYPE_F8_E8M0;
}

static bool open_float(struct huggingface_source *s, struct status *st) {
    static const enum block_id ids[DTYPE_COUNT] = {[DTYPE_F16] = BLOCK_F16, [DTYPE_BF16] = BLOCK_BF16};
    enum safetensors_dtype dtype = s->tensor->dtype;
    if (dtype != DTYPE_F32 && !ids[dtype])
        return status_fail(st, STATUS_UNSUPPORTED,
                           "unsupported dtype %s (supported: F32, F16, BF16, FP8, bitsandbytes NF4, MXFP4 of gpt-oss)",
                           safetensors_dtype_name(dtype));
    s->format = &block_formats[ids[dtype]];
    return true;
}

// ---- FP8 ----

static const float *fp8_values(enum safetensors_dtype dtype) {
    static _Thread_local float tables[2][256];
    static _Thread_local bool filled;
    for (int i = 0; i < 256 && !filled; i++) {
        tables[0][i] = e4m3_to_f32((uint8_t)i);
        tables[1][i] = e5m2_to_f32((uint8_t)i);
    }
    filled = true;
    return tables[dtype == DTYPE_F8_E5M2];
}

static void decode_fp8(const struct huggingface_source *s, uint64_t row, void *out) {
    const uint8_t *codes = (const uint8_t *)s->tensor->data + row * s->columns;
    const float *values = fp8_values(s->tensor->dtype);
    uint16_t *to = out;
    uint64_t first = row / s->scale_rows * s->scales_per_row;
    for (uint64_t start = 0; start < s->columns; start += s->scale_columns) {
        float scale = s->scales ? value_at(s->scales, first + start / s->scale_columns) : 1;
        uint64_t end = s->columns - start < s->scale_columns ? s->columns : start + s->scale_columns;
        for (uint64_t i = start; i < end; i++) to[i] = bf16_from_f32(values[codes[i]] * scale);
    }
}

// How many of `length` share each of `n` scales; 0 if they do not fit.
static uint64_t share_length(uint64_t length, uint64_t n, uint64_t block) {
    if (n == 1) return length;
    if (n == length) return 1;
    return block && (length + block - 1) / block == n ? block : 0;
}

static bool block_size(const struct huggingface_import *f, uint64_t out[2]) {
    const json_t *size = huggingface_member(f, "quantization_config.weight_block_size");
    out[0] = out[1] = 128; // the default
    for (size_t i = 0; i < 2 && json_array_size(size) == 2; i++) {
        json_int_t value = json_integer_value(json_array_get(size, i));
        if (value < 1 || value > UINT16_MAX) return false;
        out[i] = (uint64_t)value;
    }
    return true;
}

static const struct safetensors_tensor *find_part(const struct huggingface_import *f, const char *name,
                                                  const char *ending) {
    char part[NAME_ROOM];
    snprintf(part, sizeof part, "%s%s", name, ending);
    return safetensors_find(&f->files, part);
}

static bool open_fp8(struct huggingface_import *f, struct huggingface_source *s, struct status *st) {
    const char *name = s->tensor->name;
    uint64_t block[2], n_rows = 1, n_columns = 1;
    if (!block_size(f, block))
        return huggingface_fail_config(f, st, "weight_block_size: expected numbers from 1 to 65535");
    s->format = &block_formats[BLOCK_BF16];
    s->decode = decode_fp8;
    s->scales = find_part(f, name, "_scale_inv");
    if (!s->scales) s->scales = find_part(f, name, "_scale");
    if (s->scales) {
        const struct safetensors_tensor *t = s->scales;
        if (!is_scale(t->dtype) || t->n_dims > 2 || t->count == 0)
            return status_fail(st, STATUS_UNSUPPORTED, "unsupported scales (%s, %d dimensions)",
                               safetensors_dtype_name(t->dtype), t->n_dims);
        n_rows = t->n_dims ? t->dims[0] : 1;
        n_columns = t->n_dims == 2 ? t->dims[1] : 1;
    }
    s->scale_rows = share_length(s->rows, n_rows, block[0]);
    s->scale_columns = share_length(s->columns, n_columns, block[1]);
    s->scales_per_row = n_columns;
    if (s->scale_rows && s->scale_columns) return true;
    return status_fail(st, STATUS_FORMAT, "%llu × %llu scales do not fit %llu × %llu weights in blocks of %llu × %llu",
                       (unsigned long long)n_rows, (unsigned long long)n_columns, (unsigned long long)s->rows,
                       (unsigned long long)s->columns, (unsigned long long)block[0], (unsigned long long)block[1]);
}

// ---- bitsandbytes: two codes per byte, high half first; element = value of the code × absmax of its block ----

static void store_float(const struct huggingface_source *s, void *out, uint64_t i, float value) {
    if (s->format->id == BLOCK_BF16) ((uint16_t *)out)[i] = bf16_from_f32(value);
    else if (s->format->id == BLOCK_F16) ((uint16_t *)out)[i] = f16_from_f32(value);
    else ((float *)out)[i] = value;
}

static void decode_nf4(const struct huggingface_source *s, uint64_t row, void *out) {
    const uint8_t *codes = s->tensor->data;
    const uint64_t first = row * s->columns;
    for (uint64_t i = 0; i < s->columns;) {
        const uint64_t rest = s->block - (first + i) % s->block, end = s->columns - i < rest ? s->columns : i + rest;
        const float absmax = s->absmax[(first + i) / s->block];
        for (; i < end; i++) {
            int code = codes[(first + i) / 2] >> ((first + i) % 2 ? 0 : 4) & 15;
            store_float(s, out, i, s->codes[code] * absmax);
        }
    }
}

struct quant_state {
    json_t *json;
    const struct safetensors_tensor *absmax, *map, *nested_absmax, *nested_map;
};

static bool state_integer(const struct quant_state *q, const char *name, uint64_t *out, struct status *st) {
    json_int_t value = json_integer_value(json_object_get(q->json, name));
    if (value < 1 || value > 1 << 20)
        return status_fail(st, STATUS_FORMAT, "quant_state: %s: %lld is out of range (1 to %d)", name, (long long)value,
                           1 << 20);
    *out = (uint64_t)value;
    return true;
}

static bool state_dims(const struct quant_state *q, struct huggingface_source *s, struct status *st) {
    const json_t *shape = json_object_get(q->json, "shape");
    size_t n = json_array_size(shape);
    uint64_t count = 1;
    if (n < 1 || n > 4)
        return status_fail(st, STATUS_FORMAT, "quant_state: number of dimensions %zu is out of range (1 to 4)", n);
    s->n_dims = (int)n;
    for (size_t i = 0; i < n; i++) {
        json_int_t value = json_integer_value(json_array_get(shape, n - 1 - i));
        if (value < 1 || !checked_mul(count, (uint64_t)value, &count))
            return status_fail(st, STATUS_FORMAT, "quant_state: invalid shape");
        s->dims[i] = (uint64_t)value;
    }
    if (count / 2 + count % 2 == s->tensor->count) return true;
    return status_fail(st, STATUS_FORMAT, "quant_state: shape has %llu elements but the tensor has %llu bytes",
                       (unsigned long long)count, (unsigned long long)s->tensor->count);
}

// Double quantisation: absmax itself is stored in blocks of 8-bit codes, minus an offset.
static bool read_absmax(const struct huggingface_import *f, const struct quant_state *q, struct huggingface_source *s,
                        uint64_t n, struct status *st) {
    uint64_t block = 1;
    double offset = json_number_value(json_object_get(q->json, "nested_offset"));
    bool nested = q->nested_absmax;
    const struct safetensors_tensor *t = q->absmax;
    if (t->count != n || t->dtype != (nested ? DTYPE_U8 : DTYPE_F32))
        return status_fail(st, STATUS_FORMAT, "absmax: expected %llu %s values, got %llu %s", (unsigned long long)n,
                           nested ? "U8" : "F32", (unsigned long long)t->count, safetensors_dtype_name(t->dtype));
    if (nested && !state_integer(q, "nested_blocksize", &block, st)) return false;
    if (nested && (q->nested_absmax->dtype != DTYPE_F32 || q->nested_absmax->count != (n + block - 1) / block ||
                   !q->nested_map || q->nested_map->dtype != DTYPE_F32 || q->nested_map->count != 256))
        return status_fail(st, STATUS_FORMAT, "nested_absmax and nested_quant_map do not match absmax");
    float *absmax = arena_array((struct arena *)&f->files.arena, n, sizeof *absmax, st);
    if (!absmax) return false;
    for (uint64_t i = 0; i < n; i++)
        absmax[i] =
            nested ? value_at(q->nested_map, ((const uint8_t *)t->data)[i]) * value_at(q->nested_absmax, i / block) +
                         (float)offset
                   : value_at(t, i);
    s->absmax = absmax;
    return true;
}

static bool read_codes(const struct huggingface_import *f, const struct quant_state *q, struct huggingface_source *s,
                       struct status *st) {
    if (q->map->dtype != DTYPE_F32 || q->map->count != 16)
        return status_fail(st, STATUS_FORMAT, "quant_map: expected 16 F32 values, got %llu %s",
                           (unsigned long long)q->map->count, safetensors_dtype_name(q->map->dtype));
    float *codes = arena_alloc((struct arena *)&f->files.arena, 16 * sizeof *codes);
    for (uint64_t i = 0; i < 16; i++) codes[i] = value_at(q->map, i);
    s->codes = codes;
    return true;
}

static bool read_state(struct huggingface_import *f, struct quant_state *q, struct huggingface_source *s,
                       struct status *st) {
    const char *dtype = json_string_value(json_object_get(q->json, "dtype"));
    enum block_id id = dtype && !strcmp(dtype, "float16")   ? BLOCK_F16
                       : dtype && !strcmp(dtype, "float32") ? BLOCK_F32
                                                            : BLOCK_BF16;
    if (!q->absmax || !q->map) return status_fail(st, STATUS_FORMAT, "missing absmax or quant_map");
    if (!state_integer(q, "blocksize", &s->block, st) || !state_dims(q, s, st)) return false;
    uint64_t count = s->tensor->count * 2;
    s->format = &block_formats[id];
    s->decode = decode_nf4;
    return read_codes(f, q, s, st) && read_absmax(f, q, s, (count + s->block - 1) / s->block, st);
}

static bool open_nf4(struct huggingface_import *f, struct huggingface_source *s, const struct safetensors_tensor *state,
                     struct status *st) {
    const char *name = s->tensor->name;
    json_error_t error;
    struct quant_state q = {.absmax = find_part(f, name, ".absmax"),
                            .map = find_part(f, name, ".quant_map"),
                            .nested_absmax = find_part(f, name, ".nested_absmax"),
                            .nested_map = find_part(f, name, ".nested_quant_map")};
    if (state->size <= QUANT_STATE_LIMIT) q.json = json_loadb(state->data, state->size, JSON_REJECT_DUPLICATES, &error);
    bool done = q.json ? read_state(f, &q, s, st) : status_fail(st, STATUS_FORMAT, "quant_state: invalid JSON");
    json_decref(q.json);
    return done;
}

// ---- MXFP4: [rows, blocks, 16] bytes, low half first; GGUF pairs element i with i + 16 ----

static void decode_mxfp4(const struct huggingface_source *s, uint64_t row, void *out) {
    uint64_t n = s->columns / 32;
    const uint8_t *codes = (const uint8_t *)s->tensor->data + row * n * 16,
                  *scales = (const uint8_t *)s->scales->data + row * n;
    struct block_mxfp4 *to = out;
    for (uint64_t b = 0; b < n; b++, codes += 16) {
        to[b].e = scales[b];
        for (int i = 0; i < 16; i++) { // element i is in half i % 2 of byte i / 2
            int low = codes[i / 2] >> 4 * (i % 2) & 15, high = codes[8 + i / 2] >> 4 * (i % 2) & 15;
            to[b].q[i] = (uint8_t)(low | high << 4);
        }
    }
}

static bool open_mxfp4(struct huggingface_import *f, struct huggingface_source *s, struct status *st) {
    const struct safetensors_tensor *t = s->tensor;
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%.*s_scales", (int)(strlen(t->name) - strlen("_blocks")), t->name);
    s->scales = safetensors_find(&f->files, name);
    if (!s->scales) return status_fail(st, STATUS_FORMAT, "missing tensor %s", name);
    bool fits = t->dtype == DTYPE_U8 && s->scales->dtype == DTYPE_U8 && t->n_dims >= 3 && t->n_dims <= 4 &&
                t->dims[t->n_dims - 1] == 16 && s->scales->n_dims == t->n_dims - 1 &&
                s->scales->count == t->count / 16 && s->scales->dims[t->n_dims - 2] == t->dims[t->n_dims - 2] &&
                t->dims[t->n_dims - 2] <= UINT32_MAX;
    if (!fits) return status_fail(st, STATUS_FORMAT, "shape does not match %s", name);
    s->n_dims = t->n_dims - 1;
    s->dims[0] = t->dims[t->n_dims - 2] * 32;
    for (int i = 1; i < s->n_dims; i++) s->dims[i] = t->dims[t->n_dims - 2 - i];
    s->format = &block_formats[BLOCK_MXFP4];
    s->decode = decode_mxfp4;
    return true;
}

// ---- unquantised gpt-oss: [experts, inputs, outputs], where others have inputs innermost ----

static void decode_transposed(const struct huggingface_source *s, uint64_t row, void *out) {
    const size_t size = s->format->bytes;
    const uint64_t outputs = s->dims[1], first = row / outputs * s->columns * outputs + row % outputs;
    const uint8_t *from = (const uint8_t *)s->tensor->data + first * size;
    for (uint64_t i = 0; i < s->columns; i++) memcpy((uint8_t *)out + i * size, from + i * outputs * size, size);
}

static bool open_transposed(struct huggingface_source *s, struct status *st) {
    const struct safetensors_tensor *t = s->tensor;
    if (t->n_dims != 3) return status_fail(st, STATUS_FORMAT, "expected 3 dimensions, got %d", t->n_dims);
    s->n_dims = 3;
    s->dims[0] = t->dims[1], s->dims[1] = t->dims[2], s->dims[2] = t->dims[0];
    s->decode = decode_transposed;
    return open_float(s, st);
}

// ---- all ----

bool huggingface_source_is_part(const char *name) {
    static const char *const endings[] = {
        ".weight_scale", ".weight_scale_inv", ".input_scale", ".activation_scale", ".k_scale",          ".v_scale",
        "_proj_scales",  ".absmax",           ".quant_map",   ".nested_absmax",    ".nested_quant_map",
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (span_ends_with(span_of(name), endings[i])) return true;
    return strstr(name, ".quant_state.");
}

static bool open_kind(struct huggingface_import *f, struct huggingface_source *s, struct status *st) {
    const struct safetensors_tensor *t = s->tensor, *state = find_part(f, t->name, ".quant_state.bitsandbytes__nf4");
    if (!state) state = find_part(f, t->name, ".quant_state.bitsandbytes__fp4");
    if (state && t->dtype == DTYPE_U8) return open_nf4(f, s, state, st);
    if (span_ends_with(span_of(t->name), "_blocks")) return open_mxfp4(f, s, st);
    if (span_ends_with(span_of(t->name), ".experts.gate_up_proj") ||
        span_ends_with(span_of(t->name), ".experts.down_proj"))
        return open_transposed(s, st);
    if (t->n_dims > 4) return status_fail(st, STATUS_UNSUPPORTED, "too many dimensions: %d (maximum 4)", t->n_dims);
    s->n_dims = t->n_dims ? t->n_dims : 1;
    for (int i = 0; i < s->n_dims; i++) s->dims[i] = t->n_dims ? t->dims[t->n_dims - 1 - i] : 1;
    return true;
}

bool huggingface_source_open(struct huggingface_import *f, const struct safetensors_tensor *t,
                             struct huggingface_source *s, struct status *st) {
    *s = (struct huggingface_source){.tensor = t};
    bool good = t->count ? open_kind(f, s, st) : status_fail(st, STATUS_FORMAT, "no elements");
    if (good) {
        s->columns = s->dims[0];
        s->rows = 1;
        for (int i = 1; i < s->n_dims; i++) s->rows *= s->dims[i]; // at most t->count
        bool fp8 = t->dtype == DTYPE_F8_E4M3 || t->dtype == DTYPE_F8_E5M2;
        if (!s->format) good = fp8 ? open_fp8(f, s, st) : open_float(s, st);
    }
    if (!good) return status_prefix(st, "%s: tensor %s", f->g->path, t->name);
    s->row_bytes = s->columns / s->format->elements * s->format->bytes;
    return true;
}

void huggingface_source_read(const struct huggingface_source *s, uint64_t row, void *out) {
    if (s->decode) s->decode(s, row, out);
    else memcpy(out, (const uint8_t *)s->tensor->data + row * s->row_bytes, s->row_bytes);
}
