#include "engine/base/reader.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/panic.h"

struct reader reader_over(const void *data, size_t size) {
    return (struct reader){.data = data, .size = size};
}

bool reader_failed(const struct reader *r) { return r->status.code != STATUS_OK; }

size_t reader_left(const struct reader *r) { return reader_failed(r) ? 0 : r->size - r->at; }

bool reader_fail(struct reader *r, const char *format, ...) {
    if (reader_failed(r)) return false;
    char text[sizeof r->status.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return status_fail(&r->status, STATUS_FORMAT, "%s", text);
}

struct span reader_bytes(struct reader *r, uint64_t size) {
    if (reader_failed(r)) return (struct span){NULL, 0};
    if (size > reader_left(r)) {
        reader_fail(r, "truncated: expected %llu bytes at offset %zu, got %zu", (unsigned long long)size, r->at,
                    reader_left(r));
        return (struct span){NULL, 0};
    }
    struct span s = {(const char *)r->data + r->at, (size_t)size};
    r->at += (size_t)size;
    return s;
}

const void *reader_items(struct reader *r, uint64_t count, size_t size) {
    uint64_t total;
    if (!checked_mul(count, size, &total)) {
        reader_fail(r, "count %llu at offset %zu is too large", (unsigned long long)count, r->at);
        return NULL;
    }
    return reader_bytes(r, total).data;
}

static inline uint64_t reader_integer(struct reader *r, size_t size) {
    struct span s = reader_bytes(r, size);
    uint64_t value = 0;
    if (s.data) memcpy(&value, s.data, size);
    return le64toh(value);
}

uint8_t reader_u8(struct reader *r) { return (uint8_t)reader_integer(r, 1); }
uint32_t reader_u32(struct reader *r) { return (uint32_t)reader_integer(r, 4); }
uint64_t reader_u64(struct reader *r) { return reader_integer(r, 8); }

bool span_equals(struct span s, const char *text) {
    return s.size == strlen(text) && (s.size == 0 || !memcmp(s.data, text, s.size));
}

bool span_ends_with(struct span s, const char *ending) {
    size_t size = strlen(ending);
    return s.size >= size && (size == 0 || !memcmp(s.data + s.size - size, ending, size));
}

int span_compare(struct span a, struct span b) {
    size_t shorter = a.size < b.size ? a.size : b.size;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

char *span_copy(struct span s) { return s.size ? xstrndup(s.data, s.size) : xstrdup(""); }

bool mapping_open(struct mapping *m, const char *path, struct status *st) {
    *m = (struct mapping){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
    if (fd < 0) return status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    struct stat info;
    bool done = false;
    if (fstat(fd, &info) < 0) status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode)) status_fail(st, STATUS_IO, "%s: not a regular file", path);
    else if (info.st_size == 0) status_fail(st, STATUS_FORMAT, "%s: file is empty", path);
    else {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) status_fail(st, STATUS_IO, "%s: cannot map: %s", path, strerror(errno));
        else *m = (struct mapping){p, (size_t)info.st_size}, done = true;
    }
    close(fd);
    return done;
}

void mapping_close(struct mapping *m) {
    if (m->data) munmap((void *)m->data, m->size);
    *m = (struct mapping){0};
}

// Closes f, which may be NULL with errno set.
static char *read_all(FILE *f, const char *path, size_t limit, size_t *size, struct status *st) {
    if (!f) {
        status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
        return NULL;
    }
    size_t capacity = 1 << 16, count = 0;
    char *text = xmalloc(capacity + 1);
    for (size_t n; (n = fread(text + count, 1, capacity - count, f)) > 0;) {
        count += n;
        if (count > limit) break;
        if (count == capacity) text = xrealloc(text, (capacity *= 2) + 1);
    }
    bool bad = ferror(f);
    int error = errno;
    if (f != stdin) fclose(f);
    if (bad || count > limit) {
        if (bad) status_fail(st, STATUS_IO, "%s: %s", path, strerror(error));
        else status_fail(st, STATUS_LIMIT, "%s: too large (maximum %zu bytes)", path, limit);
        free(text);
        return NULL;
    }
    text[count] = 0;
    *size = count;
    return text;
}

char *file_read(const char *path, size_t limit, size_t *size, struct status *st) {
    return read_all(strcmp(path, "-") ? fopen(path, "rbe") : stdin, path, limit, size, st);
}

char *file_read_regular(const char *path, size_t limit, size_t *size, struct status *st) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool regular = fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode);
    FILE *f = regular ? fdopen(fd, "rb") : NULL;
    if (f) return read_all(f, path, limit, size, st);
    if (fd < 0 || regular) status_fail(st, STATUS_IO, "%s: %s", path, strerror(errno));
    else status_fail(st, STATUS_IO, "%s: not a regular file", path);
    if (fd >= 0) close(fd);
    return NULL;
}
