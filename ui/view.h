// View: a frame being drawn, and what panes share in drawing. A pane draws what a struct screen_view shows into its
// rectangle, by role, and says which places can be clicked.
#ifndef CONFAB_UI_VIEW_H
#define CONFAB_UI_VIEW_H

#include "ui/canvas.h"
#include "ui/layout.h"
#include "ui/screen.h"

// number: the command, likewise of a choice, chat, knob, row of a list, question, index of a message of the transcript,
// place in the line of those that wait, row of the answer that has the token cursor, part to
// collapse (transcript.h)
enum hit_kind {
    HIT_COMMAND,
    HIT_CHAT,
    HIT_KNOB,
    HIT_ROW,
    HIT_QUESTION,
    HIT_MESSAGE,
    HIT_CHOICE,
    HIT_THINKING,
    HIT_VERSION_PREVIOUS,
    HIT_VERSION_NEXT,
    HIT_WAITING,
    HIT_TOKEN,
    HIT_COLLAPSE,
    HIT_TEXT
};
struct hit {
    struct rect area;
    enum pane_id pane; // that drew it
    enum hit_kind kind;
    int number;
    int x, y; // of a click: where in the area
};

struct view_status {
    const char *text; // NULL: there is none
    bool bad, fading;
};

#define VIEW_HITS 256
struct view_frame {
    struct canvas *canvas;
    const struct screen_view *view;
    struct hit hits[VIEW_HITS]; // those drawn later lie on top
    int n_hits;
    bool without_colours; // what colours would tell apart must differ in shape
    const struct layout *layout;
    struct view_status status; // what just happened
    bool escape_is_typed;      // it is a key of the message's
    uint64_t bar_step;         // of a bar that does not know how far it is
    enum pane_id pane;         // that is drawing
    enum pane_id focus;        // that is marked; PANE_COUNT: none
    int cursor_x, cursor_y;    // where the cursor is to be shown; x < 0: nowhere
};

void frame_hit(struct view_frame *f, struct rect area, enum hit_kind kind, int number);
const struct hit *frame_find(const struct view_frame *f, int x, int y); // NULL: nothing there

void view_welcome(struct view_frame *f, struct rect area); // in a chat without messages

// ---- what they share ----

const struct view_chat *view_chat(const struct screen_view *v); // the current one; NULL: none
uint64_t view_chat_id(const struct screen_view *v);             // 0: none
// What heads a message; author: that wrote it, NULL: the model there is now.
const char *view_author(const struct screen_view *v, enum view_role role, const char *author);

struct style view_style(enum theme_role role);
struct style view_bold(enum theme_role role);
// The border of a pane that is not over the others, as canvas_box; the one in focus is marked.
void view_box(struct view_frame *f, struct rect box, enum pane_id pane, int digit, const char *title, const char *note);
// Fills a line that is chosen; the style of all that it says: other colours suit the ground only.
struct style view_chosen(struct view_frame *f, struct rect line);
struct rect view_inside(struct rect box); // the room that view_pane leaves
// A pane's border with its clickable title, or this one; returns the room inside.
struct rect view_pane(struct view_frame *f, struct rect box, enum pane_id pane, const char *title);

// The border of a pane over the others, in the middle of `area`: what lies below is hidden and cannot be clicked.
struct view_size {
    int width, height; // that it would like to have
    int most;          // rows
};
struct rect view_over(struct view_frame *f, struct rect area, struct view_size size, enum pane_id pane,
                      const char *note);
struct rect view_over_inside(struct rect box);
struct rect view_padded(struct rect r); // a blank column at either side where it is wide
#define VIEW_WHEEL_LINES 3
// "label value" in one of the figure panes: label dim. Returns the columns advanced.
int view_figure(struct view_frame *f, struct rect clip, int x, int y, const char *label, enum theme_role role,
                const char *value);
// The same right-aligned in clip, unless it would reach left of `from`.
void view_figure_right(struct view_frame *f, struct rect clip, int from, int y, const char *label, enum theme_role role,
                       const char *value);

// The text of a token: blanks and line ends are a part of it, so that they are to be seen.
void view_token(struct view_frame *f, struct rect clip, struct style style, const char *text);
#define VIEW_NUMBER 32
// The newest samples of a history, the largest one at the top, which is named there; where there is room with a scale
// in the first `scale` columns, and a line that says how long it is. Returns where the graph itself is.
struct rect view_graph(struct view_frame *f, struct rect r, enum theme_role role, struct view_history h, int scale,
                       const char *format(double value, char out[VIEW_NUMBER]));

#define VIEW_WORDS 200
const char *view_words(const char *text, size_t size, char out[VIEW_WORDS]); // the beginning of a text in one line
const char *view_number(long long n, char out[VIEW_NUMBER]);     // "12,040"
const char *view_rate(double per_second, char out[VIEW_NUMBER]); // "41.8", "512", "1.2k"
const char *view_seconds(double seconds, char out[VIEW_NUMBER]); // "88 ms", "2.10 s"
const char *view_bytes(double bytes, char out[VIEW_NUMBER]);      // "64 MiB", "1.1 GiB"

#endif
