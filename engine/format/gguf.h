// GGUF files: keys and tensors, mapped and checked, never copied. Importers convert other formats to this one.
//
// After gguf_open: every key is unique and its value is inside the file; every tensor has a unique name, 1–4 non-zero
// dimensions, a supported block format, whole blocks per row, and aligned data inside the file that overlaps no other
// tensor. Versions 2 and 3, little endian. All spans borrow from the mappings or the arena.
//
// A model split into "NAME-0000N-of-0000M.gguf" opens as one, by the path of any part: the keys of the first part
// without split.*, and the tensors of all parts.
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
    const uint8_t *data;    // the value as in the file; a string starts with its length (u64)
    uint64_t size;          // bytes at data
};

struct gguf_tensor {
    struct span name;
    const struct block_format *format;
    int n_dims;
    uint64_t dims[4]; // innermost first; unused ones are 1
    const void *data; // borrowed from a mapping or a buffer; aligned to 8 bytes in GGUF files, otherwise to an element
    uint64_t size;    // bytes
};

struct gguf_region { // owned memory
    void *data;
    size_t size;
};

struct gguf {
    struct mapping *mappings; // its files; none if opened from memory
    struct gguf_region *regions;
    int n_mappings, n_regions;
    struct arena arena;
    char *path;             // as shown in messages
    uint32_t version;
    uint64_t n_pairs, n_tensors;
    struct gguf_pair *pairs;
    struct gguf_tensor *tensors;
};

// Opens and checks a file. On failure nothing is held and st names the file, the field and the value.
bool gguf_open(struct gguf *g, const char *path, struct status *st);
// The same for memory that outlives g and is aligned to 8 bytes (the built-in model, fuzzing).
bool gguf_open_memory(struct gguf *g, const char *name, const void *data, size_t size, struct status *st);
void gguf_close(struct gguf *g);
uint64_t gguf_file_bytes(const struct gguf *g); // all files together
uint64_t gguf_own_bytes(const struct gguf *g);  // large buffers of converted tensors

// Binary search; NULL if absent.
const struct gguf_pair *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name);

// Typed reads. If an optional key is absent, they return true and leave *out (the default) alone. A value of the wrong
// type or outside [low, high] is an error that names the file, the key and the value.
enum gguf_need { GGUF_OPTIONAL, GGUF_REQUIRED };
bool gguf_get_int(const struct gguf *g, const char *key, enum gguf_need need, int64_t low, int64_t high, int64_t *out,
                  struct status *st);
bool gguf_get_float(const struct gguf *g, const char *key, enum gguf_need need, double low, double high, float *out,
                    struct status *st);
bool gguf_get_bool(const struct gguf *g, const char *key, bool *out, struct status *st);
bool gguf_get_string(const struct gguf *g, const char *key, enum gguf_need need, struct span *out, struct status *st);
// The strings of an array, as spans allocated in `arena`. NULL with *count = 0 if absent, NULL with an error if the
// type is wrong.
struct span *gguf_get_strings(const struct gguf *g, const char *key, struct arena *arena, uint64_t *count,
                              struct status *st);
// Element i of a numeric or bool array (or a scalar, i = 0) as a number; the caller has checked count and type.
double gguf_number(const struct gguf_pair *p, uint64_t i);

// ---- building one in memory, for importers ----
//
// gguf_finish guarantees the same as gguf_open. Names and values are copied to the arena; tensor data is borrowed from
// a mapping or buffer of g, or from memory that outlives it. Look-ups work only after gguf_finish.

void gguf_begin(struct gguf *g, const char *name); // as shown in messages
void gguf_add_int(struct gguf *g, const char *key, uint32_t value);
void gguf_add_float(struct gguf *g, const char *key, float value);
void gguf_add_bool(struct gguf *g, const char *key, bool value);
void gguf_add_string(struct gguf *g, const char *key, struct span value);
void gguf_add_strings(struct gguf *g, const char *key, const struct span *values, uint64_t count);
// element: any type except GGUF_STRING and GGUF_ARRAY; values are of that type.
void gguf_add_numbers(struct gguf *g, const char *key, enum gguf_type element, const void *values, uint64_t count);
// dims [n_dims, 1 to 4], innermost first. data is aligned to 4 bytes for F32, otherwise to 2.
void gguf_add_tensor(struct gguf *g, const char *name, const struct block_format *format, int n_dims,
                     const uint64_t *dims, const void *data);
void gguf_own_mapping(struct gguf *g, struct mapping mapping); // unmapped by gguf_close
// Zeroed, 64-byte aligned, freed by gguf_close; NULL with a status if out of memory.
void *gguf_own_buffer(struct gguf *g, uint64_t size, struct status *st);
// Sorts and checks; closes g on failure.
bool gguf_finish(struct gguf *g, struct status *st);

#endif
