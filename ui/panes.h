// Panes: the one table of what the screen consists of, and what all of it is shown. The commands that show and hide
// panes, their keys, the help, the values of the setting and the layout come from the table; what a pane does is in a
// file of its own, ui/pane_MODULE.c (ui/pane.h). A new pane is its file, a row here with what it is shown, and whoever
// feeds it.
#ifndef CONFAB_UI_PANES_H
#define CONFAB_UI_PANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/log.h"
#include "engine/distribution.h"
#include "engine/engine.h"
#include "engine/metrics.h"
#include "ui/timeline.h"

enum pane_side { PANE_LEFT, PANE_RIGHT }; // of the conversation, where the screen is wide enough for both

// Where the panes stand: beside the chat, at both sides where that leaves it room to read, otherwise in one column; at
// both sides; or above the chat, in rows.
enum pane_arrangement { ARRANGE_AUTO, ARRANGE_WIDE, ARRANGE_TALL, ARRANGE_COUNT };
#define PANE_ARRANGEMENT_CHOICES "auto|wide|tall"

// X(enumerator, module, title, key, help, side, rows, weight, rank, unasked, presets)
//   module   its file, and its name in the configuration; `toggle-MODULE` is the command that shows and hides it
//   rows     that it has at least, with its border; weight: its share of those that are left over
//   rank     where room is short the pane with the highest goes first
//   unasked  where nobody has chosen, it is shown when it gets so many rows; 0: always, PANE_NEVER: never
//   presets  how many of the presets of panes show it, from the fullest on
// A pane's place in the table is its digit in the configuration, where its name may stand too.
#define PANE_NEVER 1000
#define PANES(X)                                                                                                       \
    X(CHATS, chats, "chats", "Alt+1", "toggle the chat list", PANE_LEFT, 5, 12, 1, 0, 4)                               \
    X(THROUGHPUT, throughput, "throughput", "Alt+2", "toggle the throughput pane", PANE_RIGHT, 5, 5, 2, 0, 3)          \
    X(KV, kv, "kv cache", "Alt+3", "toggle the KV cache pane", PANE_RIGHT, 4, 4, 3, 0, 2)                              \
    X(LATENCY, latency, "latency", "Alt+4", "toggle the latency pane", PANE_RIGHT, 4, 4, 4, 0, 2)                      \
    X(TIME, time, "time", "Alt+5", "toggle the time pane", PANE_RIGHT, 3, 16, 5, 12, 1)                                \
    X(MEMORY, memory, "memory", "Alt+6", "toggle the memory pane", PANE_RIGHT, 4, 4, 6, PANE_NEVER, 1)                 \
    X(LOG, log, "log", "Alt+7", "toggle the log pane", PANE_RIGHT, 4, 6, 7, PANE_NEVER, 1)

// Those that are always there: the conversation, the message being written, and the bottom line. X(enumerator, module)
#define PANES_FIXED(X)                                                                                                 \
    X(CHAT, chat)                                                                                                      \
    X(COMPOSER, composer)                                                                                              \
    X(SAMPLING, sampling)

