#include "engine/serve/sequence.h"

#include <assert.h>
#include <string.h>

bool sequence_reserve(struct sequence *q, struct kv_cache *c, int n, struct kv_copy *copy) {
    assert(n <= sequence_missing(q));
    if (!kv_cache_append(c, &q->kv, n, copy)) return false;
    q->n_rows += n;
    return true;
}

void sequence_advance(struct sequence *q) { q->n_rows = 0; }

void sequence_propose(struct sequence *q, const int32_t *tokens, int n) {
    assert(q->n_tokens + q->n_proposed + n <= q->request->limit);
    memcpy(q->tokens + q->n_tokens + q->n_proposed, tokens, (size_t)n * sizeof *tokens);
    q->n_proposed += n;
}

void sequence_withdraw(struct sequence *q) {
    const int with_slots = q->kv.n_tokens - q->n_tokens;
    q->n_proposed = with_slots > 0 ? with_slots : 0;
}

void sequence_accept(struct sequence *q, struct kv_cache *c, int n) {
    assert(!q->n_rows && n <= q->n_proposed);
    q->n_tokens += n;
    q->n_proposed = 0;
    if (q->kv.n_tokens > q->n_tokens) kv_cache_truncate(c, &q->kv, q->n_tokens);
}

void sequence_take_back(struct sequence *q, struct kv_cache *c) {
    int computed = sequence_computed(q);
    q->n_proposed = 0;
    kv_cache_truncate(c, &q->kv, computed < q->n_tokens ? computed : q->n_tokens);
    q->n_rows = 0;
}
