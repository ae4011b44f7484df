// The inside of the chat controller, shared by chat.c (loop), chat_commands.c (what a person does), chat_messages.c
// (what with messages), chat_blocks.c (what a person takes out of them), chat_find.c (what with chats as a whole),
// chat_fan_out.c (several answers at once), chat_draft.c (what a person writes), chat_editor.c (and writes elsewhere),
// chat_attach.c (or has in a file), chat_model.c (the model that answers and those to choose from), chat_limits.c (what
// the machine can do), chat_context.c (what the model is asked with), chat_tokens.c (tokens of answers),
// chat_prompt.c (the same token by token), chat_timeline.c (figures over time), chat_serve.c (other programs that are
// served) and chat_view.c (what the screen shows).
// Nobody else includes this.
#ifndef CONFAB_APP_CHAT_STATE_H
#define CONFAB_APP_CHAT_STATE_H

#include "app/chat/chat.h"
#include "app/session/session.h"
#include "engine/base/machine_use.h"

#define CHAT_HISTORY 512 // samples of the graphs

struct chat_found {    // when the engine was last asked what it has cached of the path, and what was so then
    uint64_t at;       // clock_ns; 0: it is to be asked
    uint64_t last;     // id of the message at the end of the path
    uint32_t revision; // of that
    int64_t evictions;
};

struct chat {
    struct chat_params p;
    struct engine_client *client; // NULL: there is none yet, or now
    struct screen *screen;
    struct session *session;
    struct loop *loop;
    struct session_chat *current;
    struct session_chat *composing; // whose draft the composer holds; NULL: it is gone
    bool edits;                     // it holds the text of a message of that chat instead, which is edited
    uint64_t ahead_at;              // clock_ns when it is read ahead; 0: not
    uint64_t settled_at;            // and when all of it is, unless there is another key; 0: not
    uint64_t draft_at;              // clock_ns when the composer's is given to the session; 0: not
    int knob;
    bool ending, leaving; // leaving: asked for, although something cannot be saved
    bool asks_to_leave;   // the question whether to, while answers run, was the latest one
    char status[512];
    bool status_bad;
    char *model_name, *model_short;
    char *loading; // what is being loaded, in words

    bool stale;     // the screen shows less than there is to show
    bool typed;     // a key was pressed since the last frame
    uint64_t drawn; // clock_ns of the last drawing
    uint64_t tick;  // clock_ns of the next sample of the histories; 0: nothing moves
    uint64_t moved; // clock_ns of the last event of the engine
    float decode[CHAT_HISTORY], prefill[CHAT_HISTORY], latency[CHAT_HISTORY];
    struct view_moment moments[CHAT_HISTORY]; // of the latency
    int n_samples;
    uint64_t samples;      // so far
    struct timeline timeline; // of the same and more, for longer
    struct view_totals totals; // of the engines before this one, and all failures
    struct machine_use use;    // as it was last asked for, and when that was
    uint64_t use_at;
    float own_share, machine_share, watts; // in the second before; NaN: not known
    int64_t moment;        // number of the latest that was taken
    struct view_time time; // at the last sample
    uint64_t watched;      // request whose answer the engine was told to watch, and which answer; 0: none
    int watched_answer;
    int page; // of the KV cache that the engine was told to look at; −1: none

    struct view_chat *view_chats; // room for what the screen is shown, kept between frames
    struct view_message *view_messages;
    struct view_node *view_nodes; // likewise, of all messages
    struct view_context view_context;
    struct view_context_row *view_context_rows; // likewise
    struct chat_found found;
    double prefill_rate; // tokens a second, lately
    struct view_token view_token;
    int *path, *versions; // path: that is shown, of n_path messages; versions: numbers, then totals
    int n_path;
    struct view_column *view_columns;
    struct view_message *column_messages;
    struct session_chat *comparing; // whose messages are compared; NULL: none
    int compared;                   // one of them
    int chats_room, messages_room;
    struct chat_find *find;     // what is looked for
    struct chat_models *models; // the list to choose a model from
    struct chat_limits *limits; // of the machine
    struct chat_editor *editor; // that has the terminal; NULL: none
    struct saving *saving;      // whether it is to overwrite a file has been asked; NULL: nothing
    struct chat_attach *attach; // NULL: nothing can be attached
    struct chat_prompt *prompt; // as the screen is shown it; NULL: not yet
    struct chat_settings *settings; // as the screen is shown them; NULL: not yet
    struct chat_serve *serve;
};

