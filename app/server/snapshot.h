// Snapshot: which clients have an exchange that is being answered, and how far each answer is. Nothing of what they
// ask, or are told, is in it; what they say of themselves is fit for a terminal.
#ifndef CONFAB_SERVER_SNAPSHOT_H
#define CONFAB_SERVER_SNAPSHOT_H

#include "engine/engine.h"

#define SNAPSHOT_CLIENTS 64 // that are listed

struct server_client {
    uint64_t number;                 // of its exchange
    char name[32], path[48];         // as it calls itself, or its address
    char model[64];                  // "": it waits for one
    enum request_state state;        // pending, prefilling or decoding
    int prefill_done, prefill_total; // tokens of the prompt; 0: not known
    int n_tokens;                    // of all answers, so far
    float tokens_per_second;         // lately, of all answers; 0: not known
    float first_token;               // seconds until it came; 0: it has not
};

// Zeroed and filled in, so that equal ones are equal byte for byte.
struct server_snapshot {
    uint64_t idle_bytes;                            // of memory, that models hold which nobody uses
    int n_clients, n_listed;                        // n_clients: with those that are not listed
    struct server_client clients[SNAPSHOT_CLIENTS]; // in the order in which they came
};

// On the server's thread.
struct server;
void server_snapshot(const struct server *s, struct server_snapshot *out);
bool server_cancel(struct server *s, uint64_t number); // and tells its client; false: there is no such exchange

#endif
