#include "engine/serve/hibernate_index.h"

#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/base/panic.h"

// ---- entries ----

static void entry_free(struct hibernate_entry *e) {
    free(e->name);
    free(e->tokens);
    free(e->keys);
    free(e);
}

// The first entry whose first page follows this key, or one that is higher.
static int lower_bound(const struct hibernate_index *x, uint64_t before) {
    int low = 0, high = x->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (x->entries[middle]->header.before < before) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The first entry of this name, or one that is higher.
static int name_bound(const struct hibernate_index *x, const char *name) {
    int low = 0, high = x->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (strcmp(x->named[middle]->name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void put(struct hibernate_entry **list, int count, int at, struct hibernate_entry *e) {
    memmove(list + at + 1, list + at, (size_t)(count - at) * sizeof(struct hibernate_entry *));
    list[at] = e;
}

static void take(struct hibernate_entry **list, int count, int at) {
    memmove(list + at, list + at + 1, (size_t)(count - at - 1) * sizeof(struct hibernate_entry *));
}

void hibernate_index_add(struct hibernate_index *x, const char *name, struct hibernate_file *f, bool coming) {
    hibernate_index_remove(x, name);
    if (x->count == x->capacity) {
        x->capacity = x->capacity ? 2 * x->capacity : 64;
        x->entries = xrealloc(x->entries, (size_t)x->capacity * sizeof(struct hibernate_entry *));
        x->named = xrealloc(x->named, (size_t)x->capacity * sizeof(struct hibernate_entry *));
    }
    struct hibernate_entry *e = xcalloc(1, sizeof *e);
    *e = (struct hibernate_entry){.name = xstrdup(name),
                                  .header = f->header,
                                  .tokens = f->tokens,
                                  .keys = f->keys,
                                  .bytes = f->size,
                                  .coming = coming};
    f->tokens = NULL, f->keys = NULL;
    put(x->entries, x->count, lower_bound(x, e->header.before), e);
    put(x->named, x->count, name_bound(x, name), e);
    x->count++;
    x->bytes += e->bytes;
}

struct hibernate_entry *hibernate_index_find(const struct hibernate_index *x, const char *name) {
    const int at = name_bound(x, name);
    return at < x->count && !strcmp(x->named[at]->name, name) ? x->named[at] : NULL;
}

void hibernate_index_remove(struct hibernate_index *x, const char *name) {
    struct hibernate_entry *e = hibernate_index_find(x, name);
    if (!e) return;
    int at = lower_bound(x, e->header.before);
    while (x->entries[at] != e) at++;
    take(x->entries, x->count, at);
    take(x->named, x->count, name_bound(x, name));
    x->count--;
    x->bytes -= e->bytes;
    entry_free(e);
}

void hibernate_index_clear(struct hibernate_index *x) {
    for (int i = 0; i < x->count; i++) entry_free(x->entries[i]);
    free(x->entries);
    free(x->named);
    *x = (struct hibernate_index){0};
}

// ---- walks ----

struct hibernate_walk hibernate_walk_start(const struct hibernate_index *x, uint64_t fingerprint, const int32_t *tokens,
                                           int n_pages) {
    return (struct hibernate_walk){
        .index = x, .fingerprint = fingerprint, .tokens = tokens, .n_pages = n_pages, .key = fingerprint};
}

static bool page_is(const struct hibernate_walk *w, const struct hibernate_entry *e, uint32_t at, int page) {
    const size_t n = KV_PAGE_TOKENS;
    return at < e->header.n_pages && page < w->n_pages &&
           !memcmp(e->tokens + at * n, w->tokens + (size_t)page * n, n * sizeof *w->tokens);
}

// Of the files that go on after the last page, the one that does so for the most pages; one that is there before one
// that is coming.
static const struct hibernate_entry *entry_after(const struct hibernate_walk *w) {
    const struct hibernate_index *x = w->index;
    const struct hibernate_entry *best = NULL;
    uint32_t most = 0;
    for (int i = lower_bound(x, w->key); i < x->count && x->entries[i]->header.before == w->key; i++) {
        const struct hibernate_entry *e = x->entries[i];
        uint32_t n = 0;
        if (e->header.fingerprint != w->fingerprint || e->header.first_page != (uint32_t)w->page) continue;
        while (page_is(w, e, n, w->page + (int)n)) n++;
        if (!n || (best && e->coming > best->coming) || (best && e->coming == best->coming && n <= most)) continue;
        best = e, most = n;
    }
    return best;
}

bool hibernate_walk_next(struct hibernate_walk *w) {
    if (w->page == w->n_pages) return false;
    if (w->entry && page_is(w, w->entry, w->at + 1, w->page)) w->at++;
    else w->entry = entry_after(w), w->at = 0;
    w->key = hibernate_page_key(w->key, w->tokens + (size_t)w->page * KV_PAGE_TOKENS);
    w->page++;
    return true;
}
