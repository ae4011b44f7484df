// Told engine: one that computes nothing, remembers what it is asked, and says what a test pushes into the queue of
// events of the client that asked.
#ifndef CONFAB_TESTS_TOLD_ENGINE_H
#define CONFAB_TESTS_TOLD_ENGINE_H

#include "engine/engine_ops.h"

#define TOLD_MOST   64
#define TOLD_ASKERS 1024
#define TOLD_AHEAD  1000000 // the number of the first request that is read ahead

struct told_engine {
    struct engine engine;
    struct engine_client *client;                          // the latest
    struct engine_client *askers[TOLD_ASKERS];             // of requests, by their numbers modulo TOLD_ASKERS
    uint64_t n_requests, conversation, focused, forgotten; // conversation: of the last request
    uint64_t disk_owner;                                   // likewise
    uint64_t cancelled[TOLD_MOST], changed[TOLD_MOST];     // requests
    int n_cancelled, n_changed;
    int cancelled_answer, changed_answer; // of the last of them
    char prompt[4096];                    // of the last request: "role: thinking/text|role: text|", raw, or "1|2|"
    char stops[256];                      // "stop|stop|"
    int32_t begun[TOLD_MOST];             // likewise, with its text behind
    int n_begun;
    char begun_text[256];
    bool held; // to a grammar
    bool ignore_end;
    bool background, score_prompt;
    enum reasoning reasoning;
    char template_file[64]; // "": none
    int max_tokens, n_answers, room;
    struct sampling sampling, new_sampling; // of the last request; of the last change
    struct sampling samplings[TOLD_MOST];   // of each of its answers
    bool own;                               // each answer came with its own
    int n_ahead;                            // messages that were read ahead
    char ahead[4096];                       // as prompt, of the last one; "" where it was given up
    struct engine_metrics metrics;
};

extern struct told_engine engine;

void told_engine_reset(void);                    // as it has never been asked anything; clients must be closed
void told_engine_say(struct engine_event event); // to who made the request; if nobody did, to the latest client

#endif
