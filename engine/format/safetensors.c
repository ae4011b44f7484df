#include "engine/format/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/panic.h"
#include "engine/format/json_source.h"

enum {
    HEADER_LIMIT = 64 << 20, // bytes of JSON; the largest known models have 20 MB in all files together
    NAME_LIMIT = 256,
    FILES_LIMIT = 4096,
    INDEX_LIMIT = 64 << 20,
};

static const struct {
    const char *name;
    size_t bytes;
} dtypes[DTYPE_COUNT] = {
#define X(id, name, bytes) [id] = {name, bytes},
    SAFETENSORS_DTYPES(X)
#undef X
};

const char *safetensors_dtype_name(enum safetensors_dtype dtype) { return dtypes[dtype].name; }
size_t safetensors_dtype_bytes(enum safetensors_dtype dtype) { return dtypes[dtype].bytes; }

// ---- one file ----

// The data of a file, after its header.
struct file_data {
    const uint8_t *data;
    uint64_t size;
};

static bool read_dtype(const json_t *entry, struct safetensors_tensor *t, struct status *st) {
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    if (!name) return status_fail(st, STATUS_FORMAT, "missing dtype");
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (!strcmp(dtypes[i].name, name)) {
            t->dtype = (enum safetensors_dtype)i;
            return true;
        }
    return status_fail(st, STATUS_UNSUPPORTED, "unknown dtype '%.32s'", name);
}

// The JSON parser rejects integers beyond i64.
static bool read_length(const json_t *value, const char *what, uint64_t *out, struct status *st) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return status_fail(st, STATUS_FORMAT, "%s: expected non-negative integers", what);
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_shape(const json_t *entry, struct safetensors_tensor *t, struct status *st) {
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return status_fail(st, STATUS_FORMAT, "missing shape");
    if (json_array_size(shape) > SAFETENSORS_DIMS)
        return status_fail(st, STATUS_FORMAT, "too many dimensions: %zu (maximum %d)", json_array_size(shape),
                           SAFETENSORS_DIMS);
    t->n_dims = (int)json_array_size(shape);
    t->count = 1;
    for (int i = 0; i < t->n_dims; i++) {
        if (!read_length(json_array_get(shape, (size_t)i), "shape", &t->dims[i], st)) return false;
        if (!checked_mul(t->count, t->dims[i], &t->count))
            return status_fail(st, STATUS_FORMAT, "dimensions are too large");
    }
    if (!checked_mul(t->count, dtypes[t->dtype].bytes, &t->size))
        return status_fail(st, STATUS_FORMAT, "dimensions are too large");
    return true;
}

static bool read_place(const json_t *entry, struct safetensors_tensor *t, struct file_data data, struct status *st) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin = 0, end = 0;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2)
        return status_fail(st, STATUS_FORMAT, "data_offsets: expected two numbers");
    if (!read_length(json_array_get(offsets, 0), "data_offsets", &begin, st) ||
        !read_length(json_array_get(offsets, 1), "data_offsets", &end, st))
        return false;
    if (begin > end || end > data.size)
        return status_fail(st, STATUS_FORMAT, "data_offsets: %llu to %llu is outside the data (%llu bytes)",
                           (unsigned long long)begin, (unsigned long long)end, (unsigned long long)data.size);
    if (end - begin != t->size)
        return status_fail(st, STATUS_FORMAT, "has %llu bytes of data, but its shape and dtype %s need %llu",
                           (unsigned long long)(end - begin), dtypes[t->dtype].name, (unsigned long long)t->size);
    t->data = data.data + begin;
    return true;
}

static bool read_entry(struct safetensors *s, const char *name, const json_t *entry, struct file_data data,
                       struct status *st) {
    struct safetensors_tensor *t = &s->tensors[s->n_tensors];
    size_t length = strlen(name);
    if (length == 0 || length > NAME_LIMIT)
        return status_fail(st, STATUS_FORMAT, "tensor name length %zu is out of range (1 to %d)", length, NAME_LIMIT);
    t->name = arena_copy(&s->arena, name, length);
    if (!json_is_object(entry)) status_fail(st, STATUS_FORMAT, "expected an object");
    else if (read_dtype(entry, t, st) && read_shape(entry, t, st) && read_place(entry, t, data, st)) {
        s->n_tensors++;
        return true;
    }
    return status_prefix(st, "tensor %s", name);
}

