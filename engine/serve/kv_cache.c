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

static bool page_only_kept(const struct kv_page *p) { return p->references && !p->running; }

// Every change of a count goes through here, so that the totals cannot drift from the pages.
static void page_count(struct kv_cache *c, int32_t page, int references, int running) {
    struct kv_page *p = &c->pages[page];
    c->n_kept -= page_only_kept(p);
    c->n_shared -= p->references > 1;
    p->references = (uint16_t)(p->references + references);
    p->running = (uint16_t)(p->running + running);
    c->n_kept += page_only_kept(p);
    c->n_shared += p->references > 1;
    if (p->references) return;
    *p = (struct kv_page){0};
    c->free_stack[c->n_free++] = page;
}

static void page_take(struct kv_cache *c, struct kv_sequence *s, int at) {
    int32_t page = c->free_stack[--c->n_free];
    c->pages[page].owner = s->owner;
    page_count(c, page, 1, 1);
    s->pages[at] = page;
}

static void page_drop(struct kv_cache *c, const struct kv_sequence *s, int32_t page) {
    page_count(c, page, -1, s->kept ? 0 : -1);
}

static void sequence_grow(struct kv_sequence *s, int n_pages) {
    if (n_pages <= s->capacity) return;
    s->capacity = n_pages > 2 * s->capacity ? n_pages : 2 * s->capacity;
    s->pages = xrealloc(s->pages, (size_t)s->capacity * sizeof *s->pages);
}

bool kv_cache_append(struct kv_cache *c, struct kv_sequence *s, int n_tokens, struct kv_copy *copy) {
    assert(!s->kept && n_tokens > 0);
    *copy = (struct kv_copy){0};
    int used = s->n_tokens % KV_PAGE_TOKENS, last = s->n_pages - 1;
    int n_pages = kv_pages_for(s->n_tokens + n_tokens);
    bool shared = used && c->pages[s->pages[last]].references > 1;
    if (n_pages - s->n_pages + shared > c->n_free) return false;
    sequence_grow(s, n_pages);
    if (shared) {
        int32_t from = s->pages[last];
        page_take(c, s, last);
        page_drop(c, s, from);
        *copy = (struct kv_copy){.from = from, .to = s->pages[last], .n_tokens = used};
    }
    while (s->n_pages < n_pages) page_take(c, s, s->n_pages++);
    s->n_tokens += n_tokens;
    for (int i = last < 0 ? 0 : last; i < n_pages; i++) {
        int filled = s->n_tokens - i * KV_PAGE_TOKENS;
        if (i > last || used)
            c->pages[s->pages[i]].filled = (uint16_t)(filled < KV_PAGE_TOKENS ? filled : KV_PAGE_TOKENS);
    }
    return true;
}

struct kv_sequence kv_cache_fork(struct kv_cache *c, const struct kv_sequence *from, int n_tokens, uint64_t owner) {
    assert(n_tokens <= from->n_tokens);
    struct kv_sequence s = {.n_pages = kv_pages_for(n_tokens), .n_tokens = n_tokens, .owner = owner};
    sequence_grow(&s, s.n_pages);
    for (int i = 0; i < s.n_pages; i++) {
        s.pages[i] = from->pages[i];
        page_count(c, s.pages[i], 1, 1);
    }
    return s;
}

void kv_cache_truncate(struct kv_cache *c, struct kv_sequence *s, int n_tokens) {
    assert(n_tokens <= s->n_tokens);
    while (s->n_pages > kv_pages_for(n_tokens)) page_drop(c, s, s->pages[--s->n_pages]);
    s->n_tokens = n_tokens;
    int used = n_tokens % KV_PAGE_TOKENS;
    if (used && c->pages[s->pages[s->n_pages - 1]].references == 1)
        c->pages[s->pages[s->n_pages - 1]].filled = (uint16_t)used;
}

void kv_cache_keep(struct kv_cache *c, struct kv_sequence *s) {
    assert(!s->kept);
    s->kept = true;
    for (int i = 0; i < s->n_pages; i++) page_count(c, s->pages[i], 0, -1);
}

void kv_cache_release(struct kv_cache *c, struct kv_sequence *s) {
    kv_cache_truncate(c, s, 0);
    free(s->pages);
    *s = (struct kv_sequence){.owner = s->owner};
}

static bool check_free_stack(const struct kv_cache *c, struct status *st) {
    bool ok = true;
    char *seen = xcalloc((size_t)c->n_pages, 1);
    for (int i = 0; i < c->n_free && ok; i++) {
        int32_t page = c->free_stack[i];
        if (seen[page]++ || c->pages[page].references)
            ok = status_fail(st, STATUS_LIMIT, "page %d is free twice or in use", page);
    }
    int used = 0;
    for (int i = 0; i < c->n_pages; i++) used += c->pages[i].references > 0;
    if (ok && used + c->n_free != c->n_pages)
        ok = status_fail(st, STATUS_LIMIT, "%d used and %d free of %d pages", used, c->n_free, c->n_pages);
    free(seen);
    return ok;
}

static bool check_sequence(const struct kv_cache *c, const struct kv_sequence *s, struct kv_page *counts,
                           struct status *st) {
    if (s->n_pages != kv_pages_for(s->n_tokens))
        return status_fail(st, STATUS_LIMIT, "%d pages for %d tokens", s->n_pages, s->n_tokens);
    for (int i = 0; i < s->n_pages; i++) {
        int needed = s->n_tokens - i * KV_PAGE_TOKENS;
        if (needed > KV_PAGE_TOKENS) needed = KV_PAGE_TOKENS;
        if (c->pages[s->pages[i]].filled < needed)
            return status_fail(st, STATUS_LIMIT, "page %d has %d slots, %d needed", s->pages[i],
                               c->pages[s->pages[i]].filled, needed);
        counts[s->pages[i]].references++;
        counts[s->pages[i]].running = (uint16_t)(counts[s->pages[i]].running + !s->kept);
    }
    return true;
}

static bool check_counts(const struct kv_cache *c, const struct kv_page *counts, struct status *st) {
    int n_kept = 0, n_shared = 0;
    for (int i = 0; i < c->n_pages; i++) {
        const struct kv_page *p = &c->pages[i], *counted = &counts[i];
        if (p->references != counted->references || p->running != counted->running)
            return status_fail(st, STATUS_LIMIT, "page %d counts %d references, %d running; there are %d and %d", i,
                               p->references, p->running, counted->references, counted->running);
        n_kept += page_only_kept(p), n_shared += p->references > 1;
    }
    if (n_kept != c->n_kept || n_shared != c->n_shared)
        return status_fail(st, STATUS_LIMIT, "%d kept and %d shared pages; there are %d and %d", c->n_kept, c->n_shared,
                           n_kept, n_shared);
    return true;
}

bool kv_cache_check(const struct kv_cache *c, const struct kv_sequence *const *sequences, int n, struct status *st) {
    struct kv_page *counts = xcalloc((size_t)c->n_pages, sizeof *counts);
    bool ok = check_free_stack(c, st);
    for (int i = 0; i < n && ok; i++) ok = check_sequence(c, sequences[i], counts, st);
    ok = ok && check_counts(c, counts, st);
    free(counts);
    return ok;
}
