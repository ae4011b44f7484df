// Request: one answer in the making, owned by the scheduler.
//
//   pending ──► prefilling ──► decoding ──► finished
//      ▲             │             │    ├──► failed
//      └─────────────┴─ pre-empted ┘    └──► cancelled      (failed and cancelled from every state)
//
// tokens[0 .. n_tokens) is everything known, prompt and answer; the KV sequence holds the first kv.n_tokens of them.
// What lies between is to be computed: one token while decoding, the prompt while prefilling, prompt and answer after a
// pre-emption (as far as its pages were taken meanwhile). When all is computed the next token is drawn. Pre-emption
// takes pages and nothing else, the sampler goes on where it was, so that the text is the same.
#ifndef CONFAB_SERVE_REQUEST_H
#define CONFAB_SERVE_REQUEST_H

#include "engine/serve/kv_cache.h"
#include "engine/serve/sampler.h"

struct request {
    uint64_t id, conversation;
    enum request_state state;
    enum finish_reason reason;
    int32_t *tokens; // [limit]
    int n_tokens, n_prompt, n_reused;
    int limit;            // of n_tokens: the context, or what max_tokens allows
    bool limited_by_user; // by max_tokens
    bool forgotten;       // its conversation is deleted: nothing is kept
    struct kv_sequence kv;
    int rows; // of the batch in the making: the last ones of kv
    struct sampler sampler;
    double submitted, deadline; // seconds; deadline 0: none
    double last_token;          // when the last one was drawn
    double interval;            // between tokens, lately; without what it waited after a pre-emption
    void *owner;                // the caller's
};

static inline int request_generated(const struct request *r) {
    return r->n_tokens - r->n_prompt;
}
static inline int request_computed(const struct request *r) {
    return r->kv.n_tokens - r->rows;
}
static inline bool request_runs(const struct request *r) {
    return r->state == REQUEST_PREFILLING || r->state == REQUEST_DECODING;
}

#endif
