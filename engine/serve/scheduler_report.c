// What the scheduler says of itself: metrics, and whether its structures agree with each other.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

static struct request_metrics summary(const struct sequence *q) {
    const bool decodes = q->state == REQUEST_DECODING;
    return (struct request_metrics){.request = q->request->id,
                                    .conversation = q->request->conversation,
                                    .answer = q->answer,
                                    .state = q->state,
                                    .prefill_done = decodes ? q->request->n_prompt : sequence_computed(q),
                                    .prefill_total = decodes ? q->request->n_prompt : q->n_tokens,
                                    .n_generated = sequence_generated(q),
                                    .n_context = q->n_tokens,
                                    .n_drafted = q->n_drafted,
                                    .n_accepted = q->n_accepted,
                                    .tokens_per_second = decodes && q->interval > 0 ? (float)(1 / q->interval) : 0};
}

// What is read ahead nobody waits for; it is at the end.
static int count_requests(const struct scheduler *s) {
    int n = s->n_sequences;
    while (n && s->sequences[n - 1]->request->read_ahead) n--;
    return n;
}

void scheduler_metrics(const struct scheduler *s, struct engine_metrics *out) {
    const int n = count_requests(s);
    out->running = 0;
    for (int i = 0; i < n; i++) out->running += sequence_runs(s->sequences[i]);
    out->queue = n - out->running;
    out->batch_rows = scheduler_idle(s) ? 0 : s->batch.n_rows;
    out->batch_decode_rows = scheduler_idle(s) ? 0 : s->decode_rows;
    out->context = s->context;
    out->n_parts = placement_parts(s->placement, out->parts);
    out->page_tokens = KV_PAGE_TOKENS;
    out->n_pages = s->cache.n_pages;
    out->pages_free = s->cache.n_free;
    out->pages_kept = s->cache.n_cached;
    out->pages_used = s->cache.n_pages - s->cache.n_free - s->cache.n_cached;
    out->pages_shared = s->cache.n_shared;
    out->evictions = s->prefixes.evictions;
    hibernation_metrics(s, out);
    out->n_requests = n < METRICS_MAX_REQUESTS ? n : METRICS_MAX_REQUESTS;
    for (int i = 0; i < out->n_requests; i++) out->requests[i] = summary(s->sequences[i]);
    for (int i = 0; i < s->cache.n_pages && i < METRICS_MAX_PAGES; i++) {
        const struct kv_page *p = &s->cache.pages[i];
        const bool cached = p->indexed && !p->references;
        out->pages[i] = (struct page_metrics){
            .conversation = p->owner,
            .references = cached ? 1 : p->references,
            .filled = p->filled,
            .kept = cached,
            .on_disk = p->indexed && s->prefixes.nodes[i].saved,
            .proposed = p->drafted && p->drafted == (uint32_t)s->turn && !scheduler_idle(s)};
    }
}

void report_step(const struct scheduler *s, struct latency_moment *m) {
    int most = 0;
    m->rows = s->batch.n_rows;
    m->prompt_rows = s->batch.n_rows - s->decode_rows - s->draft_rows;
    m->usual = (float)speed_decode(&s->speed, s->decode_rows + s->draft_rows);
    for (int i = 0; m->prompt_rows && i < s->n_sequences; i++) {
        const struct sequence *q = s->sequences[i];
        if (q->state != REQUEST_PREFILLING || !q->n_rows) continue;
        m->n_readers++;
        if (q->n_rows > most) most = q->n_rows, m->reader = q->request->conversation;
    }
}