// Those that are opened over the others. X(enumerator, module, title, command that opens and closes it)
#define PANES_OVER(X)                                                                                                  \
    X(HELP, help, "help", COMMAND_HELP)                                                                                \
    X(PALETTE, palette, "commands", COMMAND_PALETTE)                                                                   \
    X(MODELS, models, "models", COMMAND_MODEL)                                                                         \
    X(FIND, find, "find a chat", COMMAND_FIND_CHAT)                                                                    \
    X(SEARCH, search, "", COMMAND_SEARCH)                                                                              \
    X(SETTINGS, settings, "settings", COMMAND_SETTINGS)                                                                \
    X(TOKENS, tokens, "tokens", COMMAND_TOKENS)                                                                        \
    X(TREE, tree, "tree", COMMAND_TREE)                                                                                \
    X(SLOW, slow, "why was that slow?", COMMAND_SLOW)                                                                  \
    X(GRAPHS, graphs, "graphs", COMMAND_GRAPHS)                                                                        \
    X(KV_MAP, kv_map, "pages of the kv cache", COMMAND_KV_MAP)                                                         \
    X(LOG_ENTRIES, log_entries, "log", COMMAND_LOG)                                                                    \
    X(CONTEXT, context, "context", COMMAND_CONTEXT)                                                                    \
    X(PROMPT, prompt, "prompt", COMMAND_PROMPT)                                                                        \
    X(KNOBS, knobs, "last token", COMMAND_KNOBS)                                                                       \
    X(COMPARE, compare, "side by side", COMMAND_COMPARE)                                                               \
    X(LINKS, links, "links", COMMAND_LINKS)                                                                            \
    X(CLIENTS, clients, "clients", COMMAND_CLIENTS)                                                                    \
    X(READ, read, "", COMMAND_READ)                                                                                    \
    X(SELECT, select, "", COMMAND_COUNT)                                                                               \
    X(FOCUS, focus, "", COMMAND_FOCUS_PANE)                                                                            \
    X(TEXT, text, "", COMMAND_SELECT_TEXT)                                                                             \
    X(DIALOG, dialog, "", COMMAND_COUNT)

enum pane_id {
    PANE_CHAT,
#define X(id, ...) PANE_##id,
    PANES(X) // each at its digit
    PANES_END,
    PANE_COMPOSER = PANES_END,
    PANE_SAMPLING,
    PANES_OVER(X)
#undef X
        PANE_COUNT
};
enum { PANES_FIRST = PANE_CHAT + 1 }; // [PANES_FIRST, PANES_END): the table's
#define PANES_BESIDE ((1u << PANES_END) - (1u << PANES_FIRST)) // bit p: enum pane_id p

struct pane_info {
    const char *name, *title;
    enum pane_side side;
    int rows, weight, rank, unasked, presets;
};
extern const struct pane_info panes[PANE_COUNT]; // panes.c; of those that are not in PANES only name and title

// ---- what they are shown ----

enum view_role { VIEW_USER, VIEW_MODEL, VIEW_NOTICE };

struct view_message {
    uint64_t id;
    uint32_t revision; // changes when text changes: the transcript keeps what it laid out of the others
    enum view_role role;
    const char *text;  // UTF-8, hostile; borrowed
    size_t size;
    const char *thinking; // what the model thought before it; a line unless a person opens it; NULL: nothing
    size_t thinking_size;
    int thinking_tokens;
    double thinking_seconds;
    const struct message_token *drawn; // what it was made of; NULL: not known
    int n_drawn;
    int version, n_versions; // "‹2/3›" when n_versions > 1; 1-based
    bool streaming;
    enum request_state state; // of one that streams, and how far its prompt has been read
    int prefill_done, prefill_total;
    bool parked;              // it waits for the model that is being loaded
    bool edited;              // the composer has its text
    const char *use;    // how much of it the model is asked with, e.g. "pinned"; NULL: all
    const char *author; // heads it when a model wrote it; NULL: the model there is now
    const char *name;   // of the branch that begins here; NULL: none
    const char *model;  // in full, where it is another than before; NULL: not to be said
    const char *note;  // e.g. "stopped", "38.2 tok/s, 120 tokens"; NULL: none
    bool bare;         // without a heading
    int waiting;       // its place in the line of those that are not sent yet, from 1 on; 0: it is sent
    bool failed;       // of a notice: it says what went wrong
};

struct view_token { // at the token cursor
    uint64_t message;
    int token, count; // which, of how many; the same: behind all of them
    struct message_token figures;
    const char *text; // hostile; borrowed
    size_t size;
    int n;
    struct token_alternative alternatives[SAMPLING_TOP]; // most likely first
};

struct view_chat {
    uint64_t id;
    const char *title;
    enum request_state state;
    bool busy;         // a request of it is pending or running
    bool parked;       // it waits for the model that is being loaded
    int prefill_done, prefill_total;
    float tokens_per_second;
    bool unread;
    bool private; // nothing of it is kept
    bool pinned, archived;
    int64_t used;     // milliseconds since 1970; 0: not known
    const char *tags; // words; "": none
};

