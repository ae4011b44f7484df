// The scheduler's side of hibernation: which texts go to the disk, and which come back from it.
//
// A text rests when its sequence ends. After a while, if its pages are still in the prefix index, those that the disk
// does not have are read out, some at a time, between steps. Whoever asks for a text of which the disk has more than
// the KV cache waits, stays pending, while the pages are read, where that is sooner than to compute them; they go into
// the prefix index, in which admission then finds them like any others.
#include "engine/serve/scheduler_hibernate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/serve/hibernate_key.h"
#include "engine/serve/scheduler_state.h"

#define FILE_BYTES    ((uint64_t)16 << 20)  // of a file, and of what is loaded at a time
#define STEP_BYTES    ((uint64_t)4 << 20)   // that are read out between two steps
#define BACKLOG_BYTES ((uint64_t)64 << 20)  // that wait to be written, at most
#define END_BYTES     ((uint64_t)512 << 20) // that are read out at the end
#define READ_RATE     5e8                   // bytes a second, until it is measured

enum {
    MOST_RESTS = 64,
    WORTH_PAGES = 2, // fewer are computed again sooner than waited for
};

struct wake { // a text that is being loaded
    uint64_t fingerprint, conversation;
    int32_t *tokens;     // [n_pages × KV_PAGE_TOKENS]
    int n_pages;         // that may be on the disk
    int n_known, n_done; // that were in the KV cache before, and that are
    int n_waiting;       // sequences
    bool forgotten;      // its conversation is deleted: nothing goes into the prefix index
    double begun;
    struct wake *next;
};

static uint64_t page_bytes(const struct scheduler *s) { return scheduler_backend(s)->page_bytes; }

static int pages_in(const struct scheduler *s, uint64_t bytes) {
    const uint64_t n = bytes / page_bytes(s);
    return n < 1 ? 1 : n > HIBERNATION_MOST_PAGES ? HIBERNATION_MOST_PAGES : (int)n;
}

static int least(int a, int b) { return a < b ? a : b; }

static bool same_tokens(const int32_t *a, const int32_t *b, int n_pages) {
    return !memcmp(a, b, (size_t)n_pages * KV_PAGE_TOKENS * sizeof *a);
}

static int32_t *copy_tokens(const int32_t *tokens, int n_pages) {
    const size_t bytes = (size_t)n_pages * KV_PAGE_TOKENS * sizeof *tokens;
    return memcpy(xmalloc(bytes), tokens, bytes);
}

void hibernation_renew(struct scheduler *s) {
    struct hibernation *h = &s->hibernation;
    if (h->store) h->fingerprint = hibernate_fingerprint(h->model_key, scheduler_backend(s));
}

void hibernation_open(struct scheduler *s, const struct hibernation_params *p) {
    s->hibernation = (struct hibernation){.store = p->store,
                                          .model_key = p->model_key,
                                          .delay = p->delay,
                                          .worth_seconds = p->worth_seconds,
                                          .read_rate = READ_RATE};
    if (!page_bytes(s)) s->hibernation.store = NULL;
    hibernation_renew(s);
}

static void drop_rest(struct hibernation *h, int at) {
    free(h->rests[at].tokens);
    memmove(h->rests + at, h->rests + at + 1, (size_t)(--h->n_rests - at) * sizeof *h->rests);
}

static void wake_free(struct wake *w) {
    free(w->tokens);
    free(w);
}

void hibernation_close(struct scheduler *s) {
    struct hibernation *h = &s->hibernation;
    while (h->n_rests) drop_rest(h, 0);
    free(h->rests);
    if (h->making) hibernate_job_free(h->making);
    for (struct wake *w; (w = h->wakes);) {
        h->wakes = w->next;
        wake_free(w);
    }
}

// ---- going to sleep ----

// Whether a text took so long to compute that it is worth the disk. Where nobody knows how long it is.
static bool worth_saving(const struct scheduler *s, int n_pages) {
    const double row = s->speed.prompt_row;
    return n_pages >= WORTH_PAGES && (row <= 0 || n_pages * KV_PAGE_TOKENS * row >= s->hibernation.worth_seconds);
}

void hibernation_rest(struct scheduler *s, const struct sequence *q) {
    struct hibernation *h = &s->hibernation;
    const int n = least(sequence_computed(q), q->n_tokens) / KV_PAGE_TOKENS;
    if (!h->store || !q->request->disk_owner || !worth_saving(s, n)) return;
    for (int i = h->n_rests - 1; i >= 0; i--) { // an earlier turn of the same text
        const struct hibernation_rest *r = &h->rests[i];
        if (r->n_pages <= n && same_tokens(r->tokens, q->tokens, r->n_pages)) drop_rest(h, i);
    }
    if (!h->rests) h->rests = xcalloc(MOST_RESTS, sizeof *h->rests);
    if (h->n_rests == MOST_RESTS) drop_rest(h, 0);
    h->rests[h->n_rests++] = (struct hibernation_rest){.conversation = q->request->conversation,
                                                       .owner = q->request->disk_owner,
                                                       .due = clock_seconds() + h->delay,
                                                       .tokens = copy_tokens(q->tokens, n),
                                                       .n_pages = n};
}