int scheduler_page(const struct scheduler *s, int page, int32_t *tokens, int *position) {
    const struct prefix_index *x = &s->prefixes;
    *position = 0;
    if (page < 0 || page >= s->cache.n_pages) return 0;
    for (int i = 0; i < s->n_sequences; i++) {
        const struct kv_sequence *kv = &s->sequences[i]->kv;
        for (int k = 0; k < kv->n_pages; k++) {
            if (kv->pages[k] != page) continue;
            const int first = *position = k * KV_PAGE_TOKENS, left = s->sequences[i]->n_tokens - first;
            const int n = left < KV_PAGE_TOKENS ? left : KV_PAGE_TOKENS;
            memcpy(tokens, s->sequences[i]->tokens + first, (size_t)n * sizeof *tokens);
            return n;
        }
    }
    if (!s->cache.pages[page].indexed) return 0;
    for (int at = x->nodes[page].parent; at != x->root; at = x->nodes[at].parent) *position += KV_PAGE_TOKENS;
    memcpy(tokens, x->nodes[page].tokens, (size_t)x->nodes[page].n_tokens * sizeof *tokens);
    return x->nodes[page].n_tokens;
}

// ---- check ----

static bool check_sequence(const struct scheduler *s, const struct sequence *q, struct status *st) {
    const int answer = q->answer;
    const unsigned long long id = q->request->id;
    if (q->n_proposed || q->n_rows || q->kv.n_tokens > q->n_tokens || q->n_tokens > q->request->limit)
        return status_fail(st, STATUS_LIMIT, "request %llu, answer %d: %d tokens, %d proposed; %d slots, %d rows", id,
                           answer, q->n_tokens, q->n_proposed, q->kv.n_tokens, q->n_rows);
    if (!sequence_runs(q) && q->kv.n_pages)
        return status_fail(st, STATUS_LIMIT, "request %llu, answer %d: pending on %d pages", id, answer, q->kv.n_pages);
    for (int i = 0; i < q->kv.n_pages; i++) { // what the index says of a page is what is in it
        const struct prefix_node *node = &s->prefixes.nodes[q->kv.pages[i]];
        const int32_t *tokens = q->tokens + i * KV_PAGE_TOKENS;
        int n = q->kv.n_tokens - i * KV_PAGE_TOKENS;
        if (n > node->n_tokens) n = node->n_tokens;
        if (memcmp(tokens, node->tokens, (size_t)n * sizeof *tokens))
            return status_fail(st, STATUS_LIMIT, "page %d: the index has other tokens than request %llu, answer %d",
                               q->kv.pages[i], id, answer);
    }
    return true;
}

// Whoever waits does so for one that runs and will get there.
static bool check_wait(const struct scheduler *s, const struct sequence *q, struct status *st) {
    if (!q->waits_for) return true;
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *other = s->sequences[i];
        if (other == q->waits_for && sequence_runs(other) && q->waits_until <= other->n_tokens &&
            q->state == REQUEST_PENDING &&
            prefix_common(q->tokens, q->waits_until, other->tokens, q->waits_until) == q->waits_until)
            return true;
    }
    return status_fail(st, STATUS_LIMIT, "request %llu waits for nothing", (unsigned long long)q->request->id);
}

static bool check_sequences(const struct scheduler *s, struct status *st) {
    int running = 0;
    for (int i = 0; i < s->n_sequences; i++) {
        const struct sequence *q = s->sequences[i];
        running += sequence_runs(q);
        if (i && !scheduler_before(s, s->sequences[i - 1], q))
            return status_fail(st, STATUS_LIMIT, "sequences %d and %d are out of order", i - 1, i);
        if (!check_sequence(s, q, st) || !check_wait(s, q, st)) return false;
    }
    if (running != s->n_running || running > s->max_running)
        return status_fail(st, STATUS_LIMIT, "%d sequences run, %d are counted", running, s->n_running);
    return true;
}

bool scheduler_check(const struct scheduler *s, struct status *st) {
    const struct kv_sequence **all = xcalloc((size_t)s->n_sequences + 1, sizeof(struct kv_sequence *));
    for (int i = 0; i < s->n_sequences; i++) all[i] = &s->sequences[i]->kv;
    bool ok = kv_cache_check(&s->cache, all, s->n_sequences, st);
    free(all);
    return ok && prefix_check(&s->prefixes, st) && check_sequences(s, st);
}
