#include "engine/format/gguf.h"

#include <assert.h>
#include <string.h>

#include "engine/format/gguf_parts.h"

// The file, little endian:
//   "GGUF"  u32 version  u64 n_tensors  u64 n_pairs
//   pairs:    string key, u32 type, value
//     string: u64 length, bytes; array: u32 element type, u64 count, elements
//   tensors:  string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset from the start of the data
//   padding to general.alignment, data
enum {
    PAIR_BYTES = 8 + 1 + 5, // minimum size of a pair and of a tensor in a file
    TENSOR_BYTES = 8 + 1 + 24,
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MIN = 8, // required by GGUF, and by typed access to blocks
    ALIGNMENT_MAX = 1 << 20,
};

const size_t gguf_value_sizes[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

static bool read_header(struct reader *r, struct gguf *g) {
    struct span magic = reader_bytes(r, 4);
    if (reader_failed(r)) return status_prefix(&r->status, "not a GGUF file");
    if (memcmp(magic.data, "GGUF", 4))
        return reader_fail(r, "not a GGUF file (starts with '%.*s')", (int)magic.size, magic.data);
    g->version = reader_u32(r);
    uint32_t swapped = __builtin_bswap32(g->version);
    if (!reader_failed(r) && g->version != 2 && g->version != 3) {
        if (swapped >= 1 && swapped <= 3)
            return status_fail(&r->status, STATUS_UNSUPPORTED, "big-endian files are not supported");
        return status_fail(&r->status, STATUS_UNSUPPORTED, "unsupported GGUF version %u (expected 2 or 3)", g->version);
    }
    g->n_tensors = reader_u64(r);
    g->n_pairs = reader_u64(r);
    if (reader_failed(r)) return status_prefix(&r->status, "header");
    if (g->n_pairs > reader_left(r) / PAIR_BYTES)
        return reader_fail(r, "%llu keys do not fit in the file", (unsigned long long)g->n_pairs);
    if (g->n_tensors > reader_left(r) / TENSOR_BYTES)
        return reader_fail(r, "%llu tensors do not fit in the file", (unsigned long long)g->n_tensors);
    return true;
}

static struct span read_name(struct reader *r) {
    uint64_t length = reader_u64(r);
    if (!reader_failed(r) && (length == 0 || length > GGUF_NAME_LIMIT))
        reader_fail(r, "name length %llu is out of range (1 to %d)", (unsigned long long)length, GGUF_NAME_LIMIT);
    return reader_bytes(r, length);
}

static uint32_t read_type(struct reader *r, const char *what) {
    uint32_t type = reader_u32(r);
    if (type < GGUF_TYPE_COUNT) return type;
    reader_fail(r, "unknown %s type %u", what, type);
    return 0;
}

static void read_value(struct reader *r, struct gguf_pair *p) {
    p->type = p->element = read_type(r, "value");
    p->count = 1;
    if (p->type == GGUF_ARRAY) {
        p->element = read_type(r, "array element");
        p->count = reader_u64(r);
        if (p->element == GGUF_ARRAY) reader_fail(r, "nested arrays are not supported");
    }
    if (reader_failed(r)) return;
    size_t start = r->at;
    if (p->element != GGUF_STRING) reader_items(r, p->count, gguf_value_sizes[p->element]);
    else if (p->count > reader_left(r) / 8)
        reader_fail(r, "%llu strings do not fit in the file", (unsigned long long)p->count);
    else
        for (uint64_t i = 0; i < p->count && !reader_failed(r); i++) reader_bytes(r, reader_u64(r));
    p->data = r->data + start;
    p->size = r->at - start;
}

static bool read_pairs(struct reader *r, struct gguf *g) {
    if (!(g->pairs = arena_array(&g->arena, g->n_pairs, sizeof *g->pairs, &r->status))) return false;
    for (uint64_t i = 0; i < g->n_pairs; i++) {
        struct gguf_pair *p = &g->pairs[i];
        p->key = read_name(r);
        if (reader_failed(r)) return status_prefix(&r->status, "key %llu", (unsigned long long)i);
        read_value(r, p);
        if (reader_failed(r)) return status_prefix(&r->status, "%.*s", (int)p->key.size, p->key.data);
    }
    return gguf_sort_pairs(g, &r->status);
}

#define X(id, gguf, name, bytes, elements) " " name
static const char supported[] = "supported:" BLOCK_FORMATS(X);
#undef X

static void read_tensor(struct reader *r, struct gguf_tensor *t, uint64_t *offset) {
    uint32_t n_dims = reader_u32(r);
    if (!reader_failed(r) && (n_dims < 1 || n_dims > 4))
        reader_fail(r, "number of dimensions %u is out of range (1 to 4)", n_dims);
    t->n_dims = (int)n_dims;
    for (uint32_t i = 0; i < 4; i++) t->dims[i] = i < n_dims ? reader_u64(r) : 1;
    uint32_t type = reader_u32(r);
    if (!reader_failed(r) && !(t->format = block_format_find(type))) {
        const char *name = block_format_known_name(type);
        if (name) status_fail(&r->status, STATUS_UNSUPPORTED, "unsupported format %s (%s)", name, supported);
        else reader_fail(r, "unknown format %u (%s)", type, supported);
    }
    *offset = reader_u64(r);
    if (!reader_failed(r)) gguf_measure(t, &r->status);
}

// Reads the directory. Offsets are resolved once the start of the data is known.
static bool read_tensors(struct reader *r, struct gguf *g, uint64_t *offsets) {
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        t->name = read_name(r);
        if (reader_failed(r)) return status_prefix(&r->status, "tensor %llu", (unsigned long long)i);
        read_tensor(r, t, &offsets[i]);
        if (reader_failed(r)) return status_prefix(&r->status, "tensor %.*s", (int)t->name.size, t->name.data);
    }
    return true;
}