// A job for the first pages of a text that the disk does not have; NULL: it has all.
static struct hibernate_job *next_save(struct scheduler *s, struct hibernation_rest *r) {
    struct hibernation *h = &s->hibernation;
    enum hibernate_page *there = xcalloc((size_t)r->n_pages, sizeof *there);
    hibernate_look(h->store, h->fingerprint, r->tokens, r->n_pages, there);
    int first = r->n_done, end;
    while (first < r->n_pages && there[first] != HIBERNATE_ABSENT) first++;
    for (end = first; end < r->n_pages && there[end] == HIBERNATE_ABSENT; end++) continue;
    free(there);
    if (first == r->n_pages) return NULL;
    struct hibernate_job *job = xcalloc(1, sizeof *job);
    *job = (struct hibernate_job){.kind = HIBERNATE_SAVE,
                                  .fingerprint = h->fingerprint,
                                  .owner = r->owner,
                                  .conversation = r->conversation,
                                  .first = first,
                                  .n_pages = least(end - first, pages_in(s, FILE_BYTES)),
                                  .page_bytes = page_bytes(s)};
    r->n_done = first + job->n_pages;
    job->tokens = copy_tokens(r->tokens, r->n_done);
    job->data = xmalloc((size_t)job->n_pages * job->page_bytes);
    return job;
}

// Reads some pages out. False when no more of them are in the KV cache, or the device failed: pages of the one that
// took its place are others, and of another size.
static bool read_out(struct scheduler *s, struct hibernate_job *job) {
    if (job->fingerprint != s->hibernation.fingerprint) return false;
    const int from = job->first + job->n_done;
    const struct prefix_match match =
        prefix_find(&s->prefixes, job->tokens, (job->first + job->n_pages) * KV_PAGE_TOKENS);
    const int n =
        least(match.n_tokens / KV_PAGE_TOKENS - from, least(job->n_pages - job->n_done, pages_in(s, STEP_BYTES)));
    if (n <= 0) return false;
    int32_t *pages = prefix_pages(&s->prefixes, &match);
    struct page_transfer *reads = xmalloc((size_t)n * sizeof *reads);
    for (int i = 0; i < n; i++)
        reads[i] = (struct page_transfer){pages[from + i], job->data + (uint64_t)(job->n_done + i) * job->page_bytes};
    struct batch batch = {.n_reads = n, .reads = reads};
    struct backend_result result;
    struct status st = {0};
    bool lost;
    const bool ok = scheduler_run(s, &batch, &result, &lost, &st);
    if (ok) job->n_done += n;
    free(pages);
    free(reads);
    return ok;
}

static void hand_over(struct hibernation *h) {
    struct hibernate_job *job = h->making;
    h->making = NULL;
    job->n_pages = job->n_done;
    job->n_done = 0;
    if (!job->n_pages || job->fingerprint != h->fingerprint) hibernate_job_free(job);
    else hibernate_do(h->store, job);
}

// What is left of the text in the making is not in the KV cache any more.
static void drop_evicted(struct hibernation *h) {
    const struct hibernate_job *job = h->making;
    const int n = job->first + job->n_pages;
    for (int i = 0; i < h->n_rests; i++) {
        const struct hibernation_rest *r = &h->rests[i];
        if (r->n_pages < n || !same_tokens(r->tokens, job->tokens, n)) continue;
        drop_rest(h, i);
        return;
    }
}

// One piece of work for the text that has rested the longest.
static void save_some(struct scheduler *s) {
    struct hibernation *h = &s->hibernation;
    if (!h->making && !(h->making = next_save(s, &h->rests[0]))) {
        drop_rest(h, 0);
        return;
    }
    const bool more = read_out(s, h->making);
    if (!more) drop_evicted(h);
    if (!more || h->making->n_done == h->making->n_pages) hand_over(h);
}

double scheduler_hibernate_due(const struct scheduler *s) {
    const struct hibernation *h = &s->hibernation;
    if (!h->making && !h->n_rests) return HUGE_VAL;
    if (hibernate_backlog(h->store) > BACKLOG_BYTES) return HUGE_VAL; // it ends with a job
    return h->making ? 0 : h->rests[0].due;
}

