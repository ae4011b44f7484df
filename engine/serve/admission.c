// Admission: which sequences run, and on which pages.
//
// What a sequence has in common with the prefix index, or with one that runs, it takes over. Where a running one is
// about to compute more of it than that the sequence waits, stays pending, and takes over all of it when it is there;
// it looks again when the other ends or gives way.
#include <assert.h>

#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

enum outcome { ADMITTED, WAITS, NO_ROOM };

// Less than this is computed again sooner than waited for.
enum { WORTH_WAITING = KV_PAGE_TOKENS };

// ---- leaving ----

void admission_leave(struct scheduler *s, struct sequence *q, bool publish) {
    sequence_take_back(q, &s->cache);
    if (publish && q->kv.n_tokens) scheduler_publish(s, q, q->kv.n_tokens);
    kv_cache_release(&s->cache, &q->kv);
    hibernation_leave(q);
    for (int i = 0; i < s->n_sequences; i++)
        if (s->sequences[i]->waits_for == q) s->sequences[i]->waits_for = NULL;
    s->n_running -= sequence_runs(q);
}

// q gives up its place, and waits for another one.
static void give_way(struct scheduler *s, struct sequence *q, bool publish) {
    admission_leave(s, q, publish && !q->request->forgotten);
    scheduler_enter(s, q, REQUEST_PENDING, "");
}

static void preempt(struct scheduler *s, struct sequence *q) {
    if (!q->request->read_ahead) {
        s->metrics->preemptions++;
        log_info("engine", "request %llu pre-empted at %d tokens: the KV cache is full",
                 (unsigned long long)q->request->id, q->n_tokens);
    }
    give_way(s, q, true);
}

bool admission_yield(struct scheduler *s) {
    bool any = false;
    for (int i = s->n_sequences - 1; i >= 0 && s->sequences[i]->request->read_ahead; i--) {
        if (!sequence_runs(s->sequences[i])) continue;
        give_way(s, s->sequences[i], true);
        any = true;
    }
    return any;
}

void admission_restart(struct scheduler *s) {
    prefix_clear(&s->prefixes);
    s->n_copies = 0;
    for (int i = 0; i < s->n_sequences; i++)
        if (sequence_runs(s->sequences[i])) give_way(s, s->sequences[i], false);
}

static struct sequence *last_running(const struct scheduler *s) {
    for (int i = s->n_sequences - 1; i >= 0; i--)
        if (sequence_runs(s->sequences[i])) return s->sequences[i];
    return NULL;
}

// ---- pages ----

// What is cached of the conversation in focus a program takes only where it runs alone.
static bool evict_for(struct scheduler *s, const struct sequence *q) {
    if (!q->request->background) return prefix_evict(&s->prefixes);
    return prefix_evict_sparing(&s->prefixes, s->focus) || (s->n_running <= 1 && prefix_evict(&s->prefixes));
}

static int pages_kept_from(const struct scheduler *s, const struct sequence *q) {
    int n = 0;
    if (!q->request->background || !s->n_running) return 0;
    for (int i = 0; i < s->cache.n_pages; i++) {
        const struct kv_page *p = &s->cache.pages[i];
        n += p->indexed && !p->references && p->owner == s->focus;
    }
    return n;
}

bool admission_reserve_cached(struct scheduler *s, struct sequence *q, int n) {
    struct kv_copy copy;
    while (!sequence_reserve(q, &s->cache, n, &copy))
        if (!evict_for(s, q)) return false;
    if (!copy.n_tokens) return true;
    if (s->n_copies == s->most_copies) {
        s->most_copies += 16;
        s->copies = xrealloc(s->copies, (size_t)s->most_copies * sizeof *s->copies);
    }
    s->copies[s->n_copies++] = (struct page_copy){.to = copy.to, .from = copy.from};
    return true;
}

bool admission_reserve(struct scheduler *s, struct sequence *q, int n) {
    while (!admission_reserve_cached(s, q, n)) {
        struct sequence *victim = last_running(s);
        assert(victim != q || s->n_running > 1); // alone it always fits: limit ≤ context ≤ the arena
        preempt(s, victim);
        if (victim == q) return false;
    }
    return true;
}

// Pages q will need soon: for all that is known and a page to grow.
static int pages_wanted(const struct sequence *q) {
    int n = q->n_tokens + KV_PAGE_TOKENS;
    return kv_pages_for(n < q->request->limit ? n : q->request->limit);
}

static int pages_promised(const struct scheduler *s) {
    int n = 0;
    for (int i = 0; i < s->n_sequences; i++)
        if (sequence_runs(s->sequences[i])) n += pages_wanted(s->sequences[i]) - s->sequences[i]->kv.n_pages;
    return n;
}

