// Screen: the whole chat screen. It owns the terminal, the layout, scroll positions, the composer and open dialogs; it
// draws what a struct screen_view shows it and turns keys into commands. It holds no conversation of its own.
//
// One thread. The controller's loop: poll terminal + engine + timer → screen_input → handle commands → screen_draw.
#ifndef CONFAB_UI_SCREEN_H
#define CONFAB_UI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/metrics.h"
#include "ui/commands.h"
#include "ui/draft.h"

enum view_role { VIEW_USER, VIEW_MODEL, VIEW_NOTICE };

struct view_message {
    uint64_t id;
    uint32_t revision; // changes when text changes: the transcript keeps what it laid out of the others
    enum view_role role;
    const char *text;  // UTF-8, hostile; borrowed
    size_t size;
    const char *thinking;    // what the model thought before it; folded into a line unless a person opens it; NULL: nothing
    size_t thinking_size;
    int thinking_tokens;
    double thinking_seconds;
    int version, n_versions; // "‹2/3›" when n_versions > 1; 1-based
    bool streaming;
    const char *author; // heads it when a model wrote it; NULL: the model there is now
    const char *model;  // in full, where it is another than before; NULL: not to be said
    const char *note;  // e.g. "stopped", "38.2 tok/s, 120 tokens"; NULL: none
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
};

struct view_model { // one to choose; texts of one line, "" where nothing is known
    const char *name;
    const char *family, *parameters, *format, *size, *source, *path;
    bool loaded;
    const char *refusal; // why it cannot be loaded; NULL: it can
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

// Where the time of the last second went in which the engine worked.
struct view_time {
    struct stage_work stages[STAGE_COUNT];
    struct stage_work decode, prefill;      // whole steps, as in struct engine_figures
    double most_bytes, most_operations;     // a second that the machine can do; 0: not known
    double cache_share;                     // of most_bytes, beyond which bytes come from caches; 0: all do
    bool busy;                              // otherwise that second is over
};

struct screen_view {
    const struct view_chat *chats;
    int n_chats, current;
    const struct view_message *messages; // of the current chat
    int n_messages;
    const char *model_name;              // e.g. "TinyLlama 1.1B Q4_0"
    const char *model_short;             // heads the model's messages
    int context_used, context_size;      // tokens
    bool context_guessed;                // context_used is
    const struct engine_figures *figures; // NULL before the engine is up
    const struct view_loading *loading;   // NULL: no model is being loaded
    const struct view_model *models;      // to choose from
    int n_models;
    uint32_t models_version;              // changes with them
    bool models_looking;                  // there may be more
    struct view_history decode, prefill, latency;
    const struct view_time *time; // NULL before the engine is up
    const struct sampling *sampling;     // of the current chat
    int knob;                            // enum sampling_knob_id that is chosen
    const char *const *questions;        // worth asking in an empty chat; outlive the screen
    int n_questions;
    bool unsaved;                        // messages are in memory only
    const char *status;                  // one line about what just happened; NULL: none
    bool status_bad;
};

struct ui_command {
    enum ui_command_id id;
    int number;     // what was clicked on: index of the chat, knob, or message with versions; otherwise −1
    const char *text; // COMMAND_SEND: the message; COMMAND_RENAME, COMMAND_KNOB_SET: what was typed (the dialog already
                      // happened; COMMAND_DELETE: confirmed); COMMAND_MODEL: the name that was picked, NULL: the list was
                      // opened and is to be brought up to date. Valid until the next screen call.
};

struct screen_options {
    int input_fd, output_fd;
    const char *theme;       // name; NULL: "confab-dark"
    struct status *theme_problem; // filled in when it cannot be loaded, and the default one is shown
    bool ascii;
    int colours;             // 0: ask the terminal; 1 (mono), 16, 256, 1 << 24
    uint32_t boxes;          // bit d: box with raised digit d is shown; 0: default
    const char *history_path; // of the composer; NULL: not saved
};

struct screen;

// Takes the terminal over (raw, alternate screen, mouse, bracketed paste); every way out restores it.
struct screen *screen_open(const struct screen_options *o, struct status *st);
void screen_close(struct screen *s);

// Reads what waits on the input (never blocks) and hands out the commands it means, one a call; false when there are
// no more. Keys that edit, scroll, toggle boxes, switch themes or work in a dialog are handled inside; for those that
// change a setting (theme, boxes, ascii) the command is handed out too, after the fact, so that it can be saved.
bool screen_input(struct screen *s, struct ui_command *out);
bool screen_ended(const struct screen *s);                    // end of input: the terminal is gone
// Draws the view if anything differs from what is shown; only changed cells are written.
void screen_draw(struct screen *s, const struct screen_view *v);
// To wait on for room: the terminal has stalled and has not taken all of the last frame, which is then to be drawn
// again. −1: it has.
int screen_output_fd(const struct screen *s);
// Milliseconds until the screen wants to be drawn again by itself (animation, a pending key sequence, a fading status); −1: never.
int screen_timeout(const struct screen *s);
void screen_resized(struct screen *s);   // after SIGWINCH
void screen_suspend(struct screen *s);   // restores the terminal, stops the process, takes it over again
void screen_choose_model(struct screen *s, const char *filter); // opens the list; COMMAND_MODEL follows when one is picked
void screen_set_composer(struct screen *s, const char *text); // e.g. a message that could not be sent
void screen_draft(const struct screen *s, struct draft *out); // what stands in the composer; the caller frees
void screen_set_draft(struct screen *s, const struct draft *d); // of another chat

const char *screen_theme(const struct screen *s);
uint32_t screen_boxes(const struct screen *s);
uint32_t screen_boxes_with_room(const struct screen *s); // those of them that this size can show
bool screen_ascii(const struct screen *s);

// Copies text to the clipboard; says in `how` which way was taken and whether it can be known to have worked.
bool screen_copy(struct screen *s, const char *text, size_t size, char how[128]);

#endif
