// Builds a struct gguf from keys and tensors in any order; used by the file reader and by importers.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/format/gguf_parts.h"

enum {
    PATH_SHOWN = 200, // bytes of a path shown in messages
    BUFFER_ALIGNMENT = 64,
    LARGE_BUFFER = 1 << 20, // buffers of this size and more have their own pages
};

// ---- checks ----

bool gguf_measure(struct gguf_tensor *t, struct status *st) {
    const struct block_format *f = t->format;
    for (int i = 0; i < t->n_dims; i++)
        if (t->dims[i] == 0) return status_fail(st, STATUS_FORMAT, "dimension %d is zero", i);
    t->size = t->dims[0] / f->elements;
    if (t->dims[0] % f->elements)
        return status_fail(st, STATUS_FORMAT, "row size %llu is not a multiple of the %s block size %zu",
                           (unsigned long long)t->dims[0], f->name, f->elements);
    if (!checked_mul(t->size, f->bytes, &t->size) || !checked_mul(t->size, t->dims[1], &t->size) ||
        !checked_mul(t->size, t->dims[2], &t->size) || !checked_mul(t->size, t->dims[3], &t->size))
        return status_fail(st, STATUS_FORMAT, "dimensions are too large");
    return true;
}

static int pair_compare(const void *a, const void *b) {
    return span_compare(((const struct gguf_pair *)a)->key, ((const struct gguf_pair *)b)->key);
}

static int tensor_compare(const void *a, const void *b) {
    return span_compare(((const struct gguf_tensor *)a)->name, ((const struct gguf_tensor *)b)->name);
}

static int place_compare(const void *a, const void *b) {
    const char *p = ((const struct gguf_tensor *)a)->data, *q = ((const struct gguf_tensor *)b)->data;
    return (p > q) - (p < q);
}

bool gguf_sort_pairs(struct gguf *g, struct status *st) {
    if (g->n_pairs) qsort(g->pairs, g->n_pairs, sizeof *g->pairs, pair_compare);
    for (uint64_t i = 1; i < g->n_pairs; i++) {
        struct span key = g->pairs[i].key;
        if (!pair_compare(&g->pairs[i - 1], &g->pairs[i]))
            return status_fail(st, STATUS_FORMAT, "duplicate key %.*s", (int)key.size, key.data);
    }
    return true;
}

bool gguf_sort_tensors(struct gguf *g, struct status *st) {
    struct gguf_tensor *t = g->tensors;
    if (g->n_tensors) qsort(t, g->n_tensors, sizeof *t, place_compare);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if ((const char *)t[i - 1].data + t[i - 1].size > (const char *)t[i].data)
            return status_fail(st, STATUS_FORMAT, "tensors %.*s and %.*s overlap", (int)t[i - 1].name.size,
                               t[i - 1].name.data, (int)t[i].name.size, t[i].name.data);
    if (g->n_tensors) qsort(t, g->n_tensors, sizeof *t, tensor_compare);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if (!tensor_compare(&t[i - 1], &t[i]))
            return status_fail(st, STATUS_FORMAT, "duplicate tensor %.*s", (int)t[i].name.size, t[i].name.data);
    return true;
}

// ---- begin and end ----

void gguf_begin(struct gguf *g, const char *name) {
    size_t length = strlen(name);
    *g = (struct gguf){.version = 3};
    g->path = length <= PATH_SHOWN ? xstrdup(name) : xasprintf("...%s", name + length - PATH_SHOWN);
}

void gguf_close(struct gguf *g) {
    for (int i = 0; i < g->n_mappings; i++) mapping_close(&g->mappings[i]);
    for (int i = 0; i < g->n_regions; i++) region_free(g->regions[i].data, g->regions[i].size);
    arena_free(&g->arena);
    free(g->path);
    *g = (struct gguf){0};
}

static bool check_name(struct span name, const char *what, struct status *st) {
    if (name.size >= 1 && name.size <= GGUF_NAME_LIMIT) return true;
    return status_fail(st, STATUS_FORMAT, "%s name length %zu is out of range (1 to %d): '%.*s'", what, name.size,
                       GGUF_NAME_LIMIT, name.size < 64 ? (int)name.size : 64, name.data);
}

static bool check_tensors(struct gguf *g, struct status *st) {
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        if (!check_name(t->name, "tensor", st)) return false;
        if (!gguf_measure(t, st)) return status_prefix(st, "tensor %.*s", (int)t->name.size, t->name.data);
    }
    return gguf_sort_tensors(g, st);
}

bool gguf_finish(struct gguf *g, struct status *st) {
    struct status problem = {0};
    bool good = true;
    for (uint64_t i = 0; i < g->n_pairs && good; i++) good = check_name(g->pairs[i].key, "key", &problem);
    if (good && gguf_sort_pairs(g, &problem) && check_tensors(g, &problem)) return true;
    status_fail(st, problem.code, "%s: %s", g->path, problem.text);
    gguf_close(g);
    return false;
}

// ---- adding ----

