// Checked reader: all lengths, offsets and counts from outside are read here.
//
// A reader is a cursor over borrowed bytes. Reading past the end, or an overflow, makes it fail; a failed reader stays
// failed, returns zeros and keeps the first message. Callers read a group of fields and check once. Integers are little
// endian.
#ifndef CONFAB_BASE_READER_H
#define CONFAB_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/status.h"

// Checked arithmetic: true and *out set, or false on overflow.
static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
// Rounds up to a multiple of `alignment`, a power of two.
static inline bool checked_align(uint64_t a, uint64_t alignment, uint64_t *out) {
    if (!checked_add(a, alignment - 1, out)) return false;
    *out &= ~(alignment - 1);
    return true;
}

struct reader {
    const uint8_t *data; // borrowed
    size_t size, at;
    struct status status; // of the first failure
};

// A run of borrowed bytes; not terminated.
struct span {
    const char *data;
    size_t size;
};

struct reader reader_over(const void *data, size_t size);
bool reader_failed(const struct reader *r);
size_t reader_left(const struct reader *r);
// Makes the reader fail, keeping the first message. Returns false.
bool reader_fail(struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

uint8_t reader_u8(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
// `size` bytes, borrowed; {NULL, 0} on failure.
struct span reader_bytes(struct reader *r, uint64_t size);
// `count` items of `size` bytes each, borrowed; NULL on failure, including overflow of count × size.
const void *reader_items(struct reader *r, uint64_t count, size_t size);

static inline struct span span_of(const char *text) { return (struct span){text, strlen(text)}; }
bool span_equals(struct span s, const char *text);
bool span_ends_with(struct span s, const char *ending);
int span_compare(struct span a, struct span b); // by bytes, like strcmp
// A NUL-terminated copy, up to the first NUL; the caller frees.
char *span_copy(struct span s);

// A file mapped read-only. Empty files are an error.
struct mapping {
    const uint8_t *data;
    size_t size;
};
bool mapping_open(struct mapping *m, const char *path, struct status *st);
void mapping_close(struct mapping *m);

// Reads a file ("-": standard input) of at most `limit` bytes; the caller frees. A NUL is appended after *size bytes.
char *file_read(const char *path, size_t limit, size_t *size, struct status *st);
// The same for regular files only: a pipe found in a folder must not block.
char *file_read_regular(const char *path, size_t limit, size_t *size, struct status *st);

#endif
