// Engine: whoever answers requests, through one interface: a model on this machine (local_engine.h), or a test's
// script.
//
// Those who ask are its clients, several at a time. Requests, events and numbers of conversations are a client's own:
// each sees only its own events, one that never reads them holds nobody up, and its conversation 1 is not another's.
// What is asked may come from any thread; events and metrics of a client are read by one. Nothing here prints, exits or
// knows about a screen.
#ifndef CONFAB_ENGINE_H
#define CONFAB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/message.h"
#include "engine/sampling.h"

// ---- requests ----

// X(enumerator, name)
//
//   pending ──► prefilling ──► decoding ──► finished
//      ▲             │             │    ├──► failed
//      └─────────────┴─ pre-empted ┘    └──► cancelled      (failed and cancelled from every state)
#define REQUEST_STATES(X)                                                                                              \
    X(REQUEST_PENDING, "pending")                                                                                      \
    X(REQUEST_PREFILLING, "prefilling")                                                                                \
    X(REQUEST_DECODING, "decoding")                                                                                    \
    X(REQUEST_FINISHED, "finished")                                                                                    \
    X(REQUEST_FAILED, "failed")                                                                                        \
    X(REQUEST_CANCELLED, "cancelled")

enum request_state {
#define X(id, name) id,
    REQUEST_STATES(X)
#undef X
        REQUEST_STATE_COUNT
};
const char *request_state_name(enum request_state s);

enum finish_reason {
    FINISH_NONE,
    FINISH_END,
    FINISH_LENGTH,
    FINISH_CONTEXT,
    FINISH_TIME,
    FINISH_CANCELLED,
    FINISH_ERROR
};

struct grammar;

enum read_ahead {
    READ_AHEAD_OFF,
    READ_AHEAD_WORDS, // what every longer message has in common with this one
    READ_AHEAD_ALL,   // all, as if it were complete
    READ_AHEAD_FIND   // nothing is computed: the end tells n_reused, what of the words there is in the KV cache
};

#define CONVERSATION_MOST UINT32_MAX // the highest number of a conversation

// What to generate from: messages through the file's chat template, or `raw` text continued as it is, or token ids.
// Exactly one.
struct request_params {
    uint64_t conversation; // whose it is (shown as owner of pages); chosen by the client, 1 to CONVERSATION_MOST
    uint64_t disk_owner;   // whose its pages are on the disk: the same number whenever the conversation is opened; 0:
                           // they never go there
    const struct engine_message *messages;
    int n_messages;
    const char *raw;
    const int32_t *ids;
    int n_ids;
    // How every answer begins: with these tokens, then with those of this text. They are a part of it: told, counted
    // and checked for its end as drawn ones are. A seed draws what follows as it would after as many drawn ones.
    const int32_t *begun;
    int n_begun;
    const char *begun_text; // NULL: none
    struct sampling sampling;
    int n_answers; // to this one prompt, each with its own draws: a seed gives every answer another one; 0: one
    const struct sampling *samplings; // [n_answers], of each answer, taken as they are; NULL: as above
    enum reasoning reasoning;
    // A file with the Jinja template that renders the messages in place of the model's own; NULL: none. Where it
    // cannot, a notice says why and the model's own does.
    const char *template_file;
    struct grammar *grammar;  // that the text of every answer matches (engine/grammar.h); shared; NULL: any text
    const char *const *stops; // texts that end the answer and do not become a part of it, whichever comes first
    int n_stops;
    int max_tokens; // 0: until the end token or the context's end
    int room; // tokens that the context must have left for each answer; otherwise it fails with FINISH_CONTEXT; 0: one
    double time_limit; // seconds, 0: none
    bool ignore_end;   // do not stop at end-of-generation tokens (bench)
    bool score_prompt; // EVENT_PROMPT tells how likely its tokens are; so all of them are computed
    bool background;   // another program asks: it has the places, rows and pages that persons' requests leave
    // The last message is still being written: the prompt is computed while nothing else of a person's is, or as far as
    // that lengthens no step of those, so that the request that follows finds it; nothing is generated. Its pages are
    // evicted first.
    enum read_ahead read_ahead;
};

