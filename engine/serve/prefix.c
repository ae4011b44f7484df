#include "engine/serve/prefix.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

int prefix_common(const int32_t *a, int n_a, const int32_t *b, int n_b) {
    int n = n_a < n_b ? n_a : n_b, i = 0;
    while (i < n && a[i] == b[i]) i++;
    return i;
}

static int at_most_a_page(int n) { return n < KV_PAGE_TOKENS ? n : KV_PAGE_TOKENS; }

void prefix_open(struct prefix_index *x, struct kv_cache *cache) {
    *x = (struct prefix_index){.cache = cache, .root = cache->n_pages};
    x->nodes = xcalloc((size_t)cache->n_pages + 1, sizeof *x->nodes);
    x->nodes[x->root] = (struct prefix_node){
        .n_tokens = KV_PAGE_TOKENS, .parent = -1, .first_child = -1, .older = x->root, .newer = x->root};
}

void prefix_close(struct prefix_index *x) { free(x->nodes); }

// ---- nodes ----

static void use_newest(struct prefix_index *x, int node) {
    struct prefix_node *n = &x->nodes[node], *root = &x->nodes[x->root];
    n->newer = x->root;
    n->older = root->older;
    x->nodes[root->older].newer = node;
    root->older = node;
}

static void use_oldest(struct prefix_index *x, int node) {
    struct prefix_node *n = &x->nodes[node], *root = &x->nodes[x->root];
    n->older = x->root;
    n->newer = root->newer;
    x->nodes[root->newer].older = node;
    root->newer = node;
}

static void use_remove(struct prefix_index *x, int node) {
    const struct prefix_node *n = &x->nodes[node];
    x->nodes[n->older].newer = n->newer;
    x->nodes[n->newer].older = n->older;
}

// Uses a node and all before it, those last.
static void use_path(struct prefix_index *x, int node) {
    for (; node != x->root; node = x->nodes[node].parent) {
        use_remove(x, node);
        use_newest(x, node);
    }
}

static void remove_leaf(struct prefix_index *x, int node) {
    struct prefix_node *n = &x->nodes[node];
    assert(n->first_child < 0);
    if (n->previous >= 0) x->nodes[n->previous].next = n->next;
    else x->nodes[n->parent].first_child = n->next;
    if (n->next >= 0) x->nodes[n->next].previous = n->previous;
    use_remove(x, node);
    n->n_tokens = 0;
    x->count--;
    kv_cache_index(x->cache, node, false);
}

static void remove_subtree(struct prefix_index *x, int top) {
    for (int node = top;;) {
        const struct prefix_node *n = &x->nodes[node];
        const int parent = n->parent;
        if (n->first_child >= 0) {
            node = n->first_child;
            continue;
        }
        remove_leaf(x, node);
        if (node == top) return;
        node = parent;
    }
}

// The child that holds these tokens, perhaps with more after them; −1: none.
static int child_with(const struct prefix_index *x, int parent, const int32_t *tokens, int n) {
    int child = x->nodes[parent].first_child;
    while (child >= 0 && prefix_common(x->nodes[child].tokens, x->nodes[child].n_tokens, tokens, n) < n)
        child = x->nodes[child].next;
    return child;
}

// A new child. It takes the place of those that are its beginning.
static void insert(struct prefix_index *x, int parent, int32_t page, const int32_t *tokens, int n, bool ahead) {
    for (int child = x->nodes[parent].first_child, next; child >= 0; child = next) {
        const struct prefix_node *c = &x->nodes[child];
        next = c->next;
        if (c->n_tokens < n && prefix_common(c->tokens, c->n_tokens, tokens, n) == c->n_tokens) remove_leaf(x, child);
    }
    struct prefix_node *node = &x->nodes[page], *above = &x->nodes[parent];
    assert(!node->n_tokens && above->n_tokens == KV_PAGE_TOKENS);
    *node = (struct prefix_node){
        .n_tokens = n, .parent = parent, .first_child = -1, .next = above->first_child, .previous = -1};
    memcpy(node->tokens, tokens, (size_t)n * sizeof *tokens);
    if (above->first_child >= 0) x->nodes[above->first_child].previous = page;
    above->first_child = page;
    if (ahead) use_oldest(x, page);
    else use_newest(x, page);
    x->count++;
    kv_cache_index(x->cache, page, true);
}

// ---- texts ----