bool scheduler_hibernate(struct scheduler *s) {
    if (scheduler_hibernate_due(s) > clock_seconds()) return false;
    save_some(s);
    return true;
}

void scheduler_hibernate_all(struct scheduler *s) {
    struct hibernation *h = &s->hibernation;
    while ((h->making || h->n_rests) && hibernate_backlog(h->store) < END_BYTES) save_some(s);
}

void hibernation_forget(struct scheduler *s, uint64_t conversation, uint64_t owner) {
    struct hibernation *h = &s->hibernation;
    if (!h->store || !owner) return;
    for (int i = h->n_rests - 1; i >= 0; i--)
        if (h->rests[i].conversation == conversation) drop_rest(h, i);
    for (struct wake *w = h->wakes; w; w = w->next) w->forgotten |= w->conversation == conversation;
    if (h->making && h->making->owner == owner) {
        hibernate_job_free(h->making);
        h->making = NULL;
    }
    struct hibernate_job *job = xcalloc(1, sizeof *job);
    *job = (struct hibernate_job){.kind = HIBERNATE_FORGET, .owner = owner, .conversation = conversation};
    hibernate_do(h->store, job);
}

// ---- waking up ----

static void load_next(struct scheduler *s, struct wake *w) {
    struct hibernate_job *job = xcalloc(1, sizeof *job);
    *job = (struct hibernate_job){.kind = HIBERNATE_LOAD,
                                  .fingerprint = w->fingerprint,
                                  .conversation = w->conversation,
                                  .first = w->n_done,
                                  .n_pages = least(w->n_pages - w->n_done, pages_in(s, FILE_BYTES)),
                                  .page_bytes = page_bytes(s),
                                  .context = w};
    job->tokens = copy_tokens(w->tokens, job->first + job->n_pages);
    hibernate_do(s->hibernation.store, job);
}

// Whoever waits for it goes on.
static void wake_end(struct scheduler *s, struct wake *w) {
    struct wake **at = &s->hibernation.wakes;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    for (int i = 0; i < s->n_sequences; i++)
        if (s->sequences[i]->wake == w) s->sequences[i]->wake = NULL;
    wake_free(w);
}

// One that may load more than n_known tokens of the sequence's.
static struct wake *wake_with(const struct scheduler *s, const struct sequence *q, int n_known) {
    for (struct wake *w = s->hibernation.wakes; w; w = w->next) {
        const int n = prefix_common(w->tokens, w->n_pages * KV_PAGE_TOKENS, q->tokens, q->n_tokens - 1);
        if (n >= n_known + WORTH_PAGES * KV_PAGE_TOKENS) return w;
    }
    return NULL;
}

static struct wake *wake_new(struct scheduler *s, const struct sequence *q, int known, int n_pages) {
    struct hibernation *h = &s->hibernation;
    struct wake *w = xcalloc(1, sizeof *w);
    *w = (struct wake){.fingerprint = h->fingerprint,
                       .conversation = q->request->conversation,
                       .tokens = copy_tokens(q->tokens, n_pages),
                       .n_pages = n_pages,
                       .n_done = known,
                       .n_known = known,
                       .begun = clock_seconds(),
                       .next = h->wakes};
    h->wakes = w;
    struct hibernate_job *job = xcalloc(1, sizeof *job);
    *job = (struct hibernate_job){.kind = HIBERNATE_LOOK, .conversation = w->conversation, .context = w};
    hibernate_do(h->store, job);
    return w;
}

bool hibernation_wakes(struct scheduler *s, struct sequence *q, int n_known) {
    const int n = (q->n_tokens - 1) / KV_PAGE_TOKENS, known = n_known / KV_PAGE_TOKENS;
    if (q->wake) return true;
    const bool may_look = s->hibernation.store && !q->looked && q->request->disk_owner && !q->request->forgotten;
    if (!may_look || n < known + WORTH_PAGES) return false;
    if (!(q->wake = wake_with(s, q, n_known))) {
        q->wake = wake_new(s, q, known, n);
        q->looked = true;
    }
    q->wake->n_waiting++;
    return true;
}

void hibernation_leave(struct sequence *q) {
    if (q->wake) q->wake->n_waiting--;
    q->wake = NULL;
}

static void mark_saved(struct scheduler *s, const int32_t *tokens, int first, int n_pages) {
    const struct prefix_match match = prefix_find(&s->prefixes, tokens, (first + n_pages) * KV_PAGE_TOKENS);
    int32_t *pages = prefix_pages(&s->prefixes, &match);
    for (int i = first; i < match.n_tokens / KV_PAGE_TOKENS; i++) s->prefixes.nodes[pages[i]].saved = true;
    free(pages);
}

