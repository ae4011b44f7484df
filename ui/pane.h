// Pane: what each pane does, and what it may ask of the screen. Those beside the conversation are drawn where the
// layout has room for them; those that are opened stand in a stack over the message's pane, the one on top has the
// keys.
#ifndef CONFAB_UI_PANE_H
#define CONFAB_UI_PANE_H

#include "ui/terminal.h"
#include "ui/view.h"

// Stands at the foot of a pane's file; any but `draw` may be NULL.
struct pane {
    size_t keeps;               // bytes that last from frame to frame, zeroed at the start
    // On top: the rows that it takes of the message's room, at this width; NULL: it lies over the whole screen.
    int (*rows)(int width, bool ascii);
    bool letters;               // on top: each letter is a key by itself, also of those that come together
    // On top: a key that does something does it to what the last frame shows: it waits for one that shows what was
    // typed before it, and where the cursor was moved.
    bool as_shown;
    bool passes_on;             // on top: keys and clicks that mean nothing to it mean what they do without it
    void (*opened)(void *kept); // anew
    void (*closed)(void *kept); // with the screen: gives back what the bytes own
    void (*draw)(struct view_frame *f, struct rect area, void *kept); // with its border
    bool (*key)(struct screen *s, void *kept, const struct key *k);   // false: the key means nothing here
    // On something of its own; on top of the stack, a pane that can be clicked is closed by a click beside it.
    void (*click)(struct screen *s, void *kept, const struct hit *h);
    void (*wheel)(void *kept, int step); // −1: up, 1: down
    void (*wheel_on)(void *kept, const struct hit *h, int step); // in place of it, on something of its own
};
#define X(id, module, ...) extern const struct pane pane_##module;
PANES_FIXED(X)
PANES(X)
PANES_OVER(X)
#undef X
extern const struct pane *const pane_actions[PANE_COUNT]; // pane.c

void *screen_open_pane(struct screen *s, enum pane_id pane); // on top; returns what it keeps
void screen_close_pane(struct screen *s, enum pane_id pane);
void screen_run(struct screen *s, enum ui_command_id id); // as its key does
int screen_bound(const struct screen *s, const struct key *k); // the command of a key; −1: it has none
// To the controller; the text is copied.
void screen_hand_out(struct screen *s, enum ui_command_id id, int number, const char *text);
void screen_hand_out_message(struct screen *s, enum ui_command_id id, uint64_t message, const char *text); // about one
void screen_say(struct screen *s, bool bad, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