// Which chats the pane to find one shows, and in which order, where no words are typed.
#define FIND_ORDERS(X)                                                                                                 \
    X(FIND_RECENT, "latest")                                                                                           \
    X(FIND_TITLE, "by title")                                                                                          \
    X(FIND_PINNED, "pinned")                                                                                           \
    X(FIND_ARCHIVED, "archived")
enum find_order {
#define X(id, label) id,
    FIND_ORDERS(X)
#undef X
        FIND_ORDER_COUNT
};

struct view_found { // a chat that fits what is looked for
    int chat;            // index
    const char *snippet; // a line of a message with the words; hostile; NULL: its title has them
};

struct view_node { // a message in the tree of all messages of a chat
    uint64_t id;        // as in struct view_message; 0: it is not there
    int parent, chosen; // index of the one before, and of the one that the path through it goes on with; −1: none
    bool on_path, streaming, failed;
    enum view_role role;
    const char *author; // that wrote it, in short; NULL: the model there is now
    const char *text;   // hostile; borrowed
    size_t size;
    const char *name;   // of the branch that begins here; NULL: none
    int version, n_versions;
    int tokens; // of the conversation up to and with it, where they were not counted about
};

struct view_context_row { // a message of the path, or the system prompt, as the model is asked with it
    uint64_t id;        // as in struct view_message; 0: the system prompt
    const char *author; // "You", "system", or the model's name in short
    enum view_role role;
    const char *text; // hostile; borrowed
    size_t size;
    const char *use;  // how much of it the model is asked with, e.g. "pinned"; NULL: all
    bool asked;       // otherwise it is left out
    bool guessed;     // its tokens are
    int tokens;       // that it takes now; 0 where it is left out
    int first;        // tokens before it
    int whole, folded; // tokens that it would take
    int after;        // tokens behind it
};

struct view_context {
    const struct view_context_row *rows;
    int n_rows;
    int tokens;        // of all rows
    int asked, cached; // counted by the engine; of them, from the first on, those in the KV cache; cached −1: not known
    double rate;        // tokens read a second, lately; 0: not known
};

struct view_prompt { // what the model is asked with
    const struct prompt_token *tokens;
    int n_tokens;
    const char *problem; // why there are none, or others than were wanted; NULL: none
};

struct view_column { // a version of a message, beside the others
    uint64_t id;
    const struct view_message *messages; // it, and what there is to say about it
    int n_messages;
    const struct sampling *sampling; // that it is drawn under; NULL: not known
    const char *author;              // as of the message
    bool marked;                     // to be kept
    bool streaming, failed;
    enum request_state state; // of one that streams
    int n_tokens;
    float tokens_per_second;
    const char *note; // of one that does not; NULL: none
};

struct view_model { // one to choose; texts of one line, "" where nothing is known
    const char *name;
    const char *family, *parameters, *format, *size, *source, *path;
    bool loaded;
    const char *refusal; // why it cannot be loaded; NULL: it can
};

struct view_setting { // keys and helps outlive the screen; values are there while the pane is open
    const char *key, *help;
    const char *choices; // separated by '|'; NULL: it is typed
    bool adds;           // what is typed is added to a list
    const char *value;   // that new chats and the program have; "": not set
    const char *own;     // that the chat on the screen has; NULL: none of its own
    const char *initial; // where nobody sets it
    const char *effect;  // when a change takes effect, e.g. "at once"
};

struct view_client { // another program whose request is being answered
    uint64_t id;       // of the request
    const char *name;  // as it calls itself, or its address; one line
    const char *path;  // that it asked, e.g. "/v1/chat/completions"
    const char *model;
    enum request_state state; // pending, prefilling or decoding
    int prefill_done, prefill_total;
    int tokens;              // of its answers, so far
    float tokens_per_second; // 0: not known
    double first_token;       // seconds that it took; 0: there is none yet
};

struct view_serving {
    const char *address; // "127.0.0.1:8080"
    const struct view_client *clients; // in the order in which they came
    int n_clients, n_more;             // n_more: that are not listed
};

struct view_loading {
    const char *text; // what is being loaded, e.g. "loading TinyLlama 1.1B Q4_0"
    const char *size; // "608 MiB"
    float done;       // 0 to 1; −1: not known yet
    bool stoppable;   // with Esc
};