// Copies that wait for the next batch may read pages that are taken now; writes come before them.
static bool write_in(struct scheduler *s, const struct page_transfer *writes, int n) {
    struct batch copies = {0}, batch = {.n_writes = n, .writes = writes};
    struct backend_result result;
    struct status st = {0};
    bool lost;
    return (!s->n_copies || scheduler_run(s, &copies, &result, &lost, &st)) &&
           scheduler_run(s, &batch, &result, &lost, &st);
}

// Takes the loaded pages into the prefix index, as far as there is room; how many.
static int take_in(struct scheduler *s, struct wake *w, const struct hibernate_job *job) {
    const int first = job->first, known = first * KV_PAGE_TOKENS;
    struct prefix_match match = prefix_find(&s->prefixes, w->tokens, known);
    if (match.n_tokens < known) return 0; // those before them were evicted
    struct kv_sequence kv = prefix_fork(&s->prefixes, &match, w->conversation);
    int n = admission_take(s, &kv, job->n_done);
    struct page_transfer *writes = xmalloc(((size_t)n + 1) * sizeof *writes);
    for (int i = 0; i < n; i++)
        writes[i] = (struct page_transfer){kv.pages[first + i], job->data + (uint64_t)i * job->page_bytes};
    if (n && write_in(s, writes, n)) prefix_add(&s->prefixes, &kv, w->tokens, (first + n) * KV_PAGE_TOKENS);
    else n = 0;
    kv_cache_release(&s->cache, &kv);
    mark_saved(s, w->tokens, first, n);
    free(writes);
    return n;
}

static void note_rate(struct hibernation *h, const struct hibernate_job *job) {
    const double bytes = (double)job->n_done * (double)job->page_bytes;
    if (job->n_done && job->seconds > 0) h->read_rate = 0.7 * h->read_rate + 0.3 * bytes / job->seconds;
}

// How many pages the disk has, without a gap behind those that are known.
static int pages_on_disk(const struct scheduler *s, const struct wake *w) {
    enum hibernate_page *there = xcalloc((size_t)w->n_pages, sizeof *there);
    hibernate_look(s->hibernation.store, w->fingerprint, w->tokens, w->n_pages, there);
    int end = w->n_done;
    while (end < w->n_pages && there[end] == HIBERNATE_THERE) end++;
    free(there);
    return end;
}

static bool sooner_than_computed(const struct scheduler *s, int n_pages) {
    const double seconds = (double)n_pages * (double)page_bytes(s) / s->hibernation.read_rate;
    return s->speed.prompt_row <= 0 || seconds < n_pages * KV_PAGE_TOKENS * s->speed.prompt_row;
}

static bool is_wanted(const struct scheduler *s, const struct wake *w) {
    return w->n_waiting && !w->forgotten && w->fingerprint == s->hibernation.fingerprint;
}

static void looked(struct scheduler *s, struct wake *w) {
    w->n_pages = pages_on_disk(s, w);
    const int n = w->n_pages - w->n_done;
    if (is_wanted(s, w) && n >= WORTH_PAGES && sooner_than_computed(s, n)) load_next(s, w);
    else wake_end(s, w);
}

static void loaded(struct scheduler *s, const struct hibernate_job *job) {
    struct hibernation *h = &s->hibernation;
    struct wake *w = job->context;
    note_rate(h, job);
    const int n = is_wanted(s, w) ? take_in(s, w, job) : 0;
    w->n_done += n;
    h->woken_tokens += n * KV_PAGE_TOKENS;
    if (n == job->n_pages && w->n_done < w->n_pages) {
        load_next(s, w);
        return;
    }
    if (w->n_done > w->n_known)
        log_info("kv", "%d tokens of a conversation read from disk (%.0f ms)",
                 (w->n_done - w->n_known) * KV_PAGE_TOKENS, 1e3 * (clock_seconds() - w->begun));
    wake_end(s, w);
}

void scheduler_hibernated(struct scheduler *s, struct hibernate_job *job) {
    if (job->kind == HIBERNATE_LOOK) looked(s, job->context);
    if (job->kind == HIBERNATE_LOAD) loaded(s, job);
    if (job->kind == HIBERNATE_SAVE && job->n_done && job->fingerprint == s->hibernation.fingerprint)
        mark_saved(s, job->tokens, job->first, job->n_done);
    hibernate_job_free(job);
}

void hibernation_metrics(const struct scheduler *s, struct engine_metrics *out) {
    const struct hibernation *h = &s->hibernation;
    struct hibernate_usage usage = {0};
    if (h->store) usage = hibernate_usage(h->store);
    out->disk_bytes = (int64_t)usage.bytes;
    out->disk_budget = (int64_t)usage.budget;
    out->woken_tokens = h->woken_tokens;
}
