// Sequence: one answer to a request in the making: its tokens, and which of them the KV cache holds.
//
//   pending ──► prefilling ──► decoding ──► finished
//      ▲             │             │    ├──► failed
//      └─────────────┴─ pre-empted ┘    └──► cancelled      (failed and cancelled from every state)
//
// Tokens are committed or only proposed, slots of the KV cache computed or rows of the step in the making:
//
//   tokens  [0 .. n_tokens) committed: prompt and answer so far  │  n_proposed more that may be taken back
//   slots   [0 .. sequence_computed) computed                    │  n_rows more of the step in the making
//
//              reserve, propose              advance                accept k
//   ┌► at rest ─────────────────► in a step ─────────► computed ──────────────┐  k proposed tokens are committed, the
//   │                                 │ take back          │ take back        │  others and their slots given back
//   └─────────────────────────────────┴────────────────────┴──────────────────┘
//
// At rest nothing is proposed and only committed tokens have slots. What is committed and not computed has to be: one
// token while decoding, the prompt while prefilling, prompt and answer after a pre-emption (as far as others took its
// pages). When all is computed the next token is drawn, proposed, and accepted unless it ends the answer. Drafts are
// proposed before the step: those that are drawn then, one by one, are accepted. Pre-emption
// takes back, gives pages away and changes nothing else: the sampler goes on where it was, so that the text is the
// same. Owned by the scheduler.
#ifndef CONFAB_SERVE_SEQUENCE_H
#define CONFAB_SERVE_SEQUENCE_H

#include "engine/serve/constraint.h"
#include "engine/serve/draft.h"
#include "engine/serve/kv_cache.h"
#include "engine/serve/request.h"
#include "engine/serve/sampler.h"

struct sequence {
    struct request *request;
    int answer; // which of the request's
    enum request_state state;
    enum finish_reason reason;
    int32_t *tokens; // [request->limit]
    int n_tokens, n_proposed;
    struct kv_sequence kv;
    int n_rows;
    int n_scored; // tokens of the prompt of which it was told how likely they are, where that is wanted
    int n_reused; // tokens that were found in the KV cache, of those it started from
    struct sampler sampler;
    struct constraint *constraint; // owned; NULL: none
    struct draft *draft;           // owned; NULL: it has not guessed yet
    int n_drafted, n_accepted;     // guessed tokens that were rows, and those of them that became a part of the answer
    struct sequence *waits_for;    // it computes what both have in common; NULL: none
    int waits_until;               // it has computed so many tokens
    struct wake *wake;             // reads pages of it from the disk; NULL: none
    bool looked;                   // whether the disk has any
    bool yields;                   // has of a step what persons' sequences leave
    uint64_t last_turn;            // the step in which it last had a row while decoding, or while it yielded
    double last_token;             // when the last one was drawn
    double interval;               // between tokens, lately; without what it waited after a pre-emption
    void *owner;                   // the caller's
};

static inline int sequence_generated(const struct sequence *q) { return q->n_tokens - q->request->n_prompt; }
static inline int sequence_computed(const struct sequence *q) { return q->kv.n_tokens - q->n_rows; }
// Tokens that have no slot yet.
static inline int sequence_missing(const struct sequence *q) { return q->n_tokens + q->n_proposed - q->kv.n_tokens; }
static inline bool sequence_scores(const struct sequence *q) {
    return q->request->score_prompt && q->n_scored < q->request->n_prompt;
}
// Tokens of which nothing but keys and values is wanted: those before the one that the next is drawn from, or that
// tells how likely the next one is.
static inline int sequence_silent(const struct sequence *q) {
    const int n = sequence_scores(q) ? q->n_scored : q->n_tokens;
    return n ? n - 1 : 0;
}
// Rows of the step that have logits.
static inline int sequence_outputs(const struct sequence *q) {
    const int first = sequence_silent(q) > sequence_computed(q) ? sequence_silent(q) : sequence_computed(q);
    return q->kv.n_tokens > first ? q->kv.n_tokens - first : 0;
}
static inline bool sequence_runs(const struct sequence *q) {
    return q->state == REQUEST_PREFILLING || q->state == REQUEST_DECODING;
}

// Makes the next n tokens rows of the step. Without enough free pages: false, and nothing has changed.
bool sequence_reserve(struct sequence *q, struct kv_cache *c, int n, struct kv_copy *copy);
// The step has computed its rows.
void sequence_advance(struct sequence *q);
// Tokens that may follow those committed and proposed so far; within the request's limit.
void sequence_propose(struct sequence *q, const int32_t *tokens, int n);
// Takes back what is proposed and has no slots yet.
void sequence_withdraw(struct sequence *q);
// Commits the first n that are proposed and takes back the rest. No rows are in the making.
void sequence_accept(struct sequence *q, struct kv_cache *c, int n);
// The step is given up, or the sequence has no part in it any more: back to rest.
void sequence_take_back(struct sequence *q, struct kv_cache *c);

#endif
