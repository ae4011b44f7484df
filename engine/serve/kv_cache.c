#include "engine/serve/kv_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

void kv_cache_open(struct kv_cache *c, int n_pages) {
    *c = (struct kv_cache){.n_pages = n_pages, .n_free = n_pages};
    c->pages = xcalloc((size_t)n_pages, sizeof *c->pages);
    c->free_stack = xmalloc((size_t)n_pages * sizeof *c->free_stack);
    for (int i = 0; i < n_pages; i++) c->free_stack[i] = n_pages - 1 - i; // low numbers first
}

void kv_cache_close(struct kv_cache *c) {
    free(c->pages);
    free(c->free_stack);
    *c = (struct kv_cache){0};
}

static bool page_is_cached(const struct kv_page *p) { return p->indexed && !p->references; }

// Every change of a page's holders goes through here, so that the totals cannot drift from the pages.
static void page_hold(struct kv_cache *c, int32_t page, int references, bool indexed) {
    struct kv_page *p = &c->pages[page];
    c->n_cached -= page_is_cached(p);
    c->n_shared -= p->references > 1;
    p->references = (uint16_t)(p->references + references);
    p->indexed = indexed;
    c->n_cached += page_is_cached(p);
    c->n_shared += p->references > 1;
    if (p->references || p->indexed) return;
    *p = (struct kv_page){0};
    c->free_stack[c->n_free++] = page;
}

static void page_count(struct kv_cache *c, int32_t page, int references) {
    page_hold(c, page, references, c->pages[page].indexed);
}

static void page_take(struct kv_cache *c, struct kv_sequence *s, int at) {
    int32_t page = c->free_stack[--c->n_free];
    c->pages[page].owner = s->owner;
    page_count(c, page, 1);
    s->pages[at] = page;
}

static bool page_has_others(const struct kv_cache *c, int32_t page) {
    return c->pages[page].references > 1 || c->pages[page].indexed;
}

static void sequence_grow(struct kv_sequence *s, int n_pages) {
    if (n_pages <= s->capacity) return;
    s->capacity = n_pages > 2 * s->capacity ? n_pages : 2 * s->capacity;
    s->pages = xrealloc(s->pages, (size_t)s->capacity * sizeof *s->pages);
}

bool kv_cache_append(struct kv_cache *c, struct kv_sequence *s, int n_tokens, struct kv_copy *copy) {
    assert(n_tokens > 0);
    *copy = (struct kv_copy){0};
    const int used = s->n_tokens % KV_PAGE_TOKENS, last = s->n_pages - 1;
    const int n_pages = kv_pages_for(s->n_tokens + n_tokens);
    const bool copies = used && last < s->n_borrowed && page_has_others(c, s->pages[last]);
    if (n_pages - s->n_pages + copies > c->n_free) return false;
    sequence_grow(s, n_pages);
    if (used && last < s->n_borrowed) s->n_borrowed = last;
    if (copies) {
        int32_t from = s->pages[last];
        page_take(c, s, last);
        page_count(c, from, -1);
        *copy = (struct kv_copy){.from = from, .to = s->pages[last], .n_tokens = used};
    }
    while (s->n_pages < n_pages) page_take(c, s, s->n_pages++);
    s->n_tokens += n_tokens;
    for (int i = used ? last : last + 1; i < n_pages; i++) {
        int filled = s->n_tokens - i * KV_PAGE_TOKENS;
        c->pages[s->pages[i]].filled = (uint16_t)(filled < KV_PAGE_TOKENS ? filled : KV_PAGE_TOKENS);
    }
    return true;
}

struct kv_sequence kv_cache_fork(struct kv_cache *c, const int32_t *pages, int n_tokens, uint64_t owner) {
    struct kv_sequence s = {.n_pages = kv_pages_for(n_tokens), .n_tokens = n_tokens, .owner = owner};
    s.n_borrowed = s.n_pages;
    sequence_grow(&s, s.n_pages);
    for (int i = 0; i < s.n_pages; i++) {
        s.pages[i] = pages[i];
        page_count(c, pages[i], 1);
    }
    return s;
}

