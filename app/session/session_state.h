// The inside of the session, shared by session.c (chats), session_answer.c (requests), session_events.c (what comes of
// them), session_ahead.c (what is read ahead), session_branch.c (branches), session_save.c (the store),
// session_delete.c (what is deleted, and brought back), session_find.c (search, export and import) and session_title.c
// (what the model calls chats). Nobody else includes this.
#ifndef CONFAB_APP_SESSION_STATE_H
#define CONFAB_APP_SESSION_STATE_H

#include "app/session/asked.h"
#include "app/session/session.h"
#include "app/session/store.h"

#define NOT_IN_STORE (-1) // a draft

struct session_ahead { // the message that is read ahead
    uint64_t request;  // 0: none
    uint64_t conversation;
    int parent;
    enum read_ahead how;
    char *text;
};

struct session_titling { // the title that the model is asked for
    bool able;           // by what is known of the model,
    enum reasoning reasoning;
    int max_tokens;
    uint64_t due;     // clock_ns when the next chat gets one; 0: not before another answer has ended
    uint64_t request; // 0: none
    uint64_t conversation;
    char text[1024]; // the answer so far
    size_t size;
};

struct session {
    struct session_params p;
    struct engine_client *client; // NULL: there is none
    char *model;
    bool held;
    uint64_t rest; // clock_ns
    struct session_chat **chats;
    int count, capacity;
    uint64_t next_id;
    struct session_chat **deleted; // that can be brought back, the last one last
    int n_deleted;
    char *searched, *to_search; // words of the search under way, and those it is to be followed by; NULL: none
    struct session_match *matches;
    int n_matches;
    struct session_ahead ahead;
    struct session_titling titling;
    uint64_t finding, finding_in; // request that looks something up, and its conversation; 0: none

    struct worker *worker;
    struct store *store;   // belongs to the worker's thread; NULL: not open yet
    struct status problem; // of the last write; ok: it succeeded
    uint64_t writing;      // clock_ns since when a write has been under way; 0: none is
};

void session_tell(struct session *s, const struct session_event *event);
struct session_chat *session_add(struct session *s, struct conversation *conversation, int index); // takes it over
void session_remove(struct session *s, struct session_chat *chat); // it can be brought back
void session_chat_free(struct session_chat *chat);
int session_first_unpinned(const struct session *s); // where a chat goes that is new
// Whose the engine's pages of a conversation are on the disk; 0: what is not in a store leaves nothing there.
uint64_t session_disk_owner(const struct session *s, const struct conversation *talk);

// session_answer.c
// Of a conversation, with the messages of `asked`; what else there is to say of it is zero.
struct request_params session_request_with(const struct session *s, const struct conversation *talk,
                                           const struct asked *asked);
void session_start_free(struct session_start *start);
void session_request_waiting(struct session *s); // submits what waits for an engine
// Leaves out the oldest messages for answers of one request, from `first` on, that do not fit behind a prompt of
// n_prompt tokens, and asks for them again; where no more can go, with as much room as there is. False: no use.
bool session_drop_oldest(struct session *s, struct session_chat *chat, int first, int n_prompt);
// An answer that has reached the end of the context goes on from what it has said, with less before it. False: it ends.
bool session_go_on(struct session *s, struct session_chat *chat, struct session_answer *a,
                   const struct engine_event *event);

// session_events.c
void session_count_tokens(struct session *s, struct session_chat *chat); // of running answers, in case we get killed
void session_poll(struct session *s);                                    // takes the engine's events

// session_ahead.c
void session_ahead_stop(struct session *s);                              // nothing is read ahead any more
void session_found(struct session *s, const struct engine_event *event); // of a request that is no answer's

// session_title.c
void session_title_later(struct session *s, struct session_chat *chat); // whose answer has ended
void session_title_turn(struct session *s);
void session_title_stop(struct session *s, bool again); // given up; again: for some seconds
void session_titled(struct session *s, const struct engine_event *event); // of a request that is no answer's

// session_branch.c
void session_find_edit(struct session_chat *chat); // that the store had

// session_save.c
void session_save_later(struct session_chat *chat, uint64_t delay_ns); // an earlier deadline stays
void session_list(struct session *s);
uint64_t session_save_due(const struct session *s); // clock_ns; 0: nothing to save
void session_save_turn(struct session *s);
void session_close_store(struct session *s); // the worker must be closed
bool session_store_ready(struct session *s, struct status *st); // on the worker's thread: the store is open, or why not
void session_take_messages(struct conversation *to, struct conversation *from); // that were read
void session_say(struct session *s, enum session_event_kind kind, struct session_chat *chat, const char *what,
                 const struct status *st); // "what: why"

// session_delete.c
void session_delete_now(struct session *s, struct session_chat *chat); // nothing of it is being saved
void session_keep_deleted(struct session *s, struct session_chat *chat); // takes it over
void session_forget_deleted(struct session *s);

// session_events.c
int session_abandon_chat(struct session *s, struct session_chat *chat, const char *reason);

// session_find.c
void session_forget_matches(struct session *s, const struct session_chat *chat); // of a chat; NULL: all

#endif
