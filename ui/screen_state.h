// The state of the screen, shared by screen.c (its life and drawing), screen_keys.c (its input), screen_commands.c
// (what comes of it) and the panes of the conversation and of the message. Nobody else includes this.
#ifndef CONFAB_UI_SCREEN_STATE_H
#define CONFAB_UI_SCREEN_STATE_H

#include "ui/completion.h"
#include "ui/composer.h"
#include "ui/layout.h"
#include "ui/pane.h"
#include "ui/text_field.h"
#include "ui/transcript.h"
#include "ui/window.h"

#define SCREEN_QUEUE  8
#define SCREEN_NOTICE 256
#define SCREEN_ANSWER 4096 // as long as a path may be

// What the last view said that keys need to know.
struct screen_facts {
    uint64_t chat;
    char title[TEXT_FIELD_BYTES], tags[TEXT_FIELD_BYTES];
    bool busy, loading, stoppable;
    bool animated; // a bar of loading moves by itself
    bool editing;
    int n_chats, current, knob, fan_out;
    int waiting;       // messages that are not sent yet
    uint64_t compared; // id of the message that the path leads through, of those compared; 0: none are
    struct sampling sampling;
    const char *const *questions;
};

// The line about what just happened.
enum notice_phase { NOTICE_GONE, NOTICE_FULL, NOTICE_FADING };
struct screen_notice {
    char text[SCREEN_NOTICE];
    bool bad;
    uint64_t since;           // clock_ns; 0: there is none
    enum notice_phase drawn;  // as the last frame showed it
    bool from_view;           // otherwise the screen itself said it
    char seen[SCREEN_NOTICE]; // the view's status when it was last drawn
};

// Presses of the mouse in one place, one soon after the other.
struct screen_presses {
    int x, y, count;
    uint64_t since; // clock_ns of the last one
};

#define BAR_STEP_MS 120 // of a bar that does not know how far it is

struct screen {
    struct terminal *terminal;
    struct canvas canvas;
    struct theme theme;
    bool ascii;
    bool titles; // the terminal's window is called as the chat is
    struct window window;
    uint32_t panes;
    bool panes_chosen; // otherwise they follow the size
    enum pane_arrangement arrangement;
    struct pane_sizes sizes;
    enum pane_id focus; // the pane that sizing and zooming are about
    bool zoomed;        // it is alone
    struct layout_edge dragged; // by the mouse
    bool dragging, moved;
    int grip; // where on the edge it was taken
    void *kept[PANE_COUNT];
    enum pane_id stack[PANE_COUNT]; // of those that are open: at the bottom the composer, the last one is on top
    int n_stack;
    struct layout layout;    // of the last frame
    struct view_frame frame; // of the last frame: what can be clicked
    struct composer *composer;
    struct completion completion; // of what is written there
    struct transcript *transcript;
    struct screen_facts facts;
    struct screen_notice notice;
    bool stale;              // it is to be drawn once more
    struct key rest;         // of letters that came together; of size 0: none
    bool ahead;              // keys came since the last frame
    bool waits;              // the key `late` does, for the next one
    struct key late;
    struct ui_command queue[SCREEN_QUEUE]; // handed out before more keys are read
    int n_queue;
    char answer[SCREEN_ANSWER]; // the text of a command that is handed out
    struct screen_presses presses;
    uint64_t escaped; // clock_ns of an Esc that closed nothing; 0: another key was last
    struct key keys[COMMAND_COUNT];
    bool bound[COMMAND_COUNT];
};

// screen_panes.c: which panes there are, how large, and which one is zoomed.
void screen_layout(struct screen *s, int width, int height);
void screen_choose_panes(struct screen *s, uint32_t set);
void screen_next_preset(struct screen *s);
void screen_focus_step(struct screen *s, int step); // opens the pane that says so where it is not open
void screen_zoom(struct screen *s);
void screen_size(struct screen *s, enum ui_command_id id); // COMMAND_WIDER and its like
// True: the mouse is moving a border, or begins to or ends it.
bool screen_drag(struct screen *s, const struct key *k);

static inline enum pane_id screen_top(const struct screen *s) { return s->stack[s->n_stack - 1]; }

#endif
