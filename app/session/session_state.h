// The inside of the session, shared by session.c (chats), session_answer.c (requests and their events) and session_save.c
// (the store). Nobody else includes this.
#ifndef CONFAB_APP_SESSION_STATE_H
#define CONFAB_APP_SESSION_STATE_H

#include "app/session/session.h"
#include "app/session/store.h"

#define NANOSECONDS  1000000000ull
#define NOT_IN_STORE (-1) // a draft

struct session {
    struct session_params p;
    struct engine_client *engine; // NULL: there is none
    char *model;
    bool held;
    uint64_t rest; // clock_ns
    struct session_chat **chats;
    int count, capacity;
    uint64_t next_id;

    struct worker *worker;
    struct store *store; // the worker's; NULL: it could not be opened yet
    struct status problem; // of the last write that failed; ok: none did since
    uint64_t writing;      // clock_ns since when the worker has had something to write; 0: it has not
};

void session_tell(struct session *s, const struct session_event *event);
struct session_chat *session_add(struct session *s, struct conversation *conversation, int index); // takes it over
void session_remove(struct session *s, struct session_chat *chat);

// session_answer.c
void session_request_waiting(struct session *s); // what waits for an engine
void session_count_tokens(struct session *s, struct session_chat *chat); // of running answers so far, should it end
void session_poll(struct session *s);                                    // the engine's events

// session_save.c
void session_save_later(struct session_chat *chat, uint64_t delay_ns); // a sooner deadline stays
void session_list(struct session *s);
uint64_t session_save_due(const struct session *s); // clock_ns; 0: nothing is to be saved
void session_save_turn(struct session *s);
void session_close_store(struct session *s); // the worker has nothing to do any more

#endif
