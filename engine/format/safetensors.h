// Safetensors: the tensors of a folder's *.safetensors files, mapped and checked, never copied.
//
// A file is a u64 length, that many bytes of JSON (name → dtype, shape, data_offsets), then the data. After opening,
// names are unique across all files; every tensor has a known dtype, at most SAFETENSORS_DIMS dimensions, and data
// inside its file that matches dtype and shape and overlaps no other tensor. Alignment is not checked.
#ifndef CONFAB_FORMAT_SAFETENSORS_H
#define CONFAB_FORMAT_SAFETENSORS_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"

// X(enumerator, name in files, bytes)
#define SAFETENSORS_DTYPES(X)                                                                                          \
    X(DTYPE_F64, "F64", 8)                                                                                             \
    X(DTYPE_F32, "F32", 4)                                                                                             \
    X(DTYPE_F16, "F16", 2)                                                                                             \
    X(DTYPE_BF16, "BF16", 2)                                                                                           \
    X(DTYPE_F8_E4M3, "F8_E4M3", 1)                                                                                     \
    X(DTYPE_F8_E5M2, "F8_E5M2", 1)                                                                                     \
    X(DTYPE_F8_E8M0, "F8_E8M0", 1)                                                                                     \
    X(DTYPE_I64, "I64", 8)                                                                                             \
    X(DTYPE_I32, "I32", 4)                                                                                             \
    X(DTYPE_I16, "I16", 2)                                                                                             \
    X(DTYPE_I8, "I8", 1)                                                                                               \
    X(DTYPE_U64, "U64", 8)                                                                                             \
    X(DTYPE_U32, "U32", 4)                                                                                             \
    X(DTYPE_U16, "U16", 2)                                                                                             \
    X(DTYPE_U8, "U8", 1)                                                                                               \
    X(DTYPE_BOOL, "BOOL", 1)

enum safetensors_dtype {
#define X(id, name, bytes) id,
    SAFETENSORS_DTYPES(X)
#undef X
        DTYPE_COUNT
};

enum { SAFETENSORS_DIMS = 8 };

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    int n_dims;                      // 0: a scalar
    uint64_t dims[SAFETENSORS_DIMS]; // outermost first, as in the file; may be zero
    const void *data;                // borrowed from the mapping
    uint64_t count, size;            // elements, bytes
};

struct safetensors {
    struct mapping *mappings; // [n_mappings], one per file; to take them over, set n_mappings to 0
    int n_mappings;
    struct safetensors_tensor *tensors; // sorted by name
    uint64_t n_tensors, capacity;
    struct arena arena;
};

// Opens the files listed in model.safetensors.index.json, or model.safetensors. On failure nothing is held and st names
// the file, the field and the value.
bool safetensors_open(struct safetensors *s, const char *folder, struct status *st);
// Opens one file in memory that outlives s.
bool safetensors_open_memory(struct safetensors *s, const char *name, const void *data, size_t size, struct status *st);
void safetensors_close(struct safetensors *s);

const struct safetensors_tensor *safetensors_find(const struct safetensors *s, const char *name); // NULL if absent
const char *safetensors_dtype_name(enum safetensors_dtype dtype);
size_t safetensors_dtype_bytes(enum safetensors_dtype dtype);

#endif