int admission_take(struct scheduler *s, struct kv_sequence *kv, int n_pages) {
    const int room = s->cache.n_free + s->cache.n_cached - pages_promised(s);
    const int n = n_pages < room ? n_pages : room;
    if (n <= 0) return 0;
    struct kv_copy copy; // none: the last page is full
    while (!kv_cache_append(&s->cache, kv, n * KV_PAGE_TOKENS, &copy))
        if (!prefix_evict(&s->prefixes)) return 0;
    return n;
}

// With q's shared pages in hand: are the others it needs free, or cached?
static bool fits(const struct scheduler *s, const struct sequence *q) {
    bool copies = q->kv.n_tokens % KV_PAGE_TOKENS != 0;
    int needed = pages_wanted(q) - q->kv.n_pages + copies;
    return needed + pages_promised(s) <= s->cache.n_free + s->cache.n_cached - pages_kept_from(s, q);
}

// ---- admission ----

// Where most of a sequence's tokens are to be had. Those of which more is wanted are left to compute.
struct source {
    struct prefix_match cached;
    const struct sequence *running; // has computed `n` of them, more than are in the index; NULL: none
    int n;
    struct sequence *coming; // will have computed n_coming of them; NULL: none
    int n_coming;
};

static struct source find_source(const struct scheduler *s, const struct sequence *q) {
    const int n = sequence_silent(q);
    struct source found = {.cached = prefix_find(&s->prefixes, q->tokens, n)};
    found.n = found.cached.n_tokens;
    for (int i = 0; i < s->n_sequences; i++) {
        struct sequence *other = s->sequences[i];
        if (!sequence_runs(other) || other->request->forgotten) continue;
        const int common = prefix_common(other->tokens, other->n_tokens, q->tokens, n);
        const int computed = sequence_computed(other) < common ? sequence_computed(other) : common;
        if (computed > found.n) found.running = other, found.n = computed;
        const bool soon = q->request->read_ahead || !other->request->read_ahead;
        if (other->state == REQUEST_PREFILLING && soon && common > found.n_coming)
            found.coming = other, found.n_coming = common;
    }
    return found;
}

static enum outcome admit(struct scheduler *s, struct sequence *q) {
    if (q->waits_for && sequence_computed(q->waits_for) < q->waits_until) return WAITS;
    q->waits_for = NULL;
    if (s->n_running == s->max_running) return NO_ROOM;
    struct source found = find_source(s, q);
    if (hibernation_wakes(s, q, found.n > found.n_coming ? found.n : found.n_coming)) return WAITS;
    if (found.n_coming >= found.n + WORTH_WAITING) {
        q->waits_for = found.coming;
        q->waits_until = found.n_coming;
        return WAITS;
    }
    const uint64_t owner = q->request->conversation;
    if (found.running) q->kv = kv_cache_fork(&s->cache, found.running->kv.pages, found.n, owner);
    else if (q->request->read_ahead) q->kv = prefix_fork_ahead(&s->prefixes, &found.cached, owner);
    else q->kv = prefix_fork(&s->prefixes, &found.cached, owner);
    // A partly shared page holds its original back while the copy is made: where space is short do without it.
    if (!fits(s, q)) kv_cache_truncate(&s->cache, &q->kv, found.n / KV_PAGE_TOKENS * KV_PAGE_TOKENS);
    if (!fits(s, q)) {
        kv_cache_release(&s->cache, &q->kv);
        return NO_ROOM;
    }
    if (sequence_generated(q) <= q->request->n_begun) q->n_reused = q->kv.n_tokens;
    if (!q->request->read_ahead) s->metrics->reused_tokens += (uint64_t)q->kv.n_tokens;
    s->n_running++;
    scheduler_enter(s, q, REQUEST_PREFILLING, "");
    return ADMITTED;
}

// A person takes the place of other programs, the conversation in focus that of the others.
static bool displaces(const struct scheduler *s, const struct sequence *q, const struct sequence *victim) {
    if (q->request->background != victim->request->background) return victim->request->background;
    return q->request->conversation == s->focus && victim->request->conversation != s->focus;
}

// Everybody takes the place of what is read ahead.
static enum outcome admit_first(struct scheduler *s, struct sequence *q) {
    enum outcome outcome;
    while ((outcome = admit(s, q)) == NO_ROOM) {
        if (q->request->read_ahead) break;
        if (admission_yield(s)) continue;
        struct sequence *victim = last_running(s);
        if (!victim || !displaces(s, q, victim)) break;
        preempt(s, victim);
    }
    return outcome;
}

void admission_run(struct scheduler *s) {
    for (int i = 0; i < s->n_sequences; i++) // whoever finds no room is not overtaken
        if (s->sequences[i]->state == REQUEST_PENDING && admit_first(s, s->sequences[i]) == NO_ROOM) return;
}
