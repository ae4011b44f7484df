// Fuzzes files of saved pages: they must fail with a message, or hold what was saved: every page that is taken has the
// tokens and the bytes of one that was written under its key.
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/backend.h"
#include "engine/base/checksum.h"
#include "engine/base/panic.h"
#include "engine/serve/hibernate_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"

enum { SEEDS = 8, MOST_PAGES = 4 };

static struct hibernate_header header_of(size_t k) {
    return (struct hibernate_header){.fingerprint = 0x1234567,
                                     .owner = 1 + k,
                                     .before = k % 2 ? 0x1234567 : 99 * k,
                                     .page_bytes = 40 + 24 * k,
                                     .first_page = k % 2 ? 0 : (uint32_t)k,
                                     .n_pages = (uint32_t)(1 + k % MOST_PAGES)};
}

static void contents(size_t k, int32_t *tokens, uint8_t *pages) {
    const struct hibernate_header h = header_of(k);
    for (uint32_t i = 0; i < h.n_pages * KV_PAGE_TOKENS; i++) tokens[i] = (int32_t)(i * 7 + k);
    for (uint64_t i = 0; i < h.n_pages * h.page_bytes; i++) pages[i] = (uint8_t)(i * 13 + k);
}

uint8_t *fuzz_seed(size_t k, size_t *size) {
    int32_t tokens[MOST_PAGES * KV_PAGE_TOKENS];
    uint8_t pages[MOST_PAGES * 256];
    if (k >= SEEDS) return NULL;
    struct hibernate_header h = header_of(k);
    contents(k, tokens, pages);
    uint8_t *bytes = hibernate_header_bytes(&h, tokens, pages);
    *size = (size_t)(h.size + h.n_pages * h.page_bytes);
    bytes = xrealloc(bytes, *size);
    memcpy(bytes + h.size, pages, (size_t)(h.n_pages * h.page_bytes));
    return bytes;
}

// Whether a page is one of those of the seeds; a file's own word for it is not enough.
static bool was_written(uint64_t key, const int32_t *tokens, const uint8_t *page, uint64_t page_bytes) {
    for (size_t k = 0; k < SEEDS; k++) {
        int32_t own[MOST_PAGES * KV_PAGE_TOKENS];
        uint8_t pages[MOST_PAGES * 256];
        const struct hibernate_header h = header_of(k);
        contents(k, own, pages);
        uint64_t at = h.before;
        for (uint32_t i = 0; i < h.n_pages; i++) {
            at = hibernate_page_key(at, own + i * KV_PAGE_TOKENS);
            if (at == key && h.page_bytes == page_bytes &&
                !memcmp(own + i * KV_PAGE_TOKENS, tokens, KV_PAGE_TOKENS * sizeof *own) &&
                !memcmp(pages + i * page_bytes, page, (size_t)page_bytes))
                return true;
        }
    }
    return false;
}

static void read_pages(const struct hibernate_file *f) {
    struct status st = {0};
    for (uint32_t i = 0; i < f->header.n_pages; i++) {
        uint8_t *page = xmalloc((size_t)f->header.page_bytes);
        const bool ok = hibernate_file_read(f, i, page, &st);
        if (ok && !was_written(f->keys[i], f->tokens + i * KV_PAGE_TOKENS, page, f->header.page_bytes)) abort();
        if (!ok && !st.text[0]) abort();
        free(page);
    }
}

static void try(const uint8_t *data, size_t size) {
    struct hibernate_file f;
    struct status st = {0};
    const int fd = memfd_create("saved", MFD_CLOEXEC);
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    if (hibernate_file_take(&f, fd, &st)) {
        read_pages(&f);
        hibernate_file_close(&f);
    } else if (!st.text[0]) abort();
}

// The header's checksum is never right by chance, so every input is also tried with the right one.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hibernate_header h;
    uint8_t *copy = exact_copy(data, size);
    try(copy, size);
    if (size >= HIBERNATE_FIXED && hibernate_header_begin(copy, size, &h, NULL)) {
        const uint64_t sum = htole64(checksum(copy, (size_t)h.size - 8, HIBERNATE_VERSION));
        memcpy(copy + h.size - 8, &sum, sizeof sum);
        try(copy, size);
    }
    free(copy);
    return 0;
}