static int place_compare(const void *a, const void *b) {
    const struct safetensors_tensor *p = a, *q = b;
    if (p->data != q->data) return (const char *)p->data > (const char *)q->data ? 1 : -1;
    return (p->size > q->size) - (p->size < q->size);
}

static bool check_overlap(struct safetensors_tensor *t, uint64_t count, struct status *st) {
    if (count) qsort(t, count, sizeof *t, place_compare);
    for (uint64_t i = 1; i < count; i++)
        if ((const char *)t[i - 1].data + t[i - 1].size > (const char *)t[i].data)
            return status_fail(st, STATUS_FORMAT, "tensors %s and %s overlap", t[i - 1].name, t[i].name);
    return true;
}

// At least doubles the capacity, so that reading many files takes linear time.
static bool reserve(struct safetensors *s, uint64_t n, struct status *st) {
    if (n <= s->capacity) return true;
    uint64_t capacity = n > 2 * s->capacity ? n : 2 * s->capacity;
    struct safetensors_tensor *more = arena_array(&s->arena, capacity, sizeof *more, st);
    if (!more) return false;
    if (s->n_tensors) memcpy(more, s->tensors, s->n_tensors * sizeof *more);
    s->tensors = more;
    s->capacity = capacity;
    return true;
}

static bool read_tensors(struct safetensors *s, json_t *header, struct file_data data, struct status *st) {
    uint64_t first = s->n_tensors;
    if (!reserve(s, first + json_object_size(header), st)) return false;
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) {
        if (strcmp(name, "__metadata__") && !read_entry(s, name, entry, data, st)) return false;
    }
    return check_overlap(s->tensors + first, s->n_tensors - first, st);
}

static bool read_file(struct safetensors *s, const void *bytes, size_t size, struct status *st) {
    struct reader r = reader_over(bytes, size);
    uint64_t length = reader_u64(&r);
    if (!reader_failed(&r) && length > HEADER_LIMIT)
        return status_fail(st, STATUS_LIMIT, "header of %llu bytes is too large (maximum %d)",
                           (unsigned long long)length, HEADER_LIMIT);
    struct span text = reader_bytes(&r, length);
    if (reader_failed(&r)) return status_fail(st, r.status.code, "not a safetensors file: %s", r.status.text);
    json_t *header = json_source_parse(text, JSON_REJECT_DUPLICATES, st);
    if (!header) return status_prefix(st, "header");
    bool done = read_tensors(s, header, (struct file_data){r.data + r.at, r.size - r.at}, st);
    json_decref(header);
    return done;
}

// ---- all files ----

static int name_compare(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name, ((const struct safetensors_tensor *)b)->name);
}

static int name_order(const void *name, const void *tensor) {
    return strcmp(name, ((const struct safetensors_tensor *)tensor)->name);
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name) {
    return s->n_tensors ? bsearch(name, s->tensors, s->n_tensors, sizeof *s->tensors, name_order) : NULL;
}

static bool sort_names(struct safetensors *s, const char *place, struct status *st) {
    if (s->n_tensors) qsort(s->tensors, s->n_tensors, sizeof *s->tensors, name_compare);
    for (uint64_t i = 1; i < s->n_tensors; i++)
        if (!strcmp(s->tensors[i - 1].name, s->tensors[i].name))
            return status_fail(st, STATUS_FORMAT, "%s: tensor %s is in two files", place, s->tensors[i].name);
    return true;
}

void safetensors_close(struct safetensors *s) {
    for (int i = 0; i < s->n_mappings; i++) mapping_close(&s->mappings[i]);
    arena_free(&s->arena);
    *s = (struct safetensors){0};
}

