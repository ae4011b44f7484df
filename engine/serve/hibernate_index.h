// Hibernate index: which pages of which texts the files of a folder hold. Guarded by the lock of hibernate.c.
#ifndef CONFAB_SERVE_HIBERNATE_INDEX_H
#define CONFAB_SERVE_HIBERNATE_INDEX_H

#include "engine/serve/hibernate_file.h"

struct hibernate_entry {
    char *name; // in the folder
    struct hibernate_header header;
    int32_t *tokens; // [n_pages, KV_PAGE_TOKENS]
    uint64_t *keys;  // [n_pages]
    uint64_t bytes;  // of the file
    bool coming;     // being written
};

struct hibernate_index {
    struct hibernate_entry **entries; // by the key that their first page follows
    struct hibernate_entry **named;   // the same by name
    int count, capacity;
    uint64_t bytes;
};

// The way of a text through the files, page by page.
struct hibernate_walk {
    const struct hibernate_index *index; // is not changed meanwhile
    uint64_t fingerprint;
    const int32_t *tokens; // [n_pages, KV_PAGE_TOKENS]
    int n_pages;
    int page;                            // the next
    uint64_t key;                        // of the page before
    const struct hibernate_entry *entry; // of the last page; NULL: it is in none
    uint32_t at;                         // and which of the entry's it was
};
struct hibernate_walk hibernate_walk_start(const struct hibernate_index *x, uint64_t fingerprint, const int32_t *tokens,
                                           int n_pages);
// On to the next page; false after the last one.
bool hibernate_walk_next(struct hibernate_walk *w);

// The header and arrays of an open file, which are taken out of it; or of one in the making.
void hibernate_index_add(struct hibernate_index *x, const char *name, struct hibernate_file *f, bool coming);
struct hibernate_entry *hibernate_index_find(const struct hibernate_index *x, const char *name); // NULL: unknown
void hibernate_index_remove(struct hibernate_index *x, const char *name);
void hibernate_index_clear(struct hibernate_index *x);

#endif