// Returns the last node.
static int add(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens, int n, bool ahead) {
    assert(n <= kv->n_tokens);
    int at = x->root;
    for (int i = 0; i < kv_pages_for(n); i++) {
        const int32_t *part = tokens + i * KV_PAGE_TOKENS;
        const int size = at_most_a_page(n - i * KV_PAGE_TOKENS);
        int child = child_with(x, at, part, size);
        if (child < 0) {
            child = kv->pages[i];
            insert(x, at, child, part, size, ahead);
            x->cache->pages[child].owner = kv->owner;
        }
        at = child;
    }
    return at;
}

void prefix_add(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens, int n) {
    use_path(x, add(x, kv, tokens, n, false));
}

void prefix_add_ahead(struct prefix_index *x, const struct kv_sequence *kv, const int32_t *tokens, int n) {
    add(x, kv, tokens, n, true);
}

struct prefix_match prefix_find(const struct prefix_index *x, const int32_t *tokens, int n) {
    struct prefix_match match = {.node = x->root};
    while (match.n_tokens % KV_PAGE_TOKENS == 0) {
        int most = 0, best = -1;
        for (int child = x->nodes[match.node].first_child; child >= 0; child = x->nodes[child].next) {
            const struct prefix_node *c = &x->nodes[child];
            const int common = prefix_common(c->tokens, c->n_tokens, tokens + match.n_tokens, n - match.n_tokens);
            if (common > most) most = common, best = child;
        }
        if (best < 0) break;
        match = (struct prefix_match){.n_tokens = match.n_tokens + most, .node = best};
    }
    return match;
}

int32_t *prefix_pages(const struct prefix_index *x, const struct prefix_match *match) {
    const int n_pages = kv_pages_for(match->n_tokens);
    int32_t *pages = xmalloc(((size_t)n_pages + 1) * sizeof *pages);
    for (int i = n_pages - 1, node = match->node; i >= 0; i--, node = x->nodes[node].parent) pages[i] = node;
    return pages;
}

struct kv_sequence prefix_fork_ahead(struct prefix_index *x, const struct prefix_match *match, uint64_t owner) {
    int32_t *pages = prefix_pages(x, match);
    struct kv_sequence kv = kv_cache_fork(x->cache, pages, match->n_tokens, owner);
    free(pages);
    return kv;
}

struct kv_sequence prefix_fork(struct prefix_index *x, const struct prefix_match *match, uint64_t owner) {
    use_path(x, match->node);
    return prefix_fork_ahead(x, match, owner);
}

// ---- other branches ----

// Writes the tokens of the nodes down to `leaf` that are not told yet; returns how many, with −1 behind.
static int tell_path(const struct prefix_index *x, int leaf, char *told, int32_t *out, int most) {
    int total = 1;
    for (int node = leaf; !told[node] && total + x->nodes[node].n_tokens <= most; node = x->nodes[node].parent) {
        told[node] = 1;
        total += x->nodes[node].n_tokens;
    }
    if (total == 1) return 0;
    for (int node = leaf, left = total - 1; left > 0; node = x->nodes[node].parent) {
        left -= x->nodes[node].n_tokens;
        memcpy(out + left, x->nodes[node].tokens, (size_t)x->nodes[node].n_tokens * sizeof *out);
    }
    out[total - 1] = -1;
    return total;
}

int prefix_branches(const struct prefix_index *x, uint64_t owner, const int32_t *tokens, int n, int32_t *out,
                    int most) {
    char *told = xcalloc((size_t)x->root + 1, 1);
    int count = 0;
    told[x->root] = 1;
    for (int node = prefix_find(x, tokens, n).node; node != x->root; node = x->nodes[node].parent) told[node] = 1;
    for (int node = x->nodes[x->root].older; node != x->root; node = x->nodes[node].older)
        if (x->nodes[node].first_child < 0 && !told[node] && x->cache->pages[node].owner == owner)
            count += tell_path(x, node, told, out + count, most - count);
    free(told);
    return count;
}

// ---- giving back ----

// The least recently used leaf: of those whose page nobody runs on, if `cached`; −1: none.
static int oldest_leaf(const struct prefix_index *x, bool cached) {
    int node = x->nodes[x->root].newer;
    while (node != x->root && (x->nodes[node].first_child >= 0 || (cached && x->cache->pages[node].references)))
        node = x->nodes[node].newer;
    return node == x->root ? -1 : node;
}

