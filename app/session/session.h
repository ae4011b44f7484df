// Session: conversations, their requests and the store, without a screen.
//
// It turns messages into requests and the engine's events into messages, saves what changes, and tells its caller about
// it. The caller reads chats and conversations directly but changes them only through the functions here.
//
// Single-threaded, and never waits for a disk: a worker reads and writes the store, and results arrive later, as
// events. Changes are written within a second; failed writes are retried every two seconds, and session_unsaved is true
// until one succeeds.
#ifndef CONFAB_APP_SESSION_H
#define CONFAB_APP_SESSION_H

#include "app/base/settings.h"
#include "app/session/conversation.h"
#include "app/session/loop.h"
#include "engine/base/worker.h"
#include "engine/engine.h"
#include "ui/draft.h"

struct session;

// How an answer begins that does not begin freely.
struct session_start {
    struct message_tokens tokens; // of another answer
    int n;                        // it begins with the first n of them,
    int32_t forced;               // this token (−1: none),
    char *text;                   // and this text; NULL: none
    char *model;                  // whose tokens they are
    char *words;                  // the same without tokens, for another model
};

// An answer that is being generated.
struct session_answer {
    uint64_t request; // 0: not submitted yet, waiting for an engine
    int index;        // among the request's answers
    int message;      // the message being written
    enum request_state state;
    struct session_start *start;                                // NULL: freely
    bool own_sampling;                                          // otherwise it has that of the chat
    int n_tokens, n_given;                                      // received so far; of them not drawn
    int n_before;                                               // of a whole answer it begins with: not in max-tokens
    uint64_t submitted, first_token, last_token, first_thought; // clock_ns; 0: not yet
    uint64_t reading;                                           // clock_ns when its prompt began to be read; 0: not yet
    uint64_t left;                                              // clock_ns of its pre-emption; 0: not pre-empted
    uint64_t away;                                              // total ns pre-empted after the first token
    int n_returns;   // times it resumed; the tokens that came then do not count in its rate
    bool refused;    // its prompt does not fit, and it is to be asked for again with less
    bool stopped;    // by a person: it is not asked for again
    bool makes_room; // by leaving out the oldest messages, as a person has said
    bool replays;    // it goes on in a context that was made free: what it has said so far comes once more
    bool crowded;    // nothing more can be left out: it makes do with the room there is
    int n_asked;     // messages that it was asked with
    int n_dropped, dropped_tokens; // messages that were left out for it
};

struct session_chat {
    struct conversation conversation;
    struct session_answer *answers; // being generated, in order of request
    int n_answers, capacity;
    enum request_state state; // of the latest answer, or the one that ended last
    bool unread;              // for the caller: an answer ended and has not been seen
    bool reading;             // messages and draft are being read from the store
    bool sends;               // the first message that waits is sent once they are read
    bool wants_title;         // of the model's
    bool own_settings;        // though it has not begun, its settings were chosen for it alone, or come from the store
    bool steers;              // what waits is sent although the answer before it was stopped

    int n_asked, n_cached; // session_find: tokens of the path, and those of them in the KV cache; n_asked 0: not known

    bool editing;      // a message
    int edited;        // which
    struct draft edit; // its new text so far

    struct draft draft;              // not sent yet
    bool draft_known;                // the store's draft has been read
    bool draft_dirty;                // differs from the store
    int64_t draft_row;               // row of the chat it is stored under; 0: the chat without a row; −1: not stored
    uint64_t save_at, save_draft_at; // clock_ns when to save; 0: nothing to save
    bool saving, deleting;           // the worker is at it
};

enum session_event_kind {
    SESSION_LISTED,  // the store's chats are listed, or text says why not
    SESSION_READ,    // messages and draft of the chat are read, or text says why not
    SESSION_ASKED,   // a request was submitted
    SESSION_CHANGED, // an answer changed
    SESSION_ENDED,   // an answer ended, for `reason`; one that failed for FINISH_CONTEXT can be had with room made
    SESSION_DELETED, // the chat is none of the session's after this event; session_undelete brings it back
    SESSION_KEPT,    // deleting failed, text says why
    SESSION_UNSAVED, // saving failed and will be retried, text says why; told once, until it works again
    SESSION_SAVED,   // saving works again
    SESSION_TITLED,  // the model has given the chat a title
    SESSION_FOUND,   // what was searched for is found, or text says why not
    SESSION_WRITTEN, // an export is in its file, or `failed`; text says which or why not
    SESSION_IMPORTED, // chats have come from a file, of which text tells; or `failed`, and text says why
};

