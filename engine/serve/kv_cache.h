// KV cache: which page of the arena belongs to which sequence. The pages' contents are the backend's.
//
// A page has KV_PAGE_TOKENS slots and a reference count; a sequence is a page table whose slot p holds the keys and
// values of its token p. Forking shares pages. Invariants, which kv_cache_check verifies:
//   - a page is on the free stack exactly when nothing refers to it;
//   - a sequence of n tokens has ⌈n / KV_PAGE_TOKENS⌉ pages;
//   - slots are only ever written in a page with one reference: appending into a shared page replaces it by a copy
//   first.
// A sequence is running or kept (for reuse only). Pages that only kept sequences hold can be had by releasing those.
// Used by the scheduler on the engine thread.
#ifndef CONFAB_SERVE_KV_CACHE_H
#define CONFAB_SERVE_KV_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend.h"

struct kv_page {
    uint64_t owner;      // the conversation that took it first
    uint16_t references; // sequences, of either kind
    uint16_t running;    // of them, running ones
    uint16_t filled;     // slots written
};

struct kv_cache {
    struct kv_page *pages; // [n_pages]
    int32_t *free_stack;   // [n_pages], the first n_free are valid
    int n_pages, n_free;
    int n_kept;   // pages that only kept sequences hold
    int n_shared; // pages with more than one reference
};

struct kv_sequence { // zeroed but for the owner: empty and running
    int32_t *pages;  // owned by the sequence
    int n_pages, capacity, n_tokens;
    uint64_t owner;
    bool kept;
};

// A copy that the backend must make before anything is written to page `to`.
struct kv_copy {
    int32_t from, to;
    int n_tokens; // 0: nothing to copy
};

static inline int kv_pages_for(int n_tokens) {
    return (n_tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
}

void kv_cache_open(struct kv_cache *c, int n_pages);
void kv_cache_close(struct kv_cache *c);

// Makes room for n_tokens more. Without enough free pages: false, and nothing has changed.
bool kv_cache_append(struct kv_cache *c, struct kv_sequence *s, int n_tokens, struct kv_copy *copy);
// A running sequence of the first n_tokens of `from`, on the same pages.
struct kv_sequence kv_cache_fork(struct kv_cache *c, const struct kv_sequence *from, int n_tokens, uint64_t owner);
// Forgets the tokens from n_tokens on.
void kv_cache_truncate(struct kv_cache *c, struct kv_sequence *s, int n_tokens);
// From running to kept.
void kv_cache_keep(struct kv_cache *c, struct kv_sequence *s);
// Gives back everything; s is empty and running again.
void kv_cache_release(struct kv_cache *c, struct kv_sequence *s);

// Recounts everything from all the sequences there are; false with the first contradiction in st.
bool kv_cache_check(const struct kv_cache *c, const struct kv_sequence *const *sequences, int n, struct status *st);

#endif
