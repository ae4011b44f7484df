// The local engine's insides, shared by local_engine.c (its thread), local_client.c (clients, on their threads),
// local_engine_open.c and tests.
#ifndef CONFAB_SERVE_LOCAL_ENGINE_STATE_H
#define CONFAB_SERVE_LOCAL_ENGINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/backend.h"
#include "engine/engine_ops.h"
#include "engine/local_engine.h"
#include "engine/serve/encoder.h"
#include "engine/serve/scheduler.h"
#include "engine/serve/watch.h"

enum command_kind {
    COMMAND_SUBMIT,
    COMMAND_ENCODED, // what was submitted before
    COMMAND_CANCEL,
    COMMAND_SAMPLING,
    COMMAND_FOCUS,
    COMMAND_WATCH,
    COMMAND_LOOK_AT_PAGE,
    COMMAND_FORGET,
    COMMAND_LEAVE, // of a client
    COMMAND_LOGITS,
    COMMAND_HIBERNATED, // a job of the store's
    COMMAND_CLOSE
};

struct local_client {
    struct engine_client client;
    uint64_t number;               // of no other client
    struct engine_metrics *latest; // its own copy
    struct watch *watch;           // NULL: it has never watched
    uint64_t watched;              // request, and which of its answers; as the engine's thread knows it
    int watched_answer;
    bool held; // hears of its events in a moment, of all at once
    struct local_client *next_held;
};

struct local_answer { // the owner of a sequence
    struct local_request *request;
    struct answer *text;
    bool unwanted; // cancelled while the prompt was encoded
};

//   submitted ──► encoding ──► scheduled ──► ended
//                     └── cancelled ──► dropped, when the encoder has passed it on
struct local_request { // from its submission to its last event, and until the encoder has done with it
    struct encoding encoding;
    struct local_client *client; // NULL: dropped
    bool encoded;                // beforehand
    bool scheduled;
    bool forgotten;                   // its conversation was, while it was encoded
    struct scheduler_request request; // all but ids, owners and samplings
    bool ignore_end;
    struct grammar *grammar; // shared; NULL: none
    char **stops;
    int n_stops;
    struct local_answer *answers; // [request.n_answers]
    struct sampling *samplings;   // likewise
    int n_open;                   // of them
    struct local_request *next;
};

struct logits_job { // on the stack of whoever waits for it
    struct scheduler_logits text;
    struct status *st;
    struct queue done; // of bool
    struct logits_job *next;
};

struct command {
    enum command_kind kind;
    struct local_client *client;
    uint64_t id;    // of a request, or the key of a conversation
    int answer;     // of the request, or EVERY_ANSWER
    uint64_t owner; // its disk_owner
    int page;
    struct sampling sampling;
    struct local_request *request;
    struct logits_job *logits;
    struct hibernate_job *job;
};

struct local_engine {
    struct engine engine;
    const struct model_file *file;
    struct model_file *draft_file; // owned; NULL: none
    struct scheduler *scheduler;
    struct hibernate *store; // NULL: none
    struct encoder encoder;
    struct constraint_vocabulary *vocabulary; // made on the encoder's thread for the first request with a grammar
    struct local_request *requests; // all that were submitted and have not ended
    struct local_client *held;      // clients
    struct logits_job *jobs;        // in the order they came; no request takes a step before they are done
    struct metrics metrics;
    struct queue commands;
    pthread_t thread;
    atomic_uint_fast64_t last_request, last_client;
    bool closing;
    bool preparing; // weights are still put off
    bool drew;      // a token in the last step
    double published;
    int page; // that somebody looks at; −1: none
    char backend[64];
    uint64_t kv_bytes;
};

// What a client calls a conversation; those of others keep their keys, which are no number that it may use.
static inline uint64_t local_client_conversation(const struct local_client *c, uint64_t key) {
    return key >> 32 == c->number ? key & CONVERSATION_MOST : key;
}

// ---- local_client.c ----

extern const struct engine_ops local_engine_ops;

void local_client_free(struct local_client *c);
// The same for all answers, but for their seeds.
void local_request_spread(struct local_request *r, const struct sampling *s);
void local_request_free(struct local_request *r);

// ---- local_engine.c ----

void *local_engine_run(void *engine); // the thread, until a command closes it
struct scheduler_events local_engine_events(struct local_engine *e);
void local_engine_note_backend(struct local_engine *e);
void local_engine_publish(struct local_engine *e);
// What came after the command to close, and what was encoded then.
void local_engine_discard(struct local_engine *e);

// ---- local_engine_open.c ----

// local_engine_open over any backend; NULL: the one that has the device of p.
struct engine *local_engine_open_on(struct model_file *m, const struct engine_params *p, const struct backend_ops *ops,
                                    struct status *st);
void local_engine_close(struct engine *engine);

#endif
