// Hibernate file: consecutive pages of one text on the disk.
//
//   magic "confabkv" │ version u32 │ tokens a page u32 │ fingerprint u64 │ owner u64 │ key before u64
//   first page u32 │ pages n u32 │ bytes a page u64 │ tokens i32 [n, KV_PAGE_TOKENS] │ checksums of pages u64 [n]
//   checksum of all this u64 │ pages [n, bytes a page] to the end of the file
//
// The key of a page is the checksum of its tokens, with the key of the page before as its seed: it says all tokens from
// the beginning. The first page of a text follows the fingerprint, which says what computed it: a file of another model
// is never found. A page's checksum has its key as seed, so that pages which changed places are noticed too. Nothing is
// taken from a file but what is checked.
#ifndef CONFAB_SERVE_HIBERNATE_FILE_H
#define CONFAB_SERVE_HIBERNATE_FILE_H

#include "engine/base/output_file.h"
#include "engine/base/reader.h"

// Raised when this layout changes, or what keys and values are computed for the same model and tokens.
#define HIBERNATE_VERSION 1

enum { HIBERNATE_FIXED = 56, HIBERNATE_MOST_PAGES = 1 << 16 };

struct hibernate_header {
    uint64_t fingerprint, owner, before, page_bytes;
    uint32_t first_page, n_pages;
    uint64_t size; // of the header, which the pages follow
};

uint64_t hibernate_header_size(uint32_t n_pages);
uint64_t hibernate_page_key(uint64_t before, const int32_t *tokens); // [KV_PAGE_TOKENS]

// From the first HIBERNATE_FIXED bytes of a file of this size.
bool hibernate_header_begin(const void *fixed, uint64_t file_size, struct hibernate_header *out, struct status *st);
// From all bytes of the header: tokens [n_pages, KV_PAGE_TOKENS], keys and checksums [n_pages].
bool hibernate_header_end(const void *bytes, const struct hibernate_header *header, int32_t *tokens, uint64_t *keys,
                          uint64_t *sums, struct status *st);
uint64_t hibernate_page_sum(const void *page, uint64_t page_bytes, uint64_t key);

// The header's bytes of pages [n_pages, page_bytes] with these tokens; header->size is set. The caller frees.
void *hibernate_header_bytes(struct hibernate_header *header, const int32_t *tokens, const void *pages);

// A file that is open for reading, and all that its header says.
struct hibernate_file {
    struct hibernate_header header;
    int32_t *tokens;
    uint64_t *keys, *sums;
    uint64_t size; // of the file
    int fd;
};
// STATUS_FORMAT where it is damaged; STATUS_UNSUPPORTED where it is none of ours, or of another version.
bool hibernate_file_open(struct hibernate_file *f, const char *path, struct status *st);
bool hibernate_file_take(struct hibernate_file *f, int fd, struct status *st); // closes fd on failure, too
bool hibernate_file_read(const struct hibernate_file *f, uint32_t page, void *out, struct status *st);
void hibernate_file_close(struct hibernate_file *f);

#endif