struct session_event {
    enum session_event_kind kind;
    struct session_chat *chat; // NULL: does not concern one, such as the request for a title
    enum finish_reason reason;
    const char *text; // NULL: none
    bool failed;      // of an export or import
};

struct session_match { // a message that was searched for
    struct session_chat *chat;
    int64_t message; // its row
    char *snippet;   // a line of it, with what was searched for
};

struct session_params { // all borrowed, must outlive the session
    struct loop *loop;
    struct settings *settings; // defaults of new chats
    const char *store_path;    // NULL: save nothing
    const char *kv_folder;     // of the engines' pages on the disk, which go with their chat; NULL: none
    void (*tell)(void *context, const struct session_event *event); // may be NULL
    void *context;
};

// Starts with one empty chat; those of the store follow with SESSION_LISTED.
struct session *session_open(const struct session_params *p, struct status *st);
// Stops all answers, saves and waits for that. False: something could not be saved.
bool session_close(struct session *s, struct status *st);

struct worker *session_worker(struct session *s);        // for other files of the user
bool session_unsaved(const struct session *s);           // the last write failed, or takes too long
bool session_save(struct session *s, struct status *st); // saves everything and waits

// ---- the engine ----

// client: of the engine; NULL if there is none at the moment. model: the name that answers are marked with.
void session_set_client(struct session *s, struct engine_client *client, const char *model);
// The model with this info is asked for titles of new chats, unless that is turned off; NULL: none is.
void session_set_titles(struct session *s, const struct model_info *info);
void session_hold(struct session *s, bool hold);      // while true, requests wait: another engine is coming
void session_rest(struct session *s, uint64_t until); // the engine's events do not wake the loop before this clock_ns

// ---- chats: pinned ones first, then those used last when the session began, then archived ones ----

int session_count(const struct session *s);
int session_listed(const struct session *s); // of them, those before the archived ones
struct session_chat *session_chat(const struct session *s, int index);
int session_index(const struct session *s, const struct session_chat *chat); // −1: unknown
struct session_chat *session_new(struct session *s);
struct session_chat *session_new_private(struct session *s); // that ends with the session, and so do copies of it
void session_read(struct session *s, struct session_chat *chat); // reads messages and draft if that is still to be done
void session_rename(struct session_chat *chat, const char *title);
void session_pin(struct session *s, struct session_chat *chat, bool pin);         // a pinned one comes first
void session_archive(struct session *s, struct session_chat *chat, bool archive); // an archived one is not listed
void session_tag(struct session_chat *chat, const char *tags);
void session_delete(struct session *s, struct session_chat *chat);
// The chat deleted last is there again, as if it was new; NULL: none was since the session began.
struct session_chat *session_undelete(struct session *s);
// Searches the texts of all messages in the store for words (store_search); SESSION_FOUND follows, unless another
// search took its place meanwhile. The matches stay until the next SESSION_FOUND.
void session_search(struct session *s, const char *words);
const struct session_match *session_matches(const struct session *s, int *count); // the best first
int session_message_at(const struct session_chat *chat, int64_t row); // index of the message with this row; −1: none
// Writes a chat to a file, in the format of its ending; SESSION_WRITTEN follows.
void session_export(struct session *s, struct session_chat *chat, const char *path);
// Adds the chats of a file; SESSION_IMPORTED follows.
void session_import(struct session *s, const char *path);
void session_set_draft(struct session_chat *chat, struct draft *draft); // takes ownership
void session_begin_with_defaults(struct session *s);                    // gives changed defaults to all empty chats
void session_changed(struct session_chat *chat);                        // after the caller changed its path or settings
void session_settings_changed(struct session_chat *chat); // of it alone: defaults do not reach it any more
// One of those that are a conversation's own, as setting_change takes it. Running answers use a knob as below.
bool session_change_setting(struct session *s, struct session_chat *chat, int id, const char *text,
                            const struct model_info *model, struct status *st);
// Running answers use it from their next token on, but for those that have their own.
void session_set_sampling(struct session *s, struct session_chat *chat, const struct sampling *sampling);

// ---- answers ----