bool safetensors_open_memory(struct safetensors *s, const char *name, const void *data, size_t size,
                             struct status *st) {
    *s = (struct safetensors){0};
    if (read_file(s, data, size, st)) {
        if (sort_names(s, name, st)) return true;
    } else status_prefix(st, "%s", name);
    safetensors_close(s);
    return false;
}

static bool open_file(struct safetensors *s, const char *folder, const char *name, struct status *st) {
    char *path = xasprintf("%s/%s", folder, name);
    struct mapping *m = &s->mappings[s->n_mappings];
    bool done = mapping_open(m, path, st);
    if (done) {
        s->n_mappings++;
        done = read_file(s, m->data, m->size, st) || status_prefix(st, "%s", path);
    }
    free(path);
    return done;
}

// ---- the index ----

static int text_compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The distinct file names, borrowed from the index.
static const char **list_files(struct safetensors *s, json_t *map, size_t *count, struct status *st) {
    const char **names = arena_array(&s->arena, json_object_size(map), sizeof *names, st), *tensor;
    json_t *file;
    *count = 0;
    if (!names) return NULL;
    json_object_foreach(map, tensor, file) {
        const char *name = json_string_value(file);
        if (!name || !*name || *name == '.' || strchr(name, '/')) {
            status_fail(st, STATUS_FORMAT, "weight_map: %.64s: '%.64s' is not a file name", tensor, name ? name : "");
            return NULL;
        }
        names[(*count)++] = name;
    }
    if (*count) qsort(names, *count, sizeof *names, text_compare);
    size_t n = 0;
    for (size_t i = 0; i < *count; i++)
        if (n == 0 || strcmp(names[n - 1], names[i])) names[n++] = names[i];
    *count = n;
    if (n >= 1 && n <= FILES_LIMIT) return names;
    status_fail(st, STATUS_LIMIT, "weight_map: number of files %zu is out of range (1 to %d)", n, FILES_LIMIT);
    return NULL;
}

static bool check_listed(const struct safetensors *s, json_t *map, struct status *st) {
    const char *tensor;
    json_t *file;
    json_object_foreach(map, tensor, file) {
        if (!safetensors_find(s, tensor))
            return status_fail(st, STATUS_FORMAT, "weight_map: tensor %.200s is not in %.200s", tensor,
                               json_string_value(file));
    }
    return true;
}

static bool open_listed(struct safetensors *s, const char *folder, const char *index_path, json_t *index,
                        struct status *st) {
    json_t *map = json_object_get(index, "weight_map");
    if (!json_is_object(map)) return status_fail(st, STATUS_FORMAT, "%s: missing weight_map", index_path);
    size_t n;
    const char **names = list_files(s, map, &n, st);
    if (!names) return status_prefix(st, "%s", index_path);
    s->mappings = arena_alloc(&s->arena, n * sizeof *s->mappings);
    for (size_t i = 0; i < n; i++)
        if (!open_file(s, folder, names[i], st)) return false;
    return sort_names(s, folder, st) && (check_listed(s, map, st) || status_prefix(st, "%s", index_path));
}

static bool open_index(struct safetensors *s, const char *folder, const char *path, struct status *st) {
    json_t *index = json_source_read(path, INDEX_LIMIT, st);
    if (!index) return false;
    bool done = open_listed(s, folder, path, index, st);
    json_decref(index);
    return done;
}

bool safetensors_open(struct safetensors *s, const char *folder, struct status *st) {
    *s = (struct safetensors){0};
    char *path = xasprintf("%s/model.safetensors.index.json", folder);
    bool done;
    if (access(path, F_OK) == 0) done = open_index(s, folder, path, st);
    else {
        s->mappings = arena_alloc(&s->arena, sizeof *s->mappings);
        done = open_file(s, folder, "model.safetensors", st) && sort_names(s, folder, st);
    }
    free(path);
    if (!done) safetensors_close(s);
    return done;
}
