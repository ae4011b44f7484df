// Session: conversations, the requests that write at them, and the store that keeps them; without a screen.
//
// It turns messages into requests and the engine's events into messages, saves what changes, and tells its client what
// has happened. The client reads chats and their conversations as they are, and changes them through the functions here.
//
// One thread, which never waits for a disk: the store is a worker's, and what is read from it comes later, with an event.
// What an event says is true when it is told; what was given to be written is in the store when session_unsaved is false
// and nothing has changed for a second. When a write fails it is tried again every two seconds.
#ifndef CONFAB_APP_SESSION_H
#define CONFAB_APP_SESSION_H

#include "app/base/settings.h"
#include "app/session/conversation.h"
#include "app/session/loop.h"
#include "engine/base/worker.h"
#include "engine/engine.h"
#include "ui/draft.h"

struct session;

// An answer in the making.
struct session_answer {
    uint64_t request; // of the engine; 0: it waits for one
    int index;        // of the request's answers
    int message;      // that it writes
    enum request_state state;
    int n_tokens;     // that came so far
    uint64_t submitted, first_token, last_token, first_thought; // clock_ns; 0: not yet
    uint64_t left;    // clock_ns since when it waits to go on after its first token; 0: it does not wait
    uint64_t away;    // ns it waited so
    int n_returns;    // times it went on; the tokens that came then are left out of its rate
};

struct session_chat {
    struct conversation conversation;
    struct session_answer *answers; // in the making, in the order in which they were asked for
    int n_answers, capacity;
    enum request_state state; // that the latest answer was in last
    bool unread;              // the client's: finished, and nobody has looked
    bool reading;             // its messages or its draft are on their way from the store
    char *unsent;             // a message that is sent when they are there, or else is the client's; NULL: none

    struct draft draft; // written and not sent
    bool draft_known;   // the store's has been read, or there is none
    bool draft_dirty;   // differs from the store
    int64_t draft_row;  // of the chat under which the store has it; 0: of the one that has not begun; −1: it has none
    uint64_t save_at, save_draft_at; // clock_ns when these are to be saved; 0: they are, or are about to be
    bool saving, deleting;           // by the worker
};

enum session_event_kind {
    SESSION_LISTED,  // the chats of the store are there; or text says why they are not
    SESSION_READ,    // messages and draft of the chat are there; or text says what is not, and why
    SESSION_ASKED,   // an answer is asked for
    SESSION_CHANGED, // something came of an answer
    SESSION_ENDED,   // an answer has ended, for `reason`
    SESSION_DELETED, // the chat is deleted; after the event it is gone
    SESSION_KEPT,    // it could not be deleted; text says why
    SESSION_UNSAVED, // something could not be saved, and is tried again; text says why
    SESSION_SAVED,   // everything is, after all
};

struct session_event {
    enum session_event_kind kind;
    struct session_chat *chat; // NULL: of none
    enum finish_reason reason;
    const char *text; // NULL: none
};

struct session_params { // everything is borrowed and outlives the session
    struct loop *loop;         // gives the session its turns
    struct settings *settings; // what a chat begins with
    const char *store_path;    // NULL: nothing is saved
    void (*tell)(void *context, const struct session_event *event); // NULL: nobody listens
    void *context;
};

// It has one chat, that has not begun; those of the store come with SESSION_LISTED.
struct session *session_open(const struct session_params *p, struct status *st);
// Stops what runs, saves and waits until that is done. False when something could not be saved.
bool session_close(struct session *s, struct status *st);

struct worker *session_worker(struct session *s); // for other files of the person's
bool session_unsaved(const struct session *s);    // what there is to save cannot be saved now
bool session_save(struct session *s, struct status *st); // everything, and waits; false when something could not be

// ---- the engine ----

// NULL: there is none now. `model`: what it runs, as answers are marked with it. `wait`: answers that are asked for wait
// for another engine; when it is false again they are requested.
void session_set_engine(struct session *s, struct engine_client *e, const char *model);
void session_hold(struct session *s, bool wait);
void session_rest(struct session *s, uint64_t until); // clock_ns before which the loop need not wake up for its events

// ---- chats, the newest first ----

int session_count(const struct session *s);
struct session_chat *session_chat(const struct session *s, int index);
int session_index(const struct session *s, const struct session_chat *chat); // −1: it is none of them
struct session_chat *session_new(struct session *s); // it is the newest
void session_read(struct session *s, struct session_chat *chat); // what of it is still only in the store
void session_rename(struct session_chat *chat, const char *title);
void session_delete(struct session *s, struct session_chat *chat);
void session_set_draft(struct session_chat *chat, struct draft *draft); // takes it over
void session_begin_with_defaults(struct session *s); // which have changed: chats that have not begun have the new ones
void session_changed(struct session_chat *chat); // its versions or settings were: it is to be saved
// The knobs of the chat: answers in the making follow from their next token on.
void session_set_sampling(struct session *s, struct session_chat *chat, const struct sampling *sampling);

// ---- answers ----

void session_send(struct session *s, struct session_chat *chat, const char *text, size_t size); // and asks for an answer
// For n more answers to a message, in one request.
void session_ask(struct session *s, struct session_chat *chat, int parent, int n);
// What the settings say of a request; the rest is zero.
struct request_params session_request_params(const struct settings *s);
void session_stop(struct session *s, struct session_chat *chat); // every answer of it that is in the making
bool session_busy(const struct session_chat *chat);
const struct session_answer *session_answer_at(const struct session_chat *chat, int message); // NULL: not in the making
// Ends what runs, at once and without the engine's word, for this reason: what came so far are the answers. How many.
int session_abandon(struct session *s, const char *reason);
// An answer that failed before anything of it came: what comes later is asked without it and without its question.
bool session_left_out(const struct conversation *talk, int message);

#endif
