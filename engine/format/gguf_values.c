// Look-ups in an open GGUF file and typed reads of its values.
#include <stdlib.h>
#include <string.h>

#include "engine/format/gguf.h"

static const char *const type_names[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = "u8",   [GGUF_I8] = "i8",   [GGUF_U16] = "u16",   [GGUF_I16] = "i16",       [GGUF_U32] = "u32",
    [GGUF_I32] = "i32", [GGUF_F32] = "f32", [GGUF_BOOL] = "bool", [GGUF_STRING] = "string", [GGUF_ARRAY] = "array",
    [GGUF_U64] = "u64", [GGUF_I64] = "i64", [GGUF_F64] = "f64",
};

static int key_order(const void *key, const void *pair) {
    return span_compare(*(const struct span *)key, ((const struct gguf_pair *)pair)->key);
}

static int tensor_order(const void *name, const void *tensor) {
    return span_compare(*(const struct span *)name, ((const struct gguf_tensor *)tensor)->name);
}

const struct gguf_pair *gguf_find(const struct gguf *g, const char *key) {
    const struct span name = span_of(key);
    return !g->n_pairs ? NULL : bsearch(&name, g->pairs, g->n_pairs, sizeof *g->pairs, key_order);
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name) {
    const struct span key = span_of(name);
    return !g->n_tensors ? NULL : bsearch(&key, g->tensors, g->n_tensors, sizeof *g->tensors, tensor_order);
}

// The checked reader has verified that these bytes are inside the file.
static uint64_t load_bits(const uint8_t *p, size_t size) {
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++) bits |= (uint64_t)p[i] << 8 * i;
    return bits;
}

static double load_f32(const uint8_t *p) {
    float value;
    memcpy(&value, p, sizeof value);
    return (double)value;
}

static double load_f64(const uint8_t *p) {
    double value;
    memcpy(&value, p, sizeof value);
    return value;
}

double gguf_number(const struct gguf_pair *p, uint64_t i) {
    switch (p->element) {
    case GGUF_U8: return p->data[i];
    case GGUF_I8: return (int8_t)p->data[i];
    case GGUF_U16: return (double)load_bits(p->data + 2 * i, 2);
    case GGUF_I16: return (int16_t)load_bits(p->data + 2 * i, 2);
    case GGUF_U32: return (double)load_bits(p->data + 4 * i, 4);
    case GGUF_I32: return (int32_t)load_bits(p->data + 4 * i, 4);
    case GGUF_F32: return load_f32(p->data + 4 * i);
    case GGUF_BOOL: return p->data[i] != 0;
    case GGUF_U64: return (double)load_bits(p->data + 8 * i, 8);
    case GGUF_I64: return (double)(int64_t)load_bits(p->data + 8 * i, 8);
    case GGUF_F64: return load_f64(p->data + 8 * i);
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_TYPE_COUNT: break;
    }
    return 0;
}

// Looks up a key for a typed read. False if it is missing; the read then returns *done.
static bool find_value(const struct gguf *g, const char *key, enum gguf_need need, const struct gguf_pair **p,
                       bool *done, struct status *st) {
    if ((*p = gguf_find(g, key))) return true;
    *done = need == GGUF_OPTIONAL || status_fail(st, STATUS_FORMAT, "%s: missing key %s", g->path, key);
    return false;
}

static bool wrong_type(const struct gguf *g, const struct gguf_pair *p, const char *expected, struct status *st) {
    return status_fail(st, STATUS_FORMAT, "%s: %.*s: expected %s, got %s%s%s", g->path, (int)p->key.size, p->key.data,
                       expected, type_names[p->type], p->type == GGUF_ARRAY ? " of " : "",
                       p->type == GGUF_ARRAY ? type_names[p->element] : "");
}

static bool is_integer(enum gguf_type type) { return type <= GGUF_I32 || type == GGUF_U64 || type == GGUF_I64; }

// A u64 above INT64_MAX becomes INT64_MAX, which no caller accepts.
static int64_t load_integer(const struct gguf_pair *p) {
    if (p->type == GGUF_I64) return (int64_t)load_bits(p->data, 8);
    if (p->type != GGUF_U64) return (int64_t)gguf_number(p, 0); // exact: at most 32 bits
    uint64_t bits = load_bits(p->data, 8);
    return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

bool gguf_get_int(const struct gguf *g, const char *key, enum gguf_need need, int64_t low, int64_t high, int64_t *out,
                  struct status *st) {
    const struct gguf_pair *p;
    bool done;
    if (!find_value(g, key, need, &p, &done, st)) return done;
    if (!is_integer(p->type)) return wrong_type(g, p, "an integer", st);
    int64_t value = load_integer(p);
    if (value < low || value > high)
        return status_fail(st, STATUS_FORMAT, "%s: %s: %lld is out of range (%lld to %lld)", g->path, key,
                           (long long)value, (long long)low, (long long)high);
    *out = value;
    return true;
}

bool gguf_get_float(const struct gguf *g, const char *key, enum gguf_need need, double low, double high, float *out,
                    struct status *st) {
    const struct gguf_pair *p;
    bool done;
    if (!find_value(g, key, need, &p, &done, st)) return done;
    if (p->type != GGUF_F32 && p->type != GGUF_F64) return wrong_type(g, p, "a floating-point number", st);
    double value = gguf_number(p, 0);
    if (!(value >= low && value <= high)) // NaN fails too
        return status_fail(st, STATUS_FORMAT, "%s: %s: %g is out of range (%g to %g)", g->path, key, value, low, high);
    *out = (float)value;
    return true;
}

bool gguf_get_bool(const struct gguf *g, const char *key, bool *out, struct status *st) {
    const struct gguf_pair *p;
    bool done;
    if (!find_value(g, key, GGUF_OPTIONAL, &p, &done, st)) return done;
    if (p->type != GGUF_BOOL) return wrong_type(g, p, "a bool", st);
    *out = p->data[0] != 0;
    return true;
}

bool gguf_get_string(const struct gguf *g, const char *key, enum gguf_need need, struct span *out, struct status *st) {
    const struct gguf_pair *p;
    bool done;
    if (!find_value(g, key, need, &p, &done, st)) return done;
    if (p->type != GGUF_STRING) return wrong_type(g, p, "a string", st);
    *out = (struct span){(const char *)p->data + 8, (size_t)p->size - 8};
    return true;
}

struct span *gguf_get_strings(const struct gguf *g, const char *key, struct arena *arena, uint64_t *count,
                              struct status *st) {
    *count = 0;
    const struct gguf_pair *p = gguf_find(g, key);
    if (!p) return NULL;
    if (p->type != GGUF_ARRAY || p->element != GGUF_STRING) {
        wrong_type(g, p, "an array of strings", st);
        return NULL;
    }
    struct span *strings = arena_array(arena, p->count, sizeof *strings, st);
    if (!strings) {
        status_prefix(st, "%s: %s", g->path, key);
        return NULL;
    }
    struct reader r = reader_over(p->data, (size_t)p->size);
    for (uint64_t i = 0; i < p->count; i++) strings[i] = reader_bytes(&r, reader_u64(&r));
    *count = p->count;
    return strings;
}
