#include "engine/serve/drafter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/serve/row.h"

enum {
    MOST_READ = 64, // tokens of prompts in a call
    FEW = 2,        // which all have after a step
    MOST_ROWS = MOST_READ + FEW * DRAFTER_TEXTS
};
#define LEAST_CHANCE 0.25f // of all that was written so far: further on it is not worth the time

struct drafter {
    struct placement *placement;
    int context, n_vocab, n_said; // n_said: of the vocabulary, that may be written
    struct kv_cache cache;
    struct prefix_index prefixes;
    const struct row_kernels *kernels;
    float *block_max;
    struct batch_row rows[MOST_ROWS];
    struct batch_segment segments[DRAFTER_TEXTS];
    struct page_copy copies[DRAFTER_TEXTS];
};

struct drafter *drafter_open(const struct drafter_params *p, struct status *st) {
    const struct backend_params params = {.model = p->model,
                                          .n_threads = p->n_threads,
                                          .n_pages = p->n_pages,
                                          .context = p->context,
                                          .asked_context = p->asked_context,
                                          .max_rows = MOST_ROWS,
                                          .max_logits = DRAFTER_TEXTS,
                                          .options = p->options};
    struct drafter *w = xcalloc(1, sizeof *w);
    if (!(w->placement = placement_open(&p->placement, &params, st))) {
        free(w);
        return NULL;
    }
    w->context = p->context;
    w->n_vocab = p->model->spec.n_vocab;
    w->n_said = p->n_vocab < w->n_vocab ? p->n_vocab : w->n_vocab;
    w->kernels = row_kernels_for(instruction_set_choose());
    w->block_max = xcalloc((size_t)row_blocks(w->n_vocab), sizeof *w->block_max);
    kv_cache_open(&w->cache, p->n_pages);
    prefix_open(&w->prefixes, &w->cache);
    return w;
}

void drafter_close(struct drafter *w) {
    if (!w) return;
    prefix_close(&w->prefixes);
    kv_cache_close(&w->cache);
    placement_close(w->placement);
    free(w->block_max);
    free(w);
}

// ---- what is read ----

// Slots that hold what the text has: all but what was written and turned out otherwise.
static void keep_common(struct drafter *w, const struct drafter_text *t) {
    struct draft *d = t->draft;
    int n = d->n_read + prefix_common(d->written, d->n_written, t->tokens + d->n_read, t->n - d->n_read);
    if (n > t->n - 1) n = t->n - 1; // one at least is read, to go on from
    if (d->kv.n_tokens > n) kv_cache_truncate(&w->cache, &d->kv, n);
    d->n_written = 0;
    d->n_read = d->kv.n_tokens;
}

static void begin(struct drafter *w, const struct drafter_text *t) {
    const struct prefix_match match = prefix_find(&w->prefixes, t->tokens, t->n - 1);
    t->draft->kv = prefix_fork(&w->prefixes, &match, t->draft->kv.owner);
    t->draft->n_read = match.n_tokens;
    t->draft->n_written = 0;
}

// Rows for the next n tokens of a text; false where pages are short.
static bool add_rows(struct drafter *w, struct batch *b, struct draft *d, const int32_t *tokens, int n, bool logits) {
    struct kv_copy copy;
    const int position = d->kv.n_tokens;
    while (!kv_cache_append(&w->cache, &d->kv, n, &copy))
        if (!prefix_evict(&w->prefixes)) return false;
    if (copy.n_tokens) w->copies[b->n_copies++] = (struct page_copy){.to = copy.to, .from = copy.from};
    w->segments[b->n_segments++] =
        (struct batch_segment){.first_row = b->n_rows, .n_rows = n, .position = position, .pages = d->kv.pages};
    for (int i = 0; i < n; i++) w->rows[b->n_rows++] = (struct batch_row){.token = tokens[i]};
    if (logits) w->rows[b->n_rows - 1].output = ROW_LOGITS;
    return true;
}

// The likeliest token of a row, and its probability; −1 where the row holds no numbers.
static int32_t likeliest(const struct drafter *w, const float *logits, float *probability) {
    struct row r = {.logits = logits, .n = w->n_said, .block_max = w->block_max};
    if (!w->kernels->maxima(r.logits, r.n, r.block_max)) return -1;
    r.max = row_largest(r.block_max, row_blocks(r.n));
    if (r.max == -INFINITY) return -1;
    *probability = (float)(1 / w->kernels->sums(&r).weight);
    return row_equal_to(&r, r.max, 0);
}

