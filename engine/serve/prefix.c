#include "engine/serve/prefix.h"

#include <stdlib.h>

#include "engine/base/panic.h"

int prefix_common(const int32_t *a, int n_a, const int32_t *b, int n_b) {
    int n = n_a < n_b ? n_a : n_b, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

static void drop(struct prefix_index *x, int i) {
    kv_cache_release(x->cache, &x->entries[i].kv);
    free(x->entries[i].tokens);
    x->entries[i] = x->entries[--x->count];
}

static int oldest(const struct prefix_index *x) {
    int best = 0;
    for (int i = 1; i < x->count; i++)
        if (x->entries[i].last_used < x->entries[best].last_used) best = i;
    return best;
}

// Drops what the new sequence makes redundant; true when it is redundant itself.
static bool absorb(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens) {
    for (int i = x->count - 1; i >= 0; i--) {
        struct prefix_entry *e = &x->entries[i];
        if (e->kv.owner != kv->owner) continue;
        int common = prefix_common(e->tokens, e->kv.n_tokens, tokens, kv->n_tokens);
        if (common == kv->n_tokens) return prefix_touch(x, e), true;
        if (common == e->kv.n_tokens) drop(x, i);
    }
    return false;
}

void prefix_keep(struct prefix_index *x, struct kv_sequence *kv, int32_t *tokens) {
    if (!kv->n_tokens || absorb(x, kv, tokens)) {
        kv_cache_release(x->cache, kv);
        free(tokens);
        return;
    }
    if (x->count == PREFIX_MAX_KEPT) drop(x, oldest(x));
    kv_cache_keep(x->cache, kv);
    tokens = xrealloc(tokens, (size_t)kv->n_tokens * sizeof *tokens);
    x->entries[x->count++] = (struct prefix_entry){.kv = *kv, .tokens = tokens, .last_used = ++x->clock};
    *kv = (struct kv_sequence){.owner = kv->owner};
}

struct prefix_entry *prefix_find(struct prefix_index *x, const int32_t *tokens, int n, int *common) {
    struct prefix_entry *best = NULL;
    *common = 0;
    for (int i = 0; i < x->count; i++) {
        struct prefix_entry *e = &x->entries[i];
        int shared = prefix_common(e->tokens, e->kv.n_tokens, tokens, n);
        if (shared > *common) best = e, *common = shared;
    }
    return best;
}

void prefix_touch(struct prefix_index *x, struct prefix_entry *entry) { entry->last_used = ++x->clock; }

bool prefix_shrink(struct prefix_index *x) {
    if (!x->count) return false;
    int i = oldest(x);
    struct kv_sequence *kv = &x->entries[i].kv;
    if (kv->n_pages == 1) drop(x, i);
    else kv_cache_truncate(x->cache, kv, (kv->n_pages - 1) * KV_PAGE_TOKENS);
    return true;
}

void prefix_drop_owner(struct prefix_index *x, uint64_t owner) {
    for (int i = x->count - 1; i >= 0; i--)
        if (x->entries[i].kv.owner == owner) drop(x, i);
}

// Forks share from the first page on.
void prefix_drop_sharing(struct prefix_index *x, const struct kv_sequence *s) {
    for (int i = x->count - 1; i >= 0; i--)
        if (s->n_pages && x->entries[i].kv.pages[0] == s->pages[0]) drop(x, i);
}

void prefix_drop_all(struct prefix_index *x) {
    while (x->count) drop(x, x->count - 1);
}