struct token_alternative {
    int32_t id;
    float probability;
    char text[20]; // valid UTF-8, cut at a character
};

enum engine_event_kind {
    EVENT_STATE, // state (and reason, and message when failed) changed
    EVENT_TEXT, // text, and the token it came from when token ≥ 0 (long pieces come as several events, the later with
                // token −1)
    EVENT_PROMPT, // a token of the prompt, one after the other, with what EVENT_TEXT tells of one; no text
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
    int stop;    // which of the request's stops ended the answer, from 1; 0: none of them
    double time; // when, by clock_seconds()
    // Tokens: of the prompt; of it and of what the answer begins with, those found in the KV cache; of the answer.
    int n_prompt, n_reused, n_generated;
    int n_drafted, n_accepted; // tokens guessed and computed, and those of them in the answer
    // EVENT_TEXT and EVENT_PROMPT
    enum channel channel;
    int32_t token;
    float probability;  // of this token under the untempered distribution; NaN: the answer begins with it as it was
                        // given, or the prompt does
    float entropy;      // of that distribution, in bits; NaN likewise
    bool accepted;      // a draft had guessed it
    int n_alternatives; // 0 likewise
    struct token_alternative alternatives[SAMPLING_TOP];
    size_t size;    // of text
    char text[512]; // EVENT_TEXT: whole UTF-8 characters; EVENT_NOTICE, EVENT_STATE failed: the message; NUL-terminated
};

// ---- engines and their clients ----

struct engine;
void engine_close(struct engine *e); // its clients are closed before; waits for what it does

// Logits [n, n_vocab] of every position, with no request running. Blocks; requests submitted meanwhile wait for it, and
// engine_close ends it with STATUS_CANCELLED. STATUS_UNSUPPORTED: this kind of engine has none to give.
bool engine_logits(struct engine *e, const int32_t *ids, int n, float *out, struct status *st);

struct engine_client;
struct engine_client *engine_client_open(struct engine *e, struct status *st);
// Cancels its requests; of its events nothing is heard any more. Waits for nobody.
void engine_client_close(struct engine_client *c);

// Copies everything it needs. Never fails by itself: a request that cannot run ends in REQUEST_FAILED. Returns its id
// (≥ 1), which no other request of the engine has. Prefix reuse is automatic: pages of any earlier or running sequence
// that begins with the same tokens are shared (copy on write), so that the next turn, a fork, or a regenerated answer
// reads only what is new.
uint64_t engine_submit(struct engine_client *c, const struct request_params *p);
// Of requests that are not the client's these do nothing.
void engine_cancel(struct engine_client *c, uint64_t request); // all its answers
void engine_cancel_answer(struct engine_client *c, uint64_t request, int answer);
// From its next token on: of all answers, where a seed gives each another one; or of one, as it is.
void engine_set_sampling(struct engine_client *c, uint64_t request, const struct sampling *s);
void engine_set_answer_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s);
// On screen: served first, pre-empted last, and what is cached of it other programs leave alone as far as they can. The
// latest word of any client holds.
void engine_focus(struct engine_client *c, uint64_t conversation);
// Deleted: gives back pages kept for it, and removes those on the disk, of its disk_owner; 0: it has none there.
void engine_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner);

struct prompt_token {
    int32_t id;
    bool special;  // a control token, such as <|im_end|>
    char text[27]; // valid UTF-8, cut at a character; bytes that are none as "\\xe2"
};
struct prompt_tokens {
    struct prompt_token *tokens;
    int n;
    struct status refused; // why the template was not used; STATUS_OK: it was
};
// The tokens that a request would start from, with those that its answers begin with; computed on the caller's thread.
// False: this kind of engine does not tell. The caller frees out->tokens.
bool engine_prompt(struct engine_client *c, const struct request_params *p, struct prompt_tokens *out);

bool engine_poll(struct engine_client *c, struct engine_event *out);                 // false when there is none
bool engine_wait(struct engine_client *c, struct engine_event *out, int timeout_ms); // < 0: for ever
int engine_event_fd(const struct engine_client *c);                                  // readable while events wait

#endif
