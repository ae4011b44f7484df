#include <assert.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

#define STEP_SECONDS        2.5  // a prompt alone may hold the engine this long, unless the step is given up
#define STEP_SECONDS_SHARED 0.12 // the pause that prompt rows may put between the tokens of others
enum {
    SMALLEST_CHUNK = 16, // rows; fewer would not use the matrix kernels well
    FIRST_CHUNK = 128,   // while the machine's speed is not known
};

// ---- pages ----

static bool extend_once(struct scheduler *s, struct kv_sequence *kv, int n_tokens) {
    struct kv_copy copy;
    if (!kv_cache_append(&s->cache, kv, n_tokens, &copy)) return false;
    if (!copy.n_tokens) return true;
    if (s->n_copies == s->most_copies) {
        s->most_copies += 16;
        s->copies = xrealloc(s->copies, (size_t)s->most_copies * sizeof *s->copies);
    }
    s->copies[s->n_copies++] = (struct page_copy){.to = copy.to, .from = copy.from};
    return true;
}

bool plan_extend(struct scheduler *s, struct kv_sequence *kv, int n_tokens) {
    while (!extend_once(s, kv, n_tokens))
        if (!prefix_shrink(&s->prefixes)) return false;
    return true;
}

// What r has computed becomes a kept sequence: others take as much of it as they need, r finds the rest when it
// resumes.
static void preempt(struct scheduler *s, struct request *r) {
    int computed = r->forgotten ? 0 : request_computed(r);
    int32_t *tokens = xmalloc((size_t)(computed + 1) * sizeof *tokens);
    memcpy(tokens, r->tokens, (size_t)computed * sizeof *tokens);
    kv_cache_truncate(&s->cache, &r->kv, computed);
    prefix_keep(&s->prefixes, &r->kv, tokens);
    r->rows = 0;
    s->n_running--;
    s->figures->preemptions++;
    scheduler_enter(s, r, REQUEST_PENDING, "");
}

static struct request *last_running(const struct scheduler *s) {
    for (int i = s->n_requests - 1; i >= 0; i--)
        if (request_runs(s->requests[i])) return s->requests[i];
    return NULL;
}

// Gives r room for n more rows, pre-empting those served after it; false when r itself was the last and had to go.
static bool reserve(struct scheduler *s, struct request *r, int n) {
    while (!plan_extend(s, &r->kv, n)) {
        struct request *victim = last_running(s);
        assert(victim != r || s->n_running > 1); // alone it always fits: limit ≤ context ≤ the arena
        preempt(s, victim);
        if (victim == r) return false;
    }
    r->rows += n;
    return true;
}

// Pages r will need soon: for all that is known and a page to grow.
static int pages_wanted(const struct request *r) {
    int n = r->n_tokens + KV_PAGE_TOKENS;
    return kv_pages_for(n < r->limit ? n : r->limit);
}

static int pages_promised(const struct scheduler *s) {
    int n = 0;
    for (int i = 0; i < s->n_requests; i++)
        if (request_runs(s->requests[i])) n += pages_wanted(s->requests[i]) - s->requests[i]->kv.n_pages;
    return n;
}

// ---- admission ----

// The sequence, kept or running, that has most of r's tokens computed. At least one token is left to compute.
static const struct kv_sequence *longest_match(struct scheduler *s, const struct request *r, int *common) {
    int n = r->n_tokens - 1;
    struct prefix_entry *entry = prefix_find(&s->prefixes, r->tokens, n, common);
    const struct kv_sequence *best = entry ? &entry->kv : NULL;
    for (int i = 0; i < s->n_requests; i++) {
        const struct request *other = s->requests[i];
        if (!request_runs(other)) continue;
        int shared = prefix_common(other->tokens, request_computed(other), r->tokens, n);
        if (shared > *common) best = &other->kv, *common = shared, entry = NULL;
    }
    if (entry) prefix_touch(&s->prefixes, entry);
    return best;
}

// With r's shared pages in hand: are the others it needs free, or had from kept sequences?
static bool fits(const struct scheduler *s, const struct request *r) {
    bool copies = r->kv.n_tokens % KV_PAGE_TOKENS != 0;
    int needed = pages_wanted(r) - r->kv.n_pages + copies;
    return needed + pages_promised(s) <= s->cache.n_free + s->cache.n_kept;
}

