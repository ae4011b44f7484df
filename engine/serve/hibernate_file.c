#include "engine/serve/hibernate_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/backend.h"
#include "engine/base/checksum.h"
#include "engine/base/panic.h"

static const char magic[8] = {'c', 'o', 'n', 'f', 'a', 'b', 'k', 'v'};

enum { TOKEN_BYTES = KV_PAGE_TOKENS * 4 };

// Of up to 2³² pages: no overflow.
uint64_t hibernate_header_size(uint32_t n_pages) { return HIBERNATE_FIXED + (uint64_t)n_pages * (TOKEN_BYTES + 8) + 8; }

uint64_t hibernate_page_key(uint64_t before, const int32_t *tokens) { return checksum(tokens, TOKEN_BYTES, before); }

uint64_t hibernate_page_sum(const void *page, uint64_t page_bytes, uint64_t key) {
    return checksum(page, (size_t)page_bytes, key);
}

// ---- reading ----

// Header and pages fill the file.
static bool sizes_agree(struct hibernate_header *h, uint64_t file_size) {
    uint64_t pages, whole;
    h->size = hibernate_header_size(h->n_pages);
    return checked_mul(h->n_pages, h->page_bytes, &pages) && checked_add(h->size, pages, &whole) && whole == file_size;
}

bool hibernate_header_begin(const void *fixed, uint64_t file_size, struct hibernate_header *out, struct status *st) {
    struct reader r = reader_over(fixed, HIBERNATE_FIXED);
    const struct span begin = reader_bytes(&r, sizeof magic);
    const uint32_t version = reader_u32(&r), page_tokens = reader_u32(&r);
    *out = (struct hibernate_header){.fingerprint = reader_u64(&r), .owner = reader_u64(&r), .before = reader_u64(&r)};
    out->first_page = reader_u32(&r);
    out->n_pages = reader_u32(&r);
    out->page_bytes = reader_u64(&r);
    if (file_size < HIBERNATE_FIXED || memcmp(begin.data, magic, sizeof magic))
        return status_fail(st, STATUS_UNSUPPORTED, "not a file of saved pages");
    if (version != HIBERNATE_VERSION || page_tokens != KV_PAGE_TOKENS)
        return status_fail(st, STATUS_UNSUPPORTED, "version %u with %u tokens a page (expected %d with %d)", version,
                           page_tokens, HIBERNATE_VERSION, KV_PAGE_TOKENS);
    if (!out->n_pages || out->n_pages > HIBERNATE_MOST_PAGES || out->first_page > HIBERNATE_MOST_PAGES)
        return status_fail(st, STATUS_FORMAT, "%u pages from page %u on are out of range", out->n_pages,
                           out->first_page);
    if (out->page_bytes && sizes_agree(out, file_size)) return true;
    return status_fail(st, STATUS_FORMAT, "%u pages of %llu bytes do not make a file of %llu bytes", out->n_pages,
                       (unsigned long long)out->page_bytes, (unsigned long long)file_size);
}

bool hibernate_header_end(const void *bytes, const struct hibernate_header *header, int32_t *tokens, uint64_t *keys,
                          uint64_t *sums, struct status *st) {
    struct reader r = reader_over(bytes, (size_t)header->size);
    const uint32_t n = header->n_pages;
    reader_bytes(&r, HIBERNATE_FIXED);
    for (uint32_t i = 0; i < n * KV_PAGE_TOKENS; i++) tokens[i] = (int32_t)reader_u32(&r);
    for (uint32_t i = 0; i < n; i++) sums[i] = reader_u64(&r);
    const uint64_t sum = reader_u64(&r);
    if (reader_failed(&r)) return status_fail(st, STATUS_FORMAT, "%s", r.status.text);
    if (sum != checksum(bytes, (size_t)header->size - 8, HIBERNATE_VERSION))
        return status_fail(st, STATUS_FORMAT, "checksum of the header is wrong");
    for (uint32_t i = 0; i < n; i++)
        keys[i] = hibernate_page_key(i ? keys[i - 1] : header->before, tokens + i * KV_PAGE_TOKENS);
    return true;
}

// ---- writing ----

static uint8_t *put_u32(uint8_t *at, uint32_t value) {
    value = htole32(value);
    return (uint8_t *)memcpy(at, &value, sizeof value) + sizeof value;
}

