// GGUF: a model's keys and tensors, mapped and checked, never copied; and what other formats are brought into.
//
// After gguf_open succeeds: every key is unique and its value lies inside the file; every tensor has 1–4 non-zero
// dimensions, a known block format, a whole number of blocks a row, a unique name, an aligned place inside the file
// that overlaps no other. Versions 2 and 3, little endian. All spans borrow from the mappings or the arena.
//
// A model split into files "NAME-0000N-of-0000M.gguf" opens as one, by the path of any of them: the keys of the first
// but for split.*, the tensors of all.
#ifndef CONFAB_FORMAT_GGUF_H
#define CONFAB_FORMAT_GGUF_H

#include "engine/base/arena.h"
#include "engine/base/reader.h"
#include "engine/format/block.h"

enum gguf_type {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY,
    GGUF_U64, GGUF_I64, GGUF_F64, GGUF_TYPE_COUNT
};

struct gguf_pair {
    struct span key;
    enum gguf_type type;    // of the value
    enum gguf_type element; // of an array's elements (never GGUF_ARRAY)
    uint64_t count;         // elements of an array, otherwise 1
    const uint8_t *data;    // scalars and fixed-size arrays: the bytes; strings: at the length; string arrays: see gguf_strings
    uint64_t size;          // bytes at data
};

struct gguf_tensor {
    struct span name;
    const struct block_format *format;
    int n_dims;
    uint64_t dims[4]; // innermost first; unused ones are 1
    const void *data; // borrowed from a mapping or a buffer; aligned to 8 in GGUF files, otherwise to an element
    uint64_t size;    // bytes
};

struct gguf_region { // of memory, owned
    void *data;
    size_t size;
};

struct gguf {
    struct mapping *mappings; // of the files it came from; none when opened over borrowed memory
    struct gguf_region *regions;
    int n_mappings, n_regions;
    struct arena arena;
    char *path;             // as messages name it
    uint32_t version;
    uint64_t n_pairs, n_tensors;
    struct gguf_pair *pairs;
    struct gguf_tensor *tensors;
};

// Opens and checks a file. On failure nothing is held and st names the file, the field and the value.
bool gguf_open(struct gguf *g, const char *path, struct status *st);
// The same over memory that outlives g and begins at a multiple of 8 (the built-in model, fuzzing).
bool gguf_open_memory(struct gguf *g, const char *name, const void *data, size_t size, struct status *st);
void gguf_close(struct gguf *g);
uint64_t gguf_file_bytes(const struct gguf *g); // of all files together
uint64_t gguf_own_bytes(const struct gguf *g);  // of large buffers for tensors that had to be converted

// NULL when absent. Both look up by hash or binary search: cheap.
const struct gguf_pair *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

// Typed reads. When the key is absent: *out is left alone and true is returned (so that defaults stand), unless
// `required`. A value of a wrong type or out of [low, high] is a failure that names file, key and value.
enum gguf_need { GGUF_OPTIONAL, GGUF_REQUIRED };
bool gguf_get_int(const struct gguf *g, const char *key, enum gguf_need need, int64_t low, int64_t high, int64_t *out, struct status *st);
bool gguf_get_float(const struct gguf *g, const char *key, enum gguf_need need, double low, double high, float *out, struct status *st);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out, struct status *st);
bool gguf_get_string(const struct gguf *g, const char *key, enum gguf_need need, struct span *out, struct status *st);
// Strings of an array, as spans allocated in `arena`; NULL with status on a wrong type; NULL with *count = 0 and no failure when absent.
struct span *gguf_get_strings(const struct gguf *g, const char *key, struct arena *arena, uint64_t *count, struct status *st);
// Element i of a numeric or bool array (or of a scalar, i = 0) as a number; the caller has checked count and type.
double gguf_number(const struct gguf_pair *p, uint64_t i);

// ---- building one in memory, for importers of other formats ----
//
// After gguf_finish the same holds as after gguf_open. Names and values are copied into the arena; a tensor's data are
// borrowed: from a mapping or a buffer of g, or from memory that outlives it. Look-ups work after gguf_finish only.

void gguf_begin(struct gguf *g, const char *name); // as messages name it
void gguf_add_int(struct gguf *g, const char *key, uint32_t value);
void gguf_add_float(struct gguf *g, const char *key, float value);
void gguf_add_bool(struct gguf *g, const char *key, bool value);
void gguf_add_string(struct gguf *g, const char *key, struct span value);
void gguf_add_strings(struct gguf *g, const char *key, const struct span *values, uint64_t count);
// element: any type but GGUF_STRING and GGUF_ARRAY; values are that type's.
void gguf_add_numbers(struct gguf *g, const char *key, enum gguf_type element, const void *values, uint64_t count);
// dims [n_dims, 1 to 4], innermost first. data are aligned to 4 bytes for F32, to 2 otherwise.
void gguf_add_tensor(struct gguf *g, const char *name, const struct block_format *format, int n_dims,
                     const uint64_t *dims, const void *data);
void gguf_own_mapping(struct gguf *g, struct mapping mapping); // unmapped by gguf_close
// Zeroed, 64-byte aligned, freed by gguf_close; NULL with a status when there is no memory.
void *gguf_own_buffer(struct gguf *g, uint64_t size, struct status *st);
// Sorts and checks. On failure g is closed.
bool gguf_finish(struct gguf *g, struct status *st);

#endif