static bool admit(struct scheduler *s, struct request *r) {
    if (s->n_running == SCHEDULER_MAX_RUNNING) return false;
    int common;
    const struct kv_sequence *match = longest_match(s, r, &common);
    if (match) r->kv = kv_cache_fork(&s->cache, match, common, r->conversation);
    // A partly shared page holds its original back while the copy is made: where space is short do without it.
    if (!fits(s, r)) kv_cache_truncate(&s->cache, &r->kv, common / KV_PAGE_TOKENS * KV_PAGE_TOKENS);
    if (!fits(s, r)) {
        kv_cache_release(&s->cache, &r->kv);
        return false;
    }
    if (!request_generated(r)) r->n_reused = r->kv.n_tokens;
    s->figures->reused_tokens += (uint64_t)r->kv.n_tokens;
    s->n_running++;
    scheduler_enter(s, r, REQUEST_PREFILLING, "");
    return true;
}

// The conversation in focus takes the place of others.
static bool admit_first(struct scheduler *s, struct request *r) {
    while (!admit(s, r)) {
        struct request *victim = last_running(s);
        if (r->conversation != s->focus || !victim || victim->conversation == s->focus) return false;
        preempt(s, victim);
    }
    return true;
}

// ---- rows ----

static void plan_decode_rows(struct scheduler *s) {
    for (int i = 0; i < s->n_requests; i++)
        if (s->requests[i]->state == REQUEST_DECODING) reserve(s, s->requests[i], 1);
}

static int chunk_size(const struct scheduler *s, bool others_decode) {
    if (s->seconds_per_row <= 0) return s->prefill_chunk < FIRST_CHUNK ? s->prefill_chunk : FIRST_CHUNK;
    double rows = (others_decode ? STEP_SECONDS_SHARED : STEP_SECONDS) / s->seconds_per_row;
    if (rows >= s->prefill_chunk) return s->prefill_chunk;
    int whole = (int)rows / SMALLEST_CHUNK * SMALLEST_CHUNK;
    int smallest = SMALLEST_CHUNK < s->prefill_chunk ? SMALLEST_CHUNK : s->prefill_chunk;
    return whole > smallest ? whole : smallest;
}

static bool any_decodes(const struct scheduler *s) {
    for (int i = 0; i < s->n_requests; i++)
        if (s->requests[i]->state == REQUEST_DECODING) return true;
    return false;
}

static void plan_prompt_rows(struct scheduler *s) {
    int left = chunk_size(s, any_decodes(s));
    bool admitting = true; // until one has to wait: nobody overtakes it
    for (int i = 0; i < s->n_requests && left > 0; i++) {
        struct request *r = s->requests[i];
        if (r->state == REQUEST_PENDING) admitting = admitting && admit_first(s, r);
        if (r->state != REQUEST_PREFILLING) continue;
        int n = r->n_tokens - r->kv.n_tokens;
        if (n > left) n = left;
        if (reserve(s, r, n)) left -= n;
        else admitting = false;
    }
}

static void build_batch(struct scheduler *s) {
    struct batch *b = &s->batch;
    *b = (struct batch){.rows = s->rows, .segments = s->segments};
    s->n_draws = s->decode_rows = 0;
    for (int i = 0; i < s->n_requests; i++) {
        struct request *r = s->requests[i];
        if (!r->rows) continue;
        int position = request_computed(r);
        s->segments[b->n_segments++] = (struct batch_segment){
            .first_row = b->n_rows, .n_rows = r->rows, .position = position, .pages = r->kv.pages};
        for (int k = 0; k < r->rows; k++)
            s->rows[b->n_rows++] = (struct batch_row){.token = r->tokens[position + k]};
        s->decode_rows += r->state == REQUEST_DECODING;
        if (r->kv.n_tokens < r->n_tokens) continue;
        s->draws[s->n_draws++].request = r;
        s->rows[b->n_rows - 1].output = ROW_LOGITS;
    }
    assert(b->n_rows <= s->max_rows && b->n_segments <= SCHEDULER_MAX_RUNNING);
    if (s->decode_rows) return; // a short step
    b->stop = s->events.stop;
    b->stop_context = s->events.context;
}

void plan_step(struct scheduler *s) {
    plan_decode_rows(s);
    plan_prompt_rows(s);
    build_batch(s);
}
