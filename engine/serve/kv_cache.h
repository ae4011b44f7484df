// KV cache: which page of the arena belongs to which sequence. The pages' contents are the backend's.
//
// A page has KV_PAGE_TOKENS slots; a sequence is a page table whose slot p holds the keys and values of its token p.
// Forking shares pages. The prefix index holds pages, too: a page that it alone holds is cached and can be had by
// evicting it. Invariants, which kv_cache_check verifies:
//   - a page is on the free stack exactly when neither a sequence nor the index holds it;
//   - a sequence of n tokens has ⌈n / KV_PAGE_TOKENS⌉ pages;
//   - a slot that others may read is never written again: a sequence appends only to a page that it took itself, and
//     where that is borrowed from a fork or cached it is replaced by a copy first.
// Used by the scheduler on the engine thread.
#ifndef CONFAB_SERVE_KV_CACHE_H
#define CONFAB_SERVE_KV_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend.h"

struct kv_page {
    uint64_t owner;      // the conversation that took it first
    uint32_t drafted;    // low bits of the number of the last step with drafts in it
    uint16_t references; // sequences
    uint16_t filled;     // slots written
    bool indexed;        // the prefix index holds it
};

struct kv_cache {
    struct kv_page *pages; // [n_pages]
    int32_t *free_stack;   // [n_pages], the first n_free are valid
    int n_pages, n_free;
    int n_cached; // pages that only the prefix index holds
    int n_shared; // pages of more than one sequence
};

struct kv_sequence { // zeroed but for the owner: empty
    int32_t *pages;  // owned by the sequence
    int n_pages, capacity, n_tokens;
    int n_borrowed; // pages at the beginning that it may not write to: others took them, or read what comes next
    uint64_t owner;
};

// A copy that the backend must make before anything is written to page `to`.
struct kv_copy {
    int32_t from, to;
    int n_tokens; // 0: nothing to copy
};

static inline int kv_pages_for(int n_tokens) { return (n_tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS; }

void kv_cache_open(struct kv_cache *c, int n_pages);
void kv_cache_close(struct kv_cache *c);

// Makes room for n_tokens more. Without enough free pages: false, and nothing has changed.
bool kv_cache_append(struct kv_cache *c, struct kv_sequence *s, int n_tokens, struct kv_copy *copy);
// A sequence of n_tokens tokens on these pages.
struct kv_sequence kv_cache_fork(struct kv_cache *c, const int32_t *pages, int n_tokens, uint64_t owner);
// Forgets the tokens from n_tokens on.
void kv_cache_truncate(struct kv_cache *c, struct kv_sequence *s, int n_tokens);
// Gives back everything; s is empty.
void kv_cache_release(struct kv_cache *c, struct kv_sequence *s);
// The prefix index takes hold of a page, or lets it go.
void kv_cache_index(struct kv_cache *c, int32_t page, bool indexed);

// Recounts everything from all the sequences there are; false with the first contradiction in st.
bool kv_cache_check(const struct kv_cache *c, const struct kv_sequence *const *sequences, int n, struct status *st);

#endif