// Histories for the graphs: oldest first, one sample a tick of the controller (4 a second).
struct view_history {
    const float *values;
    int count;
};

// What the slowest token of a sample waited for.
struct view_moment {
    struct latency_moment token; // seconds of 0: there was none
    bool loading;                // a model was being loaded
    double at;                   // clock_seconds() of the sample
};

// Where the time of the last second went in which the engine worked.
struct view_time {
    struct stage_work stages[STAGE_COUNT];
    struct stage_work decode, prefill;      // whole steps, as in struct engine_metrics
    double most_bytes, most_operations;     // a second that the machine can do; 0: not known
    double cache_share;                     // of most_bytes, beyond which bytes come from caches; 0: all do
    bool busy;                              // otherwise that second is over
};

struct view_totals { // since the start; −1: not known
    int64_t read, reused; // tokens of prompts; of them, those found in the KV cache
    int64_t written;      // tokens of answers
    int64_t preemptions, failures;
};

struct view_memory { // bytes; −1: not known
    int64_t resident, free;           // of this process, and what it may still use
    int64_t repacked, mapped;         // weights: copied, and read where the file is mapped
    int64_t kv, buffers;              // of the engine
};

struct screen_view {
    const struct view_chat *chats;
    int n_chats, current;
    int n_listed;                        // of them, the first ones, which lists show
    const struct view_found *found;      // only while their pane is open
    int n_found;
    bool finding;                        // their texts are still being searched
    const struct view_message *messages; // of the current chat
    int n_messages;
    const char *model_name;              // e.g. "TinyLlama 1.1B Q4_0"
    const char *model_short;             // heads the model's messages
    int context_used, context_size;      // tokens
    bool context_guessed;                // context_used is
    int writing;                         // tokens that the message being written will take, about
    const struct engine_metrics *metrics; // NULL before the engine is up
    const struct view_loading *loading;   // NULL: no model is being loaded
    const struct view_serving *serving;   // NULL: no other programs are served
    const struct view_token *token;       // NULL: the cursor is on none, see screen_token
    const struct view_node *nodes;        // all messages of the current chat, in order of their making; only while
    int n_nodes;                          // their tree is open
    const struct view_context *context;   // NULL: its pane is not open
    const struct view_prompt *prompt;     // NULL: its pane is not open
    const char *template;                 // of the current chat, in short; NULL: the model's own
    bool raw;                             // it has none: its text is continued as it is
    const struct view_column *columns;    // the versions that are compared; only while that pane is open
    int n_columns, column;                // column: the one that the path leads through
    const struct view_message *asked;     // what they follow; NULL: nothing
    const struct view_setting *settings;  // all that can be set
    int n_settings;
    const struct view_model *models;      // to choose from
    int n_models;
    uint32_t models_version;              // changes with them
    bool models_looking;                  // there may be more
    const char *models_folder;            // where one's own are found; NULL: nowhere
    struct view_history decode, prefill, latency;
    const struct view_moment *moments; // of each sample of the latency; NULL: not known
    uint64_t samples;                  // that there were so far
    const struct timeline *timeline; // of the figures; NULL: not known
    struct view_totals totals;
    const struct view_time *time; // NULL before the engine is up
    const struct view_memory *memory;
    const struct log_entry *log; // the newest, oldest first
    int n_log;
    const struct sampling *sampling;     // of the current chat, or of the answer compared that is being written
    int collapse;                        // rows beyond which code and pastes are collapsed; 0: never
    int fan_out;                         // answers that are asked for at once, unless a person says how many
    int knob;                            // enum sampling_knob_id that is chosen
    const struct distribution *distribution; // of the current chat's last token; NULL: not known, or not to be seen
    const char *const *questions;        // worth asking in an empty chat; outlive the screen
    int n_questions;
    const char *editing;                 // whose text the composer has, e.g. "your message"; NULL: it has the draft
    bool unsaved;                        // messages are in memory only
    const char *status;                  // one line about what just happened; NULL: none
    bool status_bad;
};

#endif