static bool read_alignment(const struct gguf *g, int64_t *alignment, struct status *st) {
    *alignment = ALIGNMENT_DEFAULT;
    if (!gguf_get_int(g, "general.alignment", GGUF_OPTIONAL, ALIGNMENT_MIN, ALIGNMENT_MAX, alignment, st)) return false;
    if ((*alignment & (*alignment - 1)) == 0) return true;
    return status_fail(st, STATUS_FORMAT, "%s: general.alignment: %lld is not a power of two", g->path,
                       (long long)*alignment);
}

static bool place_tensors(struct reader *r, struct gguf *g, const uint64_t *offsets, uint64_t alignment) {
    uint64_t start, end;
    if (!checked_align(r->at, alignment, &start) || start > r->size)
        return reader_fail(r, "file ends before the tensor data");
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        const char *problem = NULL;
        if (offsets[i] % alignment) problem = "not aligned";
        else if (!checked_add(offsets[i], t->size, &end) || end > r->size - start) problem = "outside the file";
        if (problem)
            return reader_fail(r, "tensor %.*s: data (%llu bytes at offset %llu) is %s", (int)t->name.size,
                               t->name.data, (unsigned long long)t->size, (unsigned long long)offsets[i], problem);
        t->data = r->data + start + offsets[i];
    }
    return true;
}

static bool read_directory(struct reader *r, struct gguf *g, uint64_t alignment) {
    if (!(g->tensors = arena_array(&g->arena, g->n_tensors, sizeof *g->tensors, &r->status))) return false;
    uint64_t *offsets = arena_array(&g->arena, g->n_tensors, sizeof *offsets, &r->status);
    if (!offsets || !read_tensors(r, g, offsets)) return false;
    return g->n_tensors == 0 || (place_tensors(r, g, offsets, alignment) && gguf_sort_tensors(g, &r->status));
}

static bool read_file(struct gguf *g, const char *path, const void *data, size_t size, struct status *st) {
    gguf_begin(g, path);
    struct reader r = reader_over(data, size);
    int64_t alignment;
    if (read_header(&r, g) && read_pairs(&r, g) && read_alignment(g, &alignment, st) &&
        read_directory(&r, g, (uint64_t)alignment))
        return true;
    if (reader_failed(&r)) status_fail(st, r.status.code, "%s: %s", g->path, r.status.text);
    gguf_close(g);
    return false;
}

bool gguf_open_part(struct gguf *g, const char *path, struct status *st) {
    struct mapping m;
    *g = (struct gguf){0};
    if (!mapping_open(&m, path, st)) return false;
    if (read_file(g, path, m.data, m.size, st)) {
        gguf_own_mapping(g, m);
        return true;
    }
    mapping_close(&m);
    return false;
}

bool gguf_open_memory(struct gguf *g, const char *name, const void *data, size_t size, struct status *st) {
    assert((uintptr_t)data % ALIGNMENT_MIN == 0);
    return read_file(g, name, data, size, st);
}
