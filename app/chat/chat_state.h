// The inside of the chat controller, shared by chat.c (loop), chat_answer.c (requests and their events), chat_commands.c
// (what a person does), chat_draft.c (what a person writes), chat_model.c (the model that answers and those to choose
// from), chat_limits.c (what the machine can do) and chat_view.c (what the screen shows). Nobody else includes this.
#ifndef CONFAB_APP_CHAT_STATE_H
#define CONFAB_APP_CHAT_STATE_H

#include "app/chat/chat.h"
#include "app/session/conversation.h"
#include "app/session/store.h"

#define CHAT_HISTORY 512 // samples of the graphs
#define NANOSECONDS 1000000000ull

struct chat_entry {
    struct conversation conversation;
    bool unread;      // finished while another chat was on screen
    uint64_t save_at; // clock_ns when it is to be saved; 0: it is saved
    // What stood in the composer when it was last looked at there.
    struct draft draft;
    bool draft_known;   // the store's has been read
    bool draft_dirty;   // differs from the store
    int64_t draft_row;  // of the chat under which the store has it; 0: of the one that has not begun; −1: it has none
    uint64_t draft_at;  // clock_ns when it is to be looked at and saved; 0: not
    // The latest request; `request` is 0 when none runs, or when `parked`: it waits for the model that is being loaded.
    uint64_t request;
    bool parked;
    enum request_state state;
    int answer;       // index of the message that it writes
    int n_tokens;     // that came so far
    uint64_t submitted, first_token, last_token; // clock_ns
    uint64_t left;  // clock_ns since when it waits to go on after its first token; 0: it does not wait
    uint64_t away;  // ns it waited so
    int n_returns;  // times it went on; the tokens that came then are left out of its rate
    uint64_t first_thought;                      // 0: it has not thought yet
};

struct chat {
    struct chat_params p;
    struct engine *engine; // NULL: there is none yet, or now
    struct screen *screen;
    struct store *store; // NULL: not saved
    bool store_broken;   // the last save failed
    struct chat_entry **entries; // newest first, never none
    int n_entries, capacity, current;
    struct chat_entry *composing; // whose draft the composer holds; NULL: it is gone
    uint64_t next_id;
    int knob;
    bool ending, leaving; // leaving: asked for, although something cannot be saved
    char status[512];
    bool status_bad;
    char *model_name, *model_short;
    char *loading; // what is being loaded, in words

    bool stale;            // the screen shows less than there is to show
    bool typed;            // a key was pressed since the last frame
    uint64_t drawn;        // clock_ns of the last drawing
    uint64_t tick;         // clock_ns of the next sample of the histories; 0: nothing moves
    uint64_t moved;        // clock_ns of the last event of the engine
    float decode[CHAT_HISTORY], prefill[CHAT_HISTORY], latency[CHAT_HISTORY];
    int n_samples;
    struct view_time time; // at the last sample

    struct view_chat *view_chats; // room for what the screen is shown, kept between frames
    struct view_message *view_messages;
    int *path, *versions; // versions: numbers, then totals
    int chats_room, messages_room;
    struct chat_models *models; // the list to choose a model from
    struct chat_limits *limits; // of the machine
};

static inline bool chat_busy(const struct chat_entry *e) { return e->request || e->parked; }
static inline struct chat_entry *chat_current(const struct chat *c) { return c->entries[c->current]; }

// chat.c
struct chat_entry *chat_insert(struct chat *c, struct conversation *conversation); // on top; takes it over
void chat_say(struct chat *c, bool bad, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool chat_unsaved(const struct chat *c); // there is a place to save to, but it cannot be written
void chat_save_later(struct chat_entry *e, uint64_t delay_ns); // a sooner deadline stays
bool chat_save_all(struct chat *c); // now; says what went wrong
bool chat_load_messages(struct chat *c, struct chat_entry *e); // from the store, when not there yet

// chat_answer.c
void chat_submit(struct chat *c, struct chat_entry *e, int parent); // a new answer to the message `parent`
void chat_unpark(struct chat *c, struct chat_entry *e); // the engine is there
void chat_stop(struct chat *c, struct chat_entry *e);
void chat_event(struct chat *c, const struct engine_event *event);
// An answer that failed before anything of it came: what comes later is asked without it and without its question.
bool chat_left_out(const struct conversation *talk, int message);
void chat_count(struct chat *c, struct chat_entry *e); // the tokens of a running answer so far, should confab end
// At once and without the engine's word, for this reason: what came so far is the answer.
void chat_abandon(struct chat *c, struct chat_entry *e, const char *reason);

// chat_commands.c
void chat_command(struct chat *c, const struct ui_command *command);
void chat_new(struct chat *c);
void chat_save_setting(struct chat *c, int id);

// chat_draft.c
void chat_draft_new(struct chat_entry *e); // of a chat that the store has never seen
void chat_draft_open(struct chat *c, struct chat_entry *e); // from the store
void chat_draft_show(struct chat *c, struct chat_entry *e); // in the composer, where another's is put aside
void chat_draft_forget(struct chat *c, struct chat_entry *e); // of a chat that is deleted
void chat_draft_typed(struct chat *c); // there was a key: it may have changed
void chat_draft_take(struct chat *c);  // out of the composer as it stands there
void chat_draft_save_later(struct chat_entry *e, uint64_t delay_ns); // a sooner deadline stays
bool chat_draft_save(struct chat *c, struct chat_entry *e, struct status *st);

// chat_model.c
void chat_model_open(struct chat *c);
void chat_model_close(struct chat *c);
void chat_model_events(struct chat *c); // of the host
bool chat_model_waits(const struct chat *c); // requests are to wait for the model that is being loaded
void chat_model_choose(struct chat *c, const char *word); // NULL or "": shows the list
void chat_model_stop(struct chat *c);
void chat_model_show(struct chat *c, struct screen_view *view);

// chat_limits.c
void chat_limits_open(struct chat *c);
void chat_limits_close(struct chat *c);
void chat_limits_engine(struct chat *c); // there is another one, or none
void chat_limits_yield(struct chat *c);  // the processor is needed: measuring ends
int chat_limits_fd(const struct chat *c);
uint64_t chat_limits_due(const struct chat *c); // clock_ns of the next turn; 0: none
void chat_limits_turn(struct chat *c, uint64_t now);
void chat_limits_check(struct chat *c, const struct stage_work *all); // what was done: a limit is no less
void chat_limits_measure(struct chat *c);                             // again, for a person
void chat_limits_show(const struct chat *c, struct view_time *out);

// chat_view.c
void chat_show(struct chat *c);
int chat_view_message(const struct chat *c, int view); // index of the one last shown there; -1: it is not of this chat

#endif