void kv_cache_truncate(struct kv_cache *c, struct kv_sequence *s, int n_tokens) {
    assert(n_tokens <= s->n_tokens);
    if (n_tokens == s->n_tokens) return;
    while (s->n_pages > kv_pages_for(n_tokens)) page_count(c, s->pages[--s->n_pages], -1);
    s->n_tokens = n_tokens;
    if (s->n_borrowed > s->n_pages) s->n_borrowed = s->n_pages;
    if (n_tokens % KV_PAGE_TOKENS == 0) return;
    const int32_t page = s->pages[s->n_pages - 1];
    if (page_has_others(c, page)) s->n_borrowed = s->n_pages; // they may read the slots that come next
    else c->pages[page].filled = (uint16_t)(n_tokens % KV_PAGE_TOKENS);
}

void kv_cache_release(struct kv_cache *c, struct kv_sequence *s) {
    kv_cache_truncate(c, s, 0);
    free(s->pages);
    *s = (struct kv_sequence){.owner = s->owner};
}

void kv_cache_index(struct kv_cache *c, int32_t page, bool indexed) { page_hold(c, page, 0, indexed); }

static bool check_free_stack(const struct kv_cache *c, struct status *st) {
    bool ok = true;
    char *seen = xcalloc((size_t)c->n_pages, 1);
    for (int i = 0; i < c->n_free && ok; i++) {
        int32_t page = c->free_stack[i];
        if (seen[page]++ || c->pages[page].references || c->pages[page].indexed)
            ok = status_fail(st, STATUS_LIMIT, "page %d is free twice or in use", page);
    }
    int used = 0;
    for (int i = 0; i < c->n_pages; i++) used += c->pages[i].references || c->pages[i].indexed;
    if (ok && used + c->n_free != c->n_pages)
        ok = status_fail(st, STATUS_LIMIT, "%d used and %d free of %d pages", used, c->n_free, c->n_pages);
    free(seen);
    return ok;
}

static bool check_sequence(const struct kv_cache *c, const struct kv_sequence *s, int *references, struct status *st) {
    if (s->n_pages != kv_pages_for(s->n_tokens))
        return status_fail(st, STATUS_LIMIT, "%d pages for %d tokens", s->n_pages, s->n_tokens);
    for (int i = 0; i < s->n_pages; i++) {
        int needed = s->n_tokens - i * KV_PAGE_TOKENS;
        if (needed > KV_PAGE_TOKENS) needed = KV_PAGE_TOKENS;
        if (c->pages[s->pages[i]].filled < needed)
            return status_fail(st, STATUS_LIMIT, "page %d has %d slots, %d needed", s->pages[i],
                               c->pages[s->pages[i]].filled, needed);
        references[s->pages[i]]++;
    }
    return true;
}

static bool check_counts(const struct kv_cache *c, const int *references, struct status *st) {
    int n_cached = 0, n_shared = 0;
    for (int i = 0; i < c->n_pages; i++) {
        const struct kv_page *p = &c->pages[i];
        if (p->references != references[i])
            return status_fail(st, STATUS_LIMIT, "page %d counts %d references, there are %d", i, p->references,
                               references[i]);
        n_cached += page_is_cached(p), n_shared += p->references > 1;
    }
    if (n_cached != c->n_cached || n_shared != c->n_shared)
        return status_fail(st, STATUS_LIMIT, "%d cached and %d shared pages are counted, there are %d and %d",
                           c->n_cached, c->n_shared, n_cached, n_shared);
    return true;
}

bool kv_cache_check(const struct kv_cache *c, const struct kv_sequence *const *sequences, int n, struct status *st) {
    int *references = xcalloc((size_t)c->n_pages, sizeof *references);
    bool ok = check_free_stack(c, st);
    for (int i = 0; i < n && ok; i++) ok = check_sequence(c, sequences[i], references, st);
    ok = ok && check_counts(c, references, st);
    free(references);
    return ok;
}
