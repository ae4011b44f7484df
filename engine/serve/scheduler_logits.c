// Logits of a whole text.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/serve/scheduler_state.h"

bool scheduler_logits_start(const struct scheduler *s, struct scheduler_logits *l, struct status *st) {
    const int n = l->n;
    l->n_done = 0;
    l->kv = (struct kv_sequence){0};
    if (!scheduler_idle(s)) return status_fail(st, STATUS_USAGE, "%d requests are running", s->n_sequences);
    if (n < 1 || n > s->context) return status_fail(st, STATUS_LIMIT, "%d tokens; 1 to %d are possible", n, s->context);
    for (int i = 0; i < n; i++)
        if (l->ids[i] < 0 || l->ids[i] >= s->n_vocab)
            return status_fail(st, STATUS_USAGE, "token %d is %d, the vocabulary has %d", i, l->ids[i], s->n_vocab);
    return true;
}

static bool run_logits(struct scheduler *s, const struct scheduler_logits *l, int count, struct backend_result *out,
                       bool *lost, struct status *st) {
    for (int i = 0; i < count; i++)
        s->rows[i] = (struct batch_row){.token = l->ids[l->n_done + i], .output = ROW_LOGITS};
    const struct batch_segment segment = {.n_rows = count, .position = l->n_done, .pages = l->kv.pages};
    struct batch batch = {.n_rows = count,
                          .n_segments = 1,
                          .rows = s->rows,
                          .segments = &segment,
                          .stop = s->events.stop,
                          .stop_context = s->events.context};
    return scheduler_run(s, &batch, out, lost, st);
}

bool scheduler_logits_pass(struct scheduler *s, struct scheduler_logits *l, struct status *st) {
    const int left = l->n - l->n_done, count = left < s->max_draws ? left : s->max_draws;
    const size_t row = (size_t)s->n_vocab * sizeof *l->out;
    struct status failed = {0};
    struct kv_copy none; // no other sequence has its pages
    while (!kv_cache_append(&s->cache, &l->kv, count, &none))
        if (!prefix_evict(&s->prefixes)) return status_fail(st, STATUS_LIMIT, "no pages left");
    struct backend_result result;
    bool lost;
    if (!run_logits(s, l, count, &result, &lost, &failed)) {
        if (lost) l->n_done = 0; // from the beginning
        kv_cache_truncate(&s->cache, &l->kv, l->n_done);
        if (lost || failed.code == STATUS_CANCELLED) return true;
        if (st) *st = failed;
        return false;
    }
    memcpy(l->out + (size_t)l->n_done * (size_t)s->n_vocab, result.logits, (size_t)count * row);
    l->n_done += count;
    return true;
}

void scheduler_logits_end(struct scheduler *s, struct scheduler_logits *l) { kv_cache_release(&s->cache, &l->kv); }
