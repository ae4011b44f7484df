// Engine: requests and their events.
//
// A model file is opened once, an engine over it owns weights, KV cache, scheduler and sampler on a thread of its own.
// Commands (submit, cancel, sampling, focus) go in through one queue, events come out through another with an eventfd,
// figures come out through a snapshot that never blocks. Nothing here prints, exits or knows about a screen.
#ifndef CONFAB_ENGINE_H
#define CONFAB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend_options.h"
#include "engine/base/status.h"
#include "engine/message.h"
#include "engine/model_file.h"
#include "engine/sampling.h"

// ---- requests ----

// X(enumerator, name, mark on screen, mark in ASCII)
//
//   pending ──► prefilling ──► decoding ──► finished
//      ▲             │             │    ├──► failed
//      └─────────────┴─ pre-empted ┘    └──► cancelled      (failed and cancelled from every state)
#define REQUEST_STATES(X)                                                                                              \
    X(REQUEST_PENDING, "pending", "◌", ".")                                                                            \
    X(REQUEST_PREFILLING, "prefilling", "◐", "~")                                                                      \
    X(REQUEST_DECODING, "decoding", "●", "*")                                                                          \
    X(REQUEST_FINISHED, "finished", "○", "o")                                                                          \
    X(REQUEST_FAILED, "failed", "✗", "x")                                                                              \
    X(REQUEST_CANCELLED, "cancelled", "◇", "-")

enum request_state {
#define X(id, name, mark, ascii) id,
    REQUEST_STATES(X)
#undef X
        REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state s);

enum finish_reason { FINISH_NONE, FINISH_END, FINISH_LENGTH, FINISH_CONTEXT, FINISH_TIME, FINISH_CANCELLED, FINISH_ERROR };

// What to generate from: messages through the file's chat template, or `raw` text continued as it is, or token ids. Exactly one.
struct request_params {
    uint64_t conversation; // whose it is (shown as owner of pages); chosen by the caller, not 0
    const struct engine_message *messages;
    int n_messages;
    const char *raw;
    const int32_t *ids;
    int n_ids;
    struct sampling sampling;
    int n_answers; // to this one prompt, each with its own draws: a seed gives every answer another one; 0: one
    enum reasoning reasoning;
    const char *const *stops; // texts that end the answer and do not become a part of it, whichever comes first
    int n_stops;
    int max_tokens;        // 0: until the end token or the context's end
    double time_limit;     // seconds, 0: none
    bool ignore_end;       // do not stop at end-of-generation tokens (bench)
};

struct token_alternative {
    int32_t id;
    float probability;
    char text[20]; // valid UTF-8, cut at a character
};

enum engine_event_kind {
    EVENT_STATE, // state (and reason, and message when failed) changed
    EVENT_TEXT,  // text, and the token it came from when token ≥ 0 (long pieces come as several events, the later with token −1)
    EVENT_NOTICE, // something about the request that a person should know, in text
};

struct engine_event {
    enum engine_event_kind kind;
    uint64_t request, conversation;
    int answer;  // which of the request's; each has its own states and its own end
    uint64_t at; // clock_ns() when it happened; events wait until they are polled
    // EVENT_STATE
    enum request_state state;
    enum finish_reason reason;
    double time; // when, by clock_seconds()
    int n_prompt, n_reused, n_generated; // tokens: of the prompt, of those found in the KV cache, of the answer
    // EVENT_TEXT
    enum channel channel;
    int32_t token;
    float probability; // of the chosen token under the untempered distribution
    float entropy;     // of that distribution, in bits
    int n_alternatives;
    struct token_alternative alternatives[SAMPLING_TOP];
    size_t size;       // of text
    char text[512];    // EVENT_TEXT: whole UTF-8 characters; EVENT_NOTICE, EVENT_STATE failed: the message; NUL-terminated
};

// ---- engine ----

struct engine;

struct engine_params {
    int n_threads;     // 0: one a physical core, for a small model one alone
    int context;       // tokens a conversation may have, 0: the model's own, at most the arena
    int kv_tokens;     // KV arena in tokens, 0: chosen from the machine's memory
    int prefill_chunk; // prompt rows a step at most, 0: default
    struct backend_options options;
};

// Memory that an engine takes, as engine_open itself reckons it.
struct model_memory {
    uint64_t weights; // what is copied of them, at once or as the file was opened; what stays in the mapped file is
                      // none of ours
    uint64_t buffers; // activations and scratch
    uint64_t kv;      // the KV cache
    uint64_t total;
    int kv_tokens;    // that the KV cache holds
    int context;      // that a conversation may have
};
// On a machine with so many bytes free, beside what the file itself holds. False: no engine can be opened with these, however much were free.
bool model_file_memory(const struct model_file *m, const struct engine_params *p, uint64_t available,
                       struct model_memory *out, struct status *st);
// The tokens of KV cache that find room beside everything else; 0: not even the weights do.
int model_file_tokens_that_fit(const struct model_file *m, enum kv_type kv_type, uint64_t available);
// Bytes that a token takes in a KV cache of this type; 0 when the model cannot run.
uint64_t model_file_token_bytes(const struct model_file *m, enum kv_type kv_type);

struct engine *engine_open(struct model_file *m, const struct engine_params *p, struct status *st); // m outlives it
void engine_close(struct engine *e); // cancels what runs and waits, joins the thread

// Copies everything it needs. Never fails by itself: a request that cannot run ends in REQUEST_FAILED. Returns its id (≥ 1).
// Prefix reuse is automatic: pages of any earlier or running sequence that begins with the same tokens are shared
// (copy on write), so that the next turn, a fork, or a regenerated answer reads only what is new.
uint64_t engine_submit(struct engine *e, const struct request_params *p);
void engine_cancel(struct engine *e, uint64_t request); // all its answers
void engine_set_sampling(struct engine *e, uint64_t request, const struct sampling *s); // from its next token on
void engine_focus(struct engine *e, uint64_t conversation);  // on screen: served first, pre-empted last
void engine_forget(struct engine *e, uint64_t conversation); // deleted: give back pages kept for it

bool engine_poll(struct engine *e, struct engine_event *out);                 // false when there is none
bool engine_wait(struct engine *e, struct engine_event *out, int timeout_ms); // < 0: for ever
int engine_event_fd(const struct engine *e);                                  // readable while events wait

// Logits [n, n_vocab] of every position, with no request running. Blocks; requests submitted meanwhile wait for it, and
// engine_close ends it with STATUS_CANCELLED.
bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st);

#endif
