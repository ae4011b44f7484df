// Prefix index: sequences kept for reuse after their request has ended.
//
// Every kept sequence remembers its tokens; a prompt that begins with the same ones forks its pages. Where pages are
// short the least recently used gives way, from its end, so that its beginning serves longest. A kept sequence that is
// the beginning of another of the same conversation is redundant and is dropped at once. The search compares token
// arrays: linear, and nothing beside the forward pass it saves. Owns the kept sequences and their tokens. Used by the
// scheduler on the engine thread.
#ifndef CONFAB_SERVE_PREFIX_H
#define CONFAB_SERVE_PREFIX_H

#include "engine/serve/kv_cache.h"

#define PREFIX_MAX_KEPT 256

struct prefix_entry {
    struct kv_sequence kv;
    int32_t *tokens; // [kv.n_tokens] at least
    uint64_t last_used;
};

struct prefix_index {
    struct kv_cache *cache; // borrowed
    struct prefix_entry entries[PREFIX_MAX_KEPT];
    int count;
    uint64_t clock; // grows with every use
};

// How many tokens a and b have in common at their beginning.
int prefix_common(const int32_t *a, int n_a, const int32_t *b, int n_b);

// Takes over kv (running until now, empty afterwards) and tokens (from malloc).
void prefix_keep(struct prefix_index *x, struct kv_sequence *kv, int32_t *tokens);
// The kept sequence that shares most with tokens[0 .. n), and how much; NULL when none shares any.
struct prefix_entry *prefix_find(struct prefix_index *x, const int32_t *tokens, int n, int *common);
void prefix_touch(struct prefix_index *x, struct prefix_entry *entry);
// The least recently used gives up its last page, which may be shared; false when nothing is kept.
bool prefix_shrink(struct prefix_index *x);
void prefix_drop_owner(struct prefix_index *x, uint64_t owner);
// Drops whatever shares pages with s, which turned out to hold rubbish.
void prefix_drop_sharing(struct prefix_index *x, const struct kv_sequence *s);
void prefix_drop_all(struct prefix_index *x);

#endif