// chat.c
void chat_say(struct chat *c, bool bad, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool chat_save_all(struct chat *c); // now; says what went wrong

// chat_commands.c
void chat_command(struct chat *c, const struct ui_command *command);
void chat_new(struct chat *c);
void chat_new_or_empty(struct chat *c); // where there is one without messages, that
void chat_select(struct chat *c, struct session_chat *chat);
void chat_save_setting(struct chat *c, int id);
char *chat_typed(const char *text); // as a message, without blanks at the end; the caller frees
// At the end of the path; where that is an answer that is still being written, the message goes back into the composer.
bool chat_can_write(struct chat *c, const char *message);

// chat_find.c
void chat_find_open(struct chat *c);
void chat_find_close(struct chat *c);
void chat_find_changed(struct chat *c); // chats, or what their heads say
void chat_find_matched(struct chat *c); // the session has found something
void chat_find_read(struct chat *c, const struct session_chat *chat);
void chat_find_deleted(struct chat *c, const struct session_chat *chat);
void chat_find_show(struct chat *c, struct screen_view *view);
void chat_find_go(struct chat *c, const struct ui_command *command);
void chat_pin_chat(struct chat *c, const struct ui_command *command);
void chat_archive(struct chat *c, const struct ui_command *command);
void chat_tag(struct chat *c, const struct ui_command *command);
void chat_delete(struct chat *c, const struct ui_command *command);
void chat_undelete(struct chat *c, const struct ui_command *command);
void chat_export(struct chat *c, const struct ui_command *command);
void chat_import(struct chat *c, const struct ui_command *command);

// chat_messages.c
void chat_lead_to(struct chat *c, int message); // the path leads through it from now on
void chat_go(struct chat *c, const struct ui_command *command); // to the message, which the path leads through
void chat_edit(struct chat *c, const struct ui_command *command);
void chat_edit_stop(struct chat *c, const struct ui_command *command);
void chat_regenerate(struct chat *c, const struct ui_command *command);
void chat_version_previous(struct chat *c, const struct ui_command *command);
void chat_version_next(struct chat *c, const struct ui_command *command);
void chat_name(struct chat *c, const struct ui_command *command);
void chat_prune(struct chat *c, const struct ui_command *command);
void chat_pruned(struct chat *c, const char *how, int count); // so many of the current chat's are gone; says so
void chat_restore(struct chat *c, const struct ui_command *command);
void chat_copy_chat(struct chat *c, const struct ui_command *command);
const char *chat_use_name(enum message_use use); // NULL: whole
void chat_pin(struct chat *c, const struct ui_command *command);
void chat_fold(struct chat *c, const struct ui_command *command);
void chat_drop(struct chat *c, const struct ui_command *command);
void chat_make_room(struct chat *c, const struct ui_command *command);
// The message that a command is about: the one that is selected or was clicked on, otherwise the end of the path; -1:
// there is none.
int chat_subject(const struct chat *c, const struct ui_command *command);
// The same if it has versions, *total of them; where none is selected or was clicked on, the one nearest to the end
// that has. -1: there is none.
int chat_versions_of(const struct chat *c, const struct ui_command *command, int *total);
void chat_tree_show(struct chat *c, struct screen_view *view);

// chat_blocks.c
void chat_copy(struct chat *c, const struct ui_command *command);
void chat_copy_all(struct chat *c, const struct ui_command *command);
void chat_quote(struct chat *c, const struct ui_command *command);
void chat_save(struct chat *c, const struct ui_command *command); // command->text: the path
void chat_save_close(struct chat *c);

// chat_links.c
void chat_link_open(struct chat *c, const struct ui_command *command); // command->text: the address

// chat_fan_out.c
void chat_fan_out(struct chat *c, const struct ui_command *command); // command->text: how many answers, or their knobs
void chat_compare(struct chat *c, const struct ui_command *command);
void chat_keep(struct chat *c, const struct ui_command *command);
void chat_mark(struct chat *c, const struct ui_command *command);
int chat_compared_answer(const struct chat *c);             // that is being written, and chosen; -1: there is none
const struct sampling *chat_sampling(const struct chat *c); // its own, otherwise that of the chat
// After all messages of the path. f: NULL: there is no engine.
void chat_compare_show(struct chat *c, const struct engine_metrics *f, struct screen_view *view);

// chat_tokens.c
void chat_fork(struct chat *c, const struct ui_command *command);
void chat_token_show(struct chat *c, struct screen_view *view);

// chat_draft.c
void chat_draft_show(struct chat *c, struct session_chat *chat); // in the composer, where another's is put aside
void chat_draft_read(struct chat *c);                            // the one in the composer has come from the store
void chat_draft_typed(struct chat *c);                           // there was a key: it may have changed
void chat_draft_take(struct chat *c);                            // out of the composer as it stands there
void chat_draft_edit(struct chat *c, int message);               // its text is in the composer, in place of the draft
void chat_draft_edit_end(struct chat *c, struct session_chat *chat); // the draft is there again
uint64_t chat_draft_due(const struct chat *c);                       // clock_ns of the next turn; 0: none
void chat_draft_turn(struct chat *c, uint64_t now);

// chat_editor.c
void chat_editor_open(struct chat *c, const struct ui_command *command);
void chat_editor_close(struct chat *c);        // without its text
int chat_editor_fd(const struct chat *c);      // readable when it has ended; −1: none is open
void chat_editor_turn(struct chat *c);

// chat_attach.c
void chat_attach(struct chat *c, const struct ui_command *command); // command->text: the path of a file
void chat_insert(struct chat *c, const struct ui_command *command); // the shell command whose output it is
struct worker *chat_attach_open(struct chat *c);                    // that reads; NULL: nothing can be attached
void chat_attach_close(struct chat *c);
struct worker *chat_attach_worker(const struct chat *c);

// chat_settings.c
void chat_settings_set(struct chat *c, const struct ui_command *command);
char *chat_settings_text(const struct chat *c, const char *key, int number); // 1: of the program; the caller frees
void chat_preset(struct chat *c, const struct ui_command *command); // command->text: its name
void chat_save_preset(struct chat *c, const struct ui_command *command);
void chat_save_prompt(struct chat *c, const struct ui_command *command);
void chat_settings_show(struct chat *c, struct screen_view *view);
void chat_settings_close(struct chat *c);
struct pane_choice chat_pane_choice(const struct settings *s);

// chat_model.c
void chat_model_reload(struct chat *c, const struct ui_command *command);
void chat_model_open(struct chat *c);
void chat_model_close(struct chat *c);
void chat_model_events(struct chat *c);                   // of the host
void chat_model_choose(struct chat *c, const char *word); // NULL or "": brings the list up to date
void chat_model_stop(struct chat *c);
void chat_model_show(struct chat *c, struct screen_view *view);

// chat_serve.c
void chat_serve_open(struct chat *c); // begins where the settings say so
void chat_serve_stop(struct chat *c);
void chat_serve_close(struct chat *c); // waits for the end
void chat_serve(struct chat *c, const struct ui_command *command); // begins or stops
void chat_serve_cancel(struct chat *c, const struct ui_command *command); // command->text: the id of a request
void chat_serve_set(struct chat *c, int id);   // this setting has changed
void chat_serve_lend(struct chat *c);          // the engine that there is now
void chat_serve_withdraw(struct chat *c);      // before it is closed
int chat_serve_fd(const struct chat *c);       // −1: nothing to wait for
bool chat_serve_turn(struct chat *c);          // whether there is news of clients
int chat_serve_clients(const struct chat *c);  // whose requests are being answered
void chat_serve_show(struct chat *c, struct screen_view *view);

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
// f: NULL: there is no engine.
void chat_limits_show(const struct chat *c, const struct engine_metrics *f, struct view_time *out);

// chat_context.c
void chat_context_show(struct chat *c, struct screen_view *view); // where its pane is open

// chat_prompt.c
void chat_playground(struct chat *c, const struct ui_command *command);
void chat_prompt_show(struct chat *c, struct screen_view *view);
void chat_prompt_close(struct chat *c);

// chat_timeline.c
void chat_timeline_add(struct chat *c, const struct engine_metrics *f, uint64_t now); // after the histories
void chat_timeline_release(struct chat *c); // the engine goes
struct view_totals chat_totals(const struct chat *c, const struct engine_metrics *f); // f: NULL: there is no engine

// chat_view.c
void chat_show(struct chat *c);
bool chat_awaits_page(const struct chat *c);                            // the text of a page that is on its way
uint64_t chat_message_id(const struct conversation *talk, int message); // in a view
const struct request_metrics *chat_request(const struct engine_metrics *f, const struct session_answer *a); // or NULL
// A message, with what there is to say about it: at most MOST_VIEWS.
enum { MOST_VIEWS = 4 }; // the low two bits of their ids
int chat_show_message(const struct chat *c, const struct engine_metrics *f, int index, struct view_message *out);
const char *chat_other_model(const struct chat *c, const struct message *m); // that wrote it; NULL: the one there is
int chat_message(const struct chat *c, uint64_t id); // index of the one with this id in a view; -1: not in this chat

#endif
