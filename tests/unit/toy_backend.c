#include "tests/unit/toy_backend.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/thread_pool.h"

struct toy_slot {
    int32_t token, position;
};

enum { PAGE_BYTES = KV_PAGE_TOKENS * sizeof(struct toy_slot) };

struct backend {
    struct backend_params params;
    int n_vocab;
    struct toy_slot *slots; // [n_pages × KV_PAGE_TOKENS]
    float *logits;          // [max_logits, n_vocab]
    struct thread_pool *pool;
    struct backend_info info;
};

struct toy_controls toy = {.poison = -1, .likely = -1, .allowed = -1};

void toy_reset(void) {
    toy.poison = toy.likely = toy.allowed = -1;
    toy.fail_runs = toy.step_delay = toy.patience = toy.habit = toy.run_ns = toy.row_ns = 0;
    clock_freeze(0);
    toy.runs = toy.given_up = toy.copies = toy.most_rows = toy.most_segments = 0;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t hash_slot(uint64_t hash, struct toy_slot s) {
    return mix(hash + 0x9e3779b97f4a7c15u + (uint64_t)(uint32_t)s.token * 0x10001u +
               ((uint64_t)(uint32_t)s.position << 40));
}

static void logits_of(uint64_t hash, int32_t last, bool poisoned, int n_vocab, float *logits) {
    for (int i = 0; i < n_vocab; i++)
        logits[i] = (float)(mix(hash + (uint64_t)i * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24f * 8 - 4;
    if (toy.habit && hash % (uint64_t)toy.habit) logits[(last * 5 + 1) % n_vocab] += 9;
    if (toy.likely >= 0) logits[toy.likely] = 30;
    if (poisoned) logits[n_vocab / 2] = NAN;
}

void toy_logits(const int32_t *tokens, int n, int n_vocab, float *logits) {
    uint64_t hash = 1;
    bool poisoned = false;
    for (int i = 0; i < n; i++) {
        hash = hash_slot(hash, (struct toy_slot){tokens[i], i});
        poisoned |= tokens[i] == toy.poison;
    }
    logits_of(hash, tokens[n - 1], poisoned, n_vocab, logits);
}

void toy_continue(const int32_t *prompt, int n, int n_vocab, int32_t *out, int count) {
    int32_t *tokens = xmalloc((size_t)(n + count) * sizeof *tokens);
    float *logits = xmalloc((size_t)n_vocab * sizeof *logits);
    memcpy(tokens, prompt, (size_t)n * sizeof *tokens);
    for (int k = 0; k < count; k++) {
        toy_logits(tokens, n + k, n_vocab, logits);
        int best = 0;
        for (int i = 1; i < n_vocab; i++)
            if (logits[i] > logits[best]) best = i;
        tokens[n + k] = out[k] = best;
    }
    free(tokens);
    free(logits);
}

static bool toy_measure(const struct backend_params *params, struct backend_memory *out, struct status *st) {
    (void)st;
    *out = (struct backend_memory){.kv = (uint64_t)params->n_pages * KV_PAGE_TOKENS * sizeof(struct toy_slot)};
    return true;
}

static struct backend *toy_open(const struct backend_params *params, struct status *st) {
    struct thread_pool *pool = thread_pool_open(2, st);
    if (!pool) return NULL;
    struct backend *b = xcalloc(1, sizeof *b);
    b->params = *params;
    b->pool = pool;
    b->info = (struct backend_info){.description = "toy",
                                    .page_layout = "toy",
                                    .page_bytes = PAGE_BYTES,
                                    .n_threads = 2,
                                    .n_workers = 2,
                                    .rows_equal = true};
    b->n_vocab = params->model->spec.n_vocab;
    b->slots = xcalloc((size_t)params->n_pages * KV_PAGE_TOKENS, sizeof *b->slots);
    b->logits = xcalloc((size_t)params->max_logits * (size_t)b->n_vocab, sizeof *b->logits);
    return b;
}

static void toy_close(struct backend *b) {
    thread_pool_close(b->pool);
    free(b->slots);
    free(b->logits);
    free(b);
}

static bool toy_repack(struct backend *b) {
    (void)b;
    return false;
}

static struct toy_slot *slot_at(struct backend *b, const struct batch_segment *s, int position) {
    int32_t page = s->pages[position / KV_PAGE_TOKENS];
    assert(page >= 0 && page < b->params.n_pages);
    return &b->slots[page * KV_PAGE_TOKENS + position % KV_PAGE_TOKENS];
}

// What backend.h promises about a batch.
static void check_batch(const struct backend *b, const struct batch *batch) {
    assert(batch->n_rows >= 0 && batch->n_rows <= b->params.max_rows);
    int row = 0, n_logits = 0;
    for (int i = 0; i < batch->n_segments; i++) {
        assert(batch->segments[i].first_row == row && batch->segments[i].n_rows >= 1);
        row += batch->segments[i].n_rows;
    }
    assert(row == batch->n_rows);
    for (int i = 0; i < batch->n_rows; i++) {
        assert(batch->rows[i].token >= 0 && batch->rows[i].token < b->n_vocab);
        n_logits += batch->rows[i].output == ROW_LOGITS;
    }
    assert(n_logits <= b->params.max_logits);
}

static const struct batch_segment *segment_of(const struct batch *batch, int row) {
    const struct batch_segment *s = batch->segments;
    while (row >= s->first_row + s->n_rows) s++;
    return s;
}

static void row_logits(struct backend *b, const struct batch *batch, int row, float *logits) {
    const struct batch_segment *s = segment_of(batch, row);
    uint64_t hash = 1;
    bool poisoned = false;
    const int last = s->position + row - s->first_row;
    for (int p = 0; p <= last; p++) {
        hash = hash_slot(hash, *slot_at(b, s, p));
        poisoned |= slot_at(b, s, p)->token == toy.poison;
    }
    logits_of(hash, slot_at(b, s, last)->token, poisoned, b->n_vocab, logits);
}

// Whether the batch is given up, within the toy's patience.
static bool given_up(const struct batch *batch) {
    if (!batch->stop) return false;
    for (int left = toy.patience;; left--) {
        if (batch->stop(batch->stop_context)) break;
        if (left <= 0) return false;
        usleep(1000);
    }
    toy.given_up++;
    return true;
}

static void spoil(struct backend *b, const struct batch_segment *s) {
    for (int k = 0; k < s->n_rows; k++) *slot_at(b, s, s->position + k) = (struct toy_slot){-1, -1};
}

static void copy_page(struct backend *b, const struct page_copy *c) {
    toy.copies++;
    memcpy(&b->slots[c->to * KV_PAGE_TOKENS], &b->slots[c->from * KV_PAGE_TOKENS], KV_PAGE_TOKENS * sizeof *b->slots);
}

static void transfer_pages(struct backend *b, const struct batch *batch) {
    for (int i = 0; i < batch->n_reads; i++)
        memcpy(batch->reads[i].data, &b->slots[batch->reads[i].page * KV_PAGE_TOKENS], PAGE_BYTES);
    for (int i = 0; i < batch->n_writes; i++)
        memcpy(&b->slots[batch->writes[i].page * KV_PAGE_TOKENS], batch->writes[i].data, PAGE_BYTES);
}

static bool toy_run(struct backend *b, const struct batch *batch, struct backend_result *out, struct status *st) {
    check_batch(b, batch);
    toy.runs++;
    if (batch->n_rows > toy.most_rows) toy.most_rows = batch->n_rows;
    if (batch->n_segments > toy.most_segments) toy.most_segments = batch->n_segments;
    if (toy.run_ns) clock_freeze(clock_ns() + (uint64_t)(toy.run_ns + batch->n_rows * toy.row_ns));
    if (toy.step_delay) usleep((useconds_t)toy.step_delay);
    while (toy.allowed >= 0 && toy.runs > toy.allowed) usleep(1000);
    if (toy.fail_runs > 0) {
        toy.fail_runs--;
        return status_fail(st, STATUS_DEVICE, "toy: the device is lost");
    }
    transfer_pages(b, batch);
    for (int i = 0; i < batch->n_copies; i++) copy_page(b, &batch->copies[i]);
    if (given_up(batch)) {
        for (int i = 0; i < batch->n_segments; i++) spoil(b, &batch->segments[i]);
        return status_fail(st, STATUS_CANCELLED, "toy: given up");
    }
    *out = (struct backend_result){.logits = b->logits};
    for (int i = 0; i < batch->n_segments; i++) {
        const struct batch_segment *s = &batch->segments[i];
        for (int k = 0; k < s->n_rows; k++)
            *slot_at(b, s, s->position + k) = (struct toy_slot){batch->rows[s->first_row + k].token, s->position + k};
    }
    float *logits = b->logits;
    for (int i = 0; i < batch->n_rows; i++) {
        if (!batch->rows[i].output) continue;
        row_logits(b, batch, i, logits);
        logits += b->n_vocab;
    }
    const double rows = batch->n_rows;
    out->work.stages[STAGE_ATTEND] = (struct stage_work){1e-4, 1000 * rows, 2000 * rows};
    out->work.stages[STAGE_FEED] = (struct stage_work){3e-4, 5000 * rows, 7000 * rows};
    return true;
}

struct toy_loop {
    int n;
    void (*item)(void *context, int i, int worker);
    void *context;
};

static void run_loop(struct worker *w, void *argument) {
    const struct toy_loop *loop = argument;
    for (int i = w->index; i < loop->n; i += w->count) loop->item(loop->context, i, w->index);
}

static void toy_for_each(struct backend *b, int n, void (*item)(void *context, int i, int worker), void *context) {
    thread_pool_run(b->pool, run_loop, &(struct toy_loop){n, item, context});
}

static int toy_devices(struct device *out, int most) {
    if (most > 0) *out = (struct device){.name = "toy"};
    return most > 0;
}

static void toy_heaps(int device, struct device *out) { (void)device, (void)out; }

static const struct backend_info *toy_info(const struct backend *b) { return &b->info; }

const struct backend_ops toy_backend = {
    .name = "toy",
    .devices = toy_devices,
    .heaps = toy_heaps,
    .measure = toy_measure,
    .open = toy_open,
    .close = toy_close,
    .repack = toy_repack,
    .run = toy_run,
    .for_each = toy_for_each,
    .info = toy_info,
};
