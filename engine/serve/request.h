// Request: one prompt and the answers to it. It lives until the last of its sequences has ended.
#ifndef CONFAB_SERVE_REQUEST_H
#define CONFAB_SERVE_REQUEST_H

#include "engine/engine.h"

struct request {
    uint64_t id, conversation;
    uint64_t disk_owner;        // whose its pages are on the disk; 0: they do not go there
    int n_prompt, n_begun;      // tokens: of the prompt, and those that every answer begins with
    int n_open;                 // sequences that have not ended
    int limit;                  // tokens of each, prompt and answer: the context, or what max_tokens allows
    bool limited_by_user;       // by max_tokens
    bool read_ahead;            // as of struct request_params
    bool background;            // likewise
    bool score_prompt;          // likewise
    bool forgotten;             // its conversation is deleted: nothing goes into the prefix index
    double submitted, deadline; // seconds; deadline 0: none
};

#endif
