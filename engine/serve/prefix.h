// Prefix index: the pages of tokens that were computed, as a tree. It belongs to no conversation.
//
//               root
//              ╱    ╲              A node is a page of the KV cache with the tokens in it; the path from the root to it
//     [32 tokens]  [32 tokens]     is the text that they were computed after. A full page may have children, one that
//      ╱       ╲                   is filled in part is a leaf. No node is the beginning of a sibling. A text that
// [32 tokens]  [7 tokens]          begins like a path of the tree forks its pages, to the token where they part.
//
// Running sequences add each page when it is full and computed, and what the last one holds when they end or give way.
// A page that no sequence runs on is cached: where pages are short the least recently used leaf is evicted first. Every
// use of a node is one of all before it, so that the list of nodes by use has children before their parents. A node is
// kept on behalf of its page's owner; a conversation that is forgotten takes its pages along, but for those on the way
// to another's. What sequences are computing at this moment is found in them, see admission.c.
//
// The index of a node is its page's. Owns the nodes; used by the scheduler on the engine thread.
#ifndef CONFAB_SERVE_PREFIX_H
#define CONFAB_SERVE_PREFIX_H

#include "engine/serve/kv_cache.h"

struct prefix_node {
    int n_tokens;                            // 0: the page is not in the tree
    int parent, first_child, next, previous; // node or −1; siblings
    int older, newer;                        // by use; a ring through the root
    bool saved;                              // on the disk, too
    int32_t tokens[KV_PAGE_TOKENS];
};

struct prefix_index {
    struct kv_cache *cache;    // borrowed
    struct prefix_node *nodes; // [n_pages + 1], the last is the root
    int root, count;           // count: of nodes but for the root
    int64_t evictions;         // so far
};

struct prefix_match {
    int n_tokens; // in common, from the beginning
    int node;     // that holds the last of them
};

// How many tokens a and b have in common at their beginning.
int prefix_common(const int32_t *a, int n_a, const int32_t *b, int n_b);

void prefix_open(struct prefix_index *x, struct kv_cache *cache);
void prefix_close(struct prefix_index *x);

// Adds the pages of the first n tokens of kv, all of which are computed; those that are there already are only used.
void prefix_add(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens, int n);
// The same on speculation: nothing counts as used, and what is new is evicted first.
void prefix_add_ahead(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens, int n);
// The longest beginning of tokens[0 .. n) in the index.
struct prefix_match prefix_find(const struct prefix_index *x, const int32_t *tokens, int n);
// The pages that a match lies in, in order; from malloc.
int32_t *prefix_pages(const struct prefix_index *x, const struct prefix_match *match);
// What else was said on behalf of this owner: the texts that part from tokens [0 .. n), each from the page on in which
// they do, −1 after each. The latest first, and at most `most` tokens of them; returns how many.
int prefix_branches(const struct prefix_index *x, uint64_t owner, const int32_t *tokens, int n, int32_t *out, int most);
// A sequence on the pages of a match, which counts as a use of them; or not.
struct kv_sequence prefix_fork(struct prefix_index *x, const struct prefix_match *match, uint64_t owner);
struct kv_sequence prefix_fork_ahead(struct prefix_index *x, const struct prefix_match *match, uint64_t owner);

// Frees a page; false when none is cached.
bool prefix_evict(struct prefix_index *x);
// The same, but none of this owner's.
bool prefix_evict_sparing(struct prefix_index *x, uint64_t owner);
void prefix_forget(struct prefix_index *x, uint64_t owner);
// Drops the pages of kv, which turned out to hold rubbish, and all that was computed after them.
void prefix_drop(struct prefix_index *x, const struct kv_sequence *kv);

void prefix_clear(struct prefix_index *x);

// Verifies the tree, the list by use and what the pages say of them.
bool prefix_check(const struct prefix_index *x, struct status *st);

#endif