// A cached page may lie before one that somebody runs on, who has another with the same tokens in its place.
bool prefix_evict(struct prefix_index *x) {
    if (!x->cache->n_cached) return false;
    int leaf;
    while ((leaf = oldest_leaf(x, true)) < 0) remove_leaf(x, oldest_leaf(x, false));
    remove_leaf(x, leaf);
    x->evictions++;
    return true;
}

bool prefix_evict_sparing(struct prefix_index *x, uint64_t owner) {
    const struct kv_page *pages = x->cache->pages;
    int node = x->nodes[x->root].newer;
    while (node != x->root && (x->nodes[node].first_child >= 0 || pages[node].references || pages[node].owner == owner))
        node = x->nodes[node].newer;
    if (node == x->root) return false;
    remove_leaf(x, node);
    x->evictions++;
    return true;
}

// Children come before their parents, and are not the owner's any more when those have their turn.
void prefix_forget(struct prefix_index *x, uint64_t owner) {
    for (int node = x->nodes[x->root].newer, newer; node != x->root; node = newer) {
        const int child = x->nodes[node].first_child;
        newer = x->nodes[node].newer;
        if (x->cache->pages[node].owner != owner) continue;
        if (child < 0) remove_leaf(x, node);
        else x->cache->pages[node].owner = x->cache->pages[child].owner;
    }
}

void prefix_drop(struct prefix_index *x, const struct kv_sequence *kv) {
    for (int i = 0; i < kv->n_pages; i++)
        if (x->nodes[kv->pages[i]].n_tokens) remove_subtree(x, kv->pages[i]);
}

void prefix_clear(struct prefix_index *x) {
    while (x->count) remove_leaf(x, oldest_leaf(x, false));
}

// ---- check ----

static bool check_children(const struct prefix_index *x, int parent, int *count, struct status *st) {
    int previous = -1;
    for (int child = x->nodes[parent].first_child; child >= 0; previous = child, child = x->nodes[child].next) {
        const struct prefix_node *c = &x->nodes[child];
        if (c->parent != parent || c->previous != previous)
            return status_fail(st, STATUS_LIMIT, "node %d is not linked as a child of %d", child, parent);
        for (int other = c->next; other >= 0; other = x->nodes[other].next) {
            const struct prefix_node *o = &x->nodes[other];
            const int n = c->n_tokens < o->n_tokens ? c->n_tokens : o->n_tokens;
            if (prefix_common(c->tokens, n, o->tokens, n) == n)
                return status_fail(st, STATUS_LIMIT, "nodes %d and %d hold the same tokens", child, other);
        }
        ++*count;
    }
    return true;
}

static bool check_node(const struct prefix_index *x, int node, int *n_children, struct status *st) {
    const struct prefix_node *n = &x->nodes[node];
    const struct kv_page *page = &x->cache->pages[node];
    if (page->indexed != (n->n_tokens > 0))
        return status_fail(st, STATUS_LIMIT, "page %d is%s held by the index", node, page->indexed ? "" : " not");
    if (!n->n_tokens) return true;
    if (n->n_tokens > page->filled)
        return status_fail(st, STATUS_LIMIT, "node %d has %d tokens, its page %d", node, n->n_tokens, page->filled);
    if (n->first_child >= 0 && n->n_tokens < KV_PAGE_TOKENS)
        return status_fail(st, STATUS_LIMIT, "node %d has children and %d tokens", node, n->n_tokens);
    return check_children(x, node, n_children, st);
}

// By use, children before their parents.
static bool check_uses(const struct prefix_index *x, struct status *st) {
    int count = 0;
    bool ok = true;
    char *seen = xcalloc((size_t)x->root + 1, 1);
    for (int node = x->nodes[x->root].newer; ok && node != x->root; node = x->nodes[node].newer) {
        if (seen[node]++ || !x->nodes[node].n_tokens || seen[x->nodes[node].parent])
            ok = status_fail(st, STATUS_LIMIT, "node %d is out of order in the list by use", node);
        count++;
    }
    free(seen);
    return ok && (count == x->count || status_fail(st, STATUS_LIMIT, "%d of %d nodes listed", count, x->count));
}

bool prefix_check(const struct prefix_index *x, struct status *st) {
    int n_children = 0;
    if (!check_children(x, x->root, &n_children, st)) return false;
    for (int i = 0; i < x->root; i++)
        if (!check_node(x, i, &n_children, st)) return false;
    if (n_children != x->count)
        return status_fail(st, STATUS_LIMIT, "%d nodes are counted, %d hang in the tree", x->count, n_children);
    return check_uses(x, st);
}