// ---- writing ----

// One that goes on being written: its chance so far.
struct pen {
    const struct drafter_text *text;
    float chance;
    bool writes;
};

// Tokens up to one that only the larger vocabulary has: there it stops reading.
static int count_known(const struct drafter *w, const int32_t *tokens, int n) {
    int i = 0;
    while (i < n && tokens[i] < w->n_vocab) i++;
    return i;
}

// Reads what the texts have that it has not read. Those that are read to the end have logits, and write.
static bool read_texts(struct drafter *w, struct pen *pens, int n, struct backend_result *out, struct status *st) {
    struct batch b = {.rows = w->rows, .segments = w->segments, .copies = w->copies};
    int left = MOST_READ;
    for (int i = 0; i < n; i++) {
        const struct drafter_text *t = pens[i].text;
        struct draft *d = t->draft;
        if (t->n >= w->context) continue;
        if (d->kv.n_tokens) keep_common(w, t);
        else begin(w, t);
        int rows = t->n - d->n_read;
        if (rows > FEW && rows > left) rows = left;
        rows = count_known(w, t->tokens + d->n_read, rows);
        if (!rows) continue;
        pens[i].writes = rows == t->n - d->n_read;
        if (!add_rows(w, &b, d, t->tokens + d->n_read, rows, pens[i].writes)) {
            pens[i].writes = false;
            continue;
        }
        d->n_read += rows;
        if (rows > FEW) left -= rows;
    }
    return !b.n_rows || placement_run(w->placement, &b, out, st);
}

static bool go_on(struct drafter *w, struct pen *pens, int n, struct backend_result *out, struct status *st) {
    struct batch b = {.rows = w->rows, .segments = w->segments, .copies = w->copies};
    for (int i = 0; i < n; i++) {
        struct draft *d = pens[i].text->draft;
        if (!pens[i].writes) continue;
        const int32_t last = d->guess[d->n_guess - 1];
        pens[i].writes = d->kv.n_tokens < w->context && add_rows(w, &b, d, &last, 1, true);
        if (pens[i].writes) d->written[d->n_written++] = last;
    }
    return !b.n_rows || placement_run(w->placement, &b, out, st);
}

// A token more for each that writes, from the logits in their order.
static bool take_tokens(const struct drafter *w, struct pen *pens, int n, int most, const float *logits) {
    bool any = false;
    for (int i = 0; i < n; i++) {
        struct draft *d = pens[i].text->draft;
        float probability;
        if (!pens[i].writes) continue;
        const int32_t token = likeliest(w, logits, &probability);
        logits += w->n_vocab;
        if (d->match && token >= 0) d->n_guess = d->match = 0; // what was looked up stays where nothing is written
        if (token >= 0) draft_write(d, token, probability);
        if (token >= 0) pens[i].chance *= draft_chance(d, d->n_guess - 1);
        any |= pens[i].writes = token >= 0 && pens[i].chance >= LEAST_CHANCE && d->n_guess < most;
    }
    return any;
}

bool drafter_write(struct drafter *w, const struct drafter_text *texts, int n, int most, struct status *st) {
    struct pen pens[DRAFTER_TEXTS];
    struct backend_result result = {0};
    assert(n <= DRAFTER_TEXTS && most <= DRAFT_MOST);
    for (int i = 0; i < n; i++) pens[i] = (struct pen){.text = &texts[i], .chance = 1};
    if (!read_texts(w, pens, n, &result, st)) return false;
    while (take_tokens(w, pens, n, most, result.logits))
        if (!go_on(w, pens, n, &result, st)) return false;
    return true;
}

void drafter_leave(struct drafter *w, struct draft *d, const int32_t *tokens, int n, bool publish) {
    if (!d->kv.n_tokens) return;
    const struct drafter_text text = {.draft = d, .tokens = tokens, .n = n};
    keep_common(w, &text);
    if (publish) prefix_add(&w->prefixes, &d->kv, tokens, d->kv.n_tokens);
    kv_cache_release(&w->cache, &d->kv);
    d->n_read = d->n_written = 0;
}

void drafter_forget(struct drafter *w, uint64_t owner) { prefix_forget(&w->prefixes, owner); }