// A message that is being written behind `parent` (−1: the first one) is read ahead, as far as its words are whole, or
// all of it where it has settled. It takes the place of the one before, which is given up: of all chats there is one.
// NULL, or nothing written: none. Does nothing where that is turned off, others are answered before it has settled, or
// what comes before is not there yet.
void session_read_ahead(struct session *s, struct session_chat *chat, int parent, const char *text, bool settled);
// Finds out how much of the path the engine has cached; SESSION_CHANGED follows. False: not now.
bool session_find(struct session *s, struct session_chat *chat);
// The tokens of what is asked, on this thread; the caller frees out->tokens. False: they are not to be had now.
struct asked;
bool session_prompt(struct session *s, const struct conversation *talk, const struct asked *asked,
                    struct prompt_tokens *out);
// What happens where the context is full, if nothing is left out by itself: the question at the end of the path is
// asked again, without the oldest messages. False: there is none.
bool session_make_room(struct session *s, struct session_chat *chat);
// How much of a message is asked with from now on.
void session_use(struct session_chat *chat, int message, enum message_use use);
// A message at the end of the line of those that wait; where nothing is being answered at the end of the path, the
// first of the line is sent. The line goes on when the answer there ends by itself; one that is stopped or fails holds
// it up until a person sends something. What waits is kept as the messages are.
void session_send(struct session *s, struct session_chat *chat, const char *text);
bool session_send_waiting(struct session *s, struct session_chat *chat); // the first of the line; false: none, or busy
// Out of the line at this place; the caller frees.
char *session_take_waiting(struct session_chat *chat, int place);
// Stops the answer at the end of the path and sends this in its place, before all that waits; NULL: the first of these.
void session_steer(struct session *s, struct session_chat *chat, const char *text);
// Requests n answers to a message, in one batch; each with its own sampling, unless that is NULL.
void session_ask(struct session *s, struct session_chat *chat, int parent, int n, const struct sampling *samplings);
// Another version of an answer: it begins with the tokens before this one, then with token `forced` (−1: none) and with
// text (NULL: none), and goes on from there; behind all n tokens (`token` n) with as many more as a new one may have.
void session_fork(struct session *s, struct session_chat *chat, int message, int token, int32_t forced,
                  const char *text);
enum { SESSION_ANSWERS = 8 }; // to one message at once, at most
// At the end of the path, to be asked; returns its index. The first message of a chat gives it the defaults.
int session_write(struct session *s, struct session_chat *chat, const char *text, size_t size);
// From its next token on, of an answer that is being generated: it has its own from now on.
void session_set_answer_sampling(struct session *s, struct session_chat *chat, int message,
                                 const struct sampling *sampling);
// Another version of a message, of either side: a person's is answered, the conversation goes on from a model's. The
// same text once more is no version; a person's message is answered again then.
void session_edit(struct session *s, struct session_chat *chat, int message, const char *text, size_t size);
// What is written of a new text before session_edit, in place of the draft; it is kept as that is. One message of a
// chat is edited at a time.
void session_begin_edit(struct session_chat *chat, int message);
void session_set_edit(struct session_chat *chat, struct draft *edit); // takes ownership
void session_end_edit(struct session_chat *chat);
// The version alone, to be asked or gone on from; returns its index.
int session_edit_text(struct session_chat *chat, int message, const char *text, size_t size);
// Takes a message away, with all that come after it, and stops the answers among them. Returns how many there were.
int session_prune(struct session *s, struct session_chat *chat, int message);
// The same of its versions but the marked ones, or, where there are none, but this one.
int session_keep(struct session *s, struct session_chat *chat, int message);
int session_mark(struct session_chat *chat, int message); // or not any more; returns how many versions are
int session_restore(struct session_chat *chat); // takes the latest pruning back; the message that was pruned, or −1
void session_name(struct session_chat *chat, int message,
                  const char *name); // of the branch that begins there; "": none
// A new chat with the messages up to this one, under the same settings.
struct session_chat *session_copy(struct session *s, struct session_chat *chat, int message);
struct request_params session_request_params(const struct settings *s); // what settings decide, the rest zero
void session_stop(struct session *s, struct session_chat *chat);        // all its answers
void session_stop_answer(struct session *s, struct session_chat *chat, int message); // that alone
bool session_busy(const struct session_chat *chat);
const struct session_answer *session_answer_at(const struct session_chat *chat,
                                               int message); // NULL: not being generated
// Ends running answers at once, without waiting for the engine, with `reason` in their notes. Returns how many.
int session_abandon(struct session *s, const char *reason);

#endif