// Makes room for one more item; the array is full when count is 0 or a power of two.
static void *grown(struct gguf *g, void *items, uint64_t count, size_t size) {
    if (count & (count - 1)) return items;
    void *more = arena_alloc(&g->arena, (count ? 2 * count : 1) * size);
    if (count) memcpy(more, items, count * size);
    return more;
}

static struct span copied(struct gguf *g, const char *name) {
    struct span s = span_of(name);
    return (struct span){arena_copy(&g->arena, s.data, s.size), s.size};
}

// Adds a pair and returns the room for its value.
static uint8_t *add_pair(struct gguf *g, const char *key, struct gguf_pair pair) {
    uint8_t *data = arena_alloc(&g->arena, pair.size);
    pair.key = copied(g, key);
    pair.data = data;
    g->pairs = grown(g, g->pairs, g->n_pairs, sizeof pair);
    g->pairs[g->n_pairs++] = pair;
    return data;
}

static void add_scalar(struct gguf *g, const char *key, enum gguf_type type, const void *value, size_t size) {
    memcpy(add_pair(g, key, (struct gguf_pair){.type = type, .element = type, .count = 1, .size = size}), value, size);
}

void gguf_add_int(struct gguf *g, const char *key, uint32_t value) {
    add_scalar(g, key, GGUF_U32, &value, sizeof value);
}

void gguf_add_float(struct gguf *g, const char *key, float value) {
    add_scalar(g, key, GGUF_F32, &value, sizeof value);
}

void gguf_add_bool(struct gguf *g, const char *key, bool value) { add_scalar(g, key, GGUF_BOOL, &(uint8_t){value}, 1); }

// As in files: the length, then the bytes.
static uint8_t *put_string(uint8_t *to, struct span s) {
    uint64_t size = s.size;
    memcpy(to, &size, sizeof size);
    if (size) memcpy(to + sizeof size, s.data, size);
    return to + sizeof size + size;
}

void gguf_add_string(struct gguf *g, const char *key, struct span value) {
    const struct gguf_pair pair = {
        .type = GGUF_STRING, .element = GGUF_STRING, .count = 1, .size = sizeof(uint64_t) + value.size};
    put_string(add_pair(g, key, pair), value);
}

void gguf_add_strings(struct gguf *g, const char *key, const struct span *values, uint64_t count) {
    struct gguf_pair pair = {.type = GGUF_ARRAY, .element = GGUF_STRING, .count = count};
    for (uint64_t i = 0; i < count; i++) pair.size += sizeof(uint64_t) + values[i].size;
    uint8_t *at = add_pair(g, key, pair);
    for (uint64_t i = 0; i < count; i++) at = put_string(at, values[i]);
}

void gguf_add_numbers(struct gguf *g, const char *key, enum gguf_type element, const void *values, uint64_t count) {
    assert(gguf_value_sizes[element]);
    const struct gguf_pair pair = {
        .type = GGUF_ARRAY, .element = element, .count = count, .size = count * gguf_value_sizes[element]};
    uint8_t *to = add_pair(g, key, pair);
    if (pair.size) memcpy(to, values, pair.size);
}

void gguf_add_tensor(struct gguf *g, const char *name, const struct block_format *format, int n_dims,
                     const uint64_t *dims, const void *data) {
    assert(n_dims >= 1 && n_dims <= 4 && (uintptr_t)data % (format->id == BLOCK_F32 ? 4 : 2) == 0);
    struct gguf_tensor t = {.name = copied(g, name), .format = format, .n_dims = n_dims, .data = data};
    for (int i = 0; i < 4; i++) t.dims[i] = i < n_dims ? dims[i] : 1;
    g->tensors = grown(g, g->tensors, g->n_tensors, sizeof t);
    g->tensors[g->n_tensors++] = t;
}

void gguf_own_mapping(struct gguf *g, struct mapping mapping) {
    g->mappings = grown(g, g->mappings, (uint64_t)g->n_mappings, sizeof mapping);
    g->mappings[g->n_mappings++] = mapping;
}

void *gguf_own_buffer(struct gguf *g, uint64_t size, struct status *st) {
    if (size < LARGE_BUFFER) {
        uint8_t *p = arena_alloc(&g->arena, (size_t)size + BUFFER_ALIGNMENT);
        return p + (-(uintptr_t)p & (BUFFER_ALIGNMENT - 1));
    }
    struct gguf_region region = {region_alloc((size_t)size), (size_t)size};
    if (!region.data) {
        status_fail(st, STATUS_MEMORY, "%s: cannot allocate %llu bytes", g->path, (unsigned long long)size);
        return NULL;
    }
    g->regions = grown(g, g->regions, (uint64_t)g->n_regions, sizeof region);
    g->regions[g->n_regions++] = region;
    return region.data;
}

uint64_t gguf_file_bytes(const struct gguf *g) {
    uint64_t total = 0;
    for (int i = 0; i < g->n_mappings; i++) total += g->mappings[i].size;
    return total;
}

uint64_t gguf_own_bytes(const struct gguf *g) {
    uint64_t total = 0;
    for (int i = 0; i < g->n_regions; i++) total += g->regions[i].size;
    return total;
}
