// View: the panes of the screen. Each draws what a struct screen_view shows into its rectangle, by role, and says which
// places can be clicked. Views keep nothing between frames; what lasts (scroll positions, layouts) is in
// struct transcript, struct composer and the screen.
#ifndef CONFAB_UI_VIEW_H
#define CONFAB_UI_VIEW_H

#include "ui/canvas.h"
#include "ui/layout.h"
#include "ui/screen.h"

// number: the command, chat, knob, row of an overlay, question, message of the transcript
enum hit_kind {
    HIT_COMMAND,
    HIT_CHAT,
    HIT_KNOB,
    HIT_ROW,
    HIT_QUESTION,
    HIT_THINKING,
    HIT_VERSION_PREVIOUS,
    HIT_VERSION_NEXT
};
struct hit {
    struct rect area;
    enum hit_kind kind;
    int number;
};

#define VIEW_HITS 256
struct view_frame {
    struct canvas *canvas;
    const struct screen_view *view;
    struct hit hits[VIEW_HITS]; // those drawn later lie on top
    int n_hits;
    bool without_colours; // what colours would tell apart must differ in shape
};

void frame_hit(struct view_frame *f, struct rect area, enum hit_kind kind, int number);
const struct hit *frame_find(const struct view_frame *f, int x, int y); // NULL: nothing there

// ---- panes ----

// What a pane does, at the foot of its file; any but `draw` may be NULL.
struct pane {
    size_t keeps; // bytes that last from frame to frame, zeroed at the start
    void (*draw)(struct view_frame *f, struct rect box, void *kept); // with its border
    void (*wheel)(void *kept, int step);                             // −1: up, 1: down
};
#define X(id, module, ...) extern const struct pane pane_##module;
PANES(X)
#undef X

void view_welcome(struct view_frame *f, struct rect area);
void view_loading(struct view_frame *f, struct rect line, uint64_t step); // what is being loaded, how far it is; step: of a
                                                                          // bar that does not know
void view_gauge(struct view_frame *f, struct rect line); // tokens of the context, on a border or rule

struct view_status {
    const char *text; // NULL: the knobs are shown
    bool bad, fading;
};
void view_sampling(struct view_frame *f, struct rect line, struct view_status status);

// ---- what they share ----

struct style view_style(enum theme_role role);
struct style view_bold(enum theme_role role);
struct rect view_inside(struct rect box); // the room that view_pane leaves
// A pane's border with its clickable title, or this one; returns the room inside.
struct rect view_pane(struct view_frame *f, struct rect box, enum pane_id pane, const char *title);
// "label value" in one of the figure panes: label dim. Returns the columns advanced.
int view_figure(struct view_frame *f, struct rect clip, int x, int y, const char *label, enum theme_role role,
                const char *value);
// The same right-aligned in clip, unless it would reach left of `from`.
void view_figure_right(struct view_frame *f, struct rect clip, int from, int y, const char *label, enum theme_role role,
                       const char *value);

#define VIEW_NUMBER 32
const char *view_number(long long n, char out[VIEW_NUMBER]);     // "12,040"
const char *view_rate(double per_second, char out[VIEW_NUMBER]); // "41.8", "512", "1.2k"
const char *view_seconds(double seconds, char out[VIEW_NUMBER]); // "88 ms", "2.10 s"
const char *view_key(const char *key, char out[VIEW_NUMBER]);    // "C-p" → "^P", "M-Up" → "Alt+Up"

#endif