static uint8_t *put_u64(uint8_t *at, uint64_t value) {
    value = htole64(value);
    return (uint8_t *)memcpy(at, &value, sizeof value) + sizeof value;
}

void *hibernate_header_bytes(struct hibernate_header *h, const int32_t *tokens, const void *pages) {
    const uint32_t n = h->n_pages;
    h->size = hibernate_header_size(n);
    uint8_t *bytes = xmalloc(h->size), *at = bytes;
    at = (uint8_t *)memcpy(at, magic, sizeof magic) + sizeof magic;
    at = put_u32(put_u32(at, HIBERNATE_VERSION), KV_PAGE_TOKENS);
    at = put_u64(put_u64(put_u64(at, h->fingerprint), h->owner), h->before);
    at = put_u64(put_u32(put_u32(at, h->first_page), n), h->page_bytes);
    for (uint32_t i = 0; i < n * KV_PAGE_TOKENS; i++) at = put_u32(at, (uint32_t)tokens[i]);
    uint64_t key = h->before;
    for (uint32_t i = 0; i < n; i++) {
        key = hibernate_page_key(key, tokens + i * KV_PAGE_TOKENS);
        at = put_u64(at, hibernate_page_sum((const uint8_t *)pages + i * h->page_bytes, h->page_bytes, key));
    }
    put_u64(at, checksum(bytes, (size_t)(at - bytes), HIBERNATE_VERSION));
    return bytes;
}

// ---- files ----

static bool read_at(int fd, void *out, uint64_t size, uint64_t offset, struct status *st) {
    for (char *at = out; size;) {
        const ssize_t n = pread(fd, at, size, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return status_fail(st, STATUS_IO, "cannot read: %s", strerror(errno));
        if (!n) return status_fail(st, STATUS_FORMAT, "truncated: %llu bytes are missing", (unsigned long long)size);
        at += n, offset += (uint64_t)n, size -= (uint64_t)n;
    }
    return true;
}

static bool read_header(struct hibernate_file *f, struct status *st) {
    struct stat info;
    uint8_t fixed[HIBERNATE_FIXED];
    if (fstat(f->fd, &info)) return status_fail(st, STATUS_IO, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size < HIBERNATE_FIXED)
        return status_fail(st, STATUS_UNSUPPORTED, "not a file of saved pages");
    f->size = (uint64_t)info.st_size;
    if (!read_at(f->fd, fixed, sizeof fixed, 0, st) || !hibernate_header_begin(fixed, f->size, &f->header, st))
        return false;
    const size_t n = f->header.n_pages;
    void *bytes = xmalloc((size_t)f->header.size);
    f->tokens = xmalloc(n * TOKEN_BYTES);
    f->keys = xmalloc(n * sizeof *f->keys);
    f->sums = xmalloc(n * sizeof *f->sums);
    const bool ok = read_at(f->fd, bytes, f->header.size, 0, st) &&
                    hibernate_header_end(bytes, &f->header, f->tokens, f->keys, f->sums, st);
    free(bytes);
    return ok;
}

bool hibernate_file_take(struct hibernate_file *f, int fd, struct status *st) {
    *f = (struct hibernate_file){.fd = fd};
    if (read_header(f, st)) return true;
    hibernate_file_close(f);
    return false;
}

bool hibernate_file_open(struct hibernate_file *f, const char *path, struct status *st) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); // a pipe must not block
    *f = (struct hibernate_file){.fd = -1};
    return fd < 0 ? status_fail(st, STATUS_IO, "%s", strerror(errno)) : hibernate_file_take(f, fd, st);
}

bool hibernate_file_read(const struct hibernate_file *f, uint32_t page, void *out, struct status *st) {
    const uint64_t bytes = f->header.page_bytes;
    if (!read_at(f->fd, out, bytes, f->header.size + page * bytes, st)) return false;
    if (hibernate_page_sum(out, bytes, f->keys[page]) == f->sums[page]) return true;
    return status_fail(st, STATUS_FORMAT, "checksum of page %u is wrong", page);
}

void hibernate_file_close(struct hibernate_file *f) {
    if (f->fd >= 0) close(f->fd);
    free(f->tokens);
    free(f->keys);
    free(f->sums);
    *f = (struct hibernate_file){.fd = -1};
}
