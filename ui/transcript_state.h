// The state of the transcript, shared by transcript.c (what is asked of it), transcript_layout.c (the rows of one
// message), transcript_scroll.c (what of them is in sight), transcript_draw.c, transcript_text.c (the text cursor) and
// transcript_mouse.c. Nobody else includes this.
#ifndef CONFAB_UI_TRANSCRIPT_STATE_H
#define CONFAB_UI_TRANSCRIPT_STATE_H

#include "ui/block_cursor.h"
#include "ui/collapse.h"
#include "ui/markdown.h"
#include "ui/message_search.h"
#include "ui/thoughts.h"
#include "ui/transcript.h"

#define TRANSCRIPT_NAME 200 // bytes of a branch's name that are kept
#define THOUGHTS_INDENT 2   // columns

// The layout of the message at the same index. Heights: a heading line, the thinking (a line, and its rows when it is
// open), the rows, a note, a blank line between messages.
struct entry {
    uint64_t id;
    uint32_t revision;
    enum view_role role;
    int version, width;
    bool ascii, streaming, valid;
    struct markdown layout;
    bool by_token;
    int n_drawn;
    struct token_layout tokens;
    struct token_layout_options options; // that it was made with
    struct thoughts thoughts;
    struct collapse_parts parts; // that can be collapsed
    uint32_t parts_version;      // of t->collapse, as of which
};

struct position {
    uint64_t chat, message;
    int line, height; // of the message at the top of the pane: its first line in sight, and its height then
    int width;        // of the pane then
    bool follow;
    uint64_t seen_message; // what the end was when it was last in sight
    size_t seen_size;
};

struct text_spot { // a place in a text that outlasts draws; message 0: none
    uint64_t message;
    bool thinking;
    size_t at;
};

struct text_place { // the same in one draw; part −1: none
    int part;       // twice the message, and 1 behind its thinking
    size_t at;
};

struct text_range {
    struct text_place low, high; // behind the last
};

struct text_row { // that is drawn in a row of the pane; message 0: no text is
    uint64_t message;
    bool thinking;
    int row, x;
    size_t at; // its first letter
};

#define TEXT_STEPS 256 // between two draws
struct text_cursor {
    bool on;
    enum text_kind kind;
    struct text_spot at, anchor, pressed; // pressed: the mouse's button, and not let go since
    enum text_step steps[TEXT_STEPS];     // to be taken
    int n_steps;
    int column;        // that steps up and down keep to; −1: its own
    bool moved;        // it is to come into sight
    bool holds;        // what is in sight stays where it is under the mouse, though the pane gets lower
    int width, height; // of the pane at the last draw
    char *copied;      // NULL: nothing
    size_t copied_size;
    bool quotes; // what is copied is to be quoted
    // As of the last draw:
    struct text_range range;   // that is selected
    int part, row, row_column; // of the cursor
    int x, y;                  // −1: it is not in sight
    struct text_row *rows;     // [n_rows] from `top` of the screen on
    int n_rows, rows_room, top;
};

struct transcript {
    struct entry *entries;
    int n_entries;
    struct position *positions;
    int n_positions;
    uint64_t *open; // ids of the messages whose thinking is open
    int n_open;
    uint64_t thinking_in_sight; // the last message in sight that has some; 0: none
    uint64_t reveal;            // the message whose thinking is to be in sight at the next draw; 0: none
    uint64_t *shown;            // of the last draw: the ids of the messages, 0 of a notice
    int n_shown, shown_room, last_in_sight;
    uint64_t selected; // 0: none
    int selected_at;   // its place among those shown
    char selected_name[TRANSCRIPT_NAME];
    struct block_cursor block; // of the selected message
    struct collapse collapse;
    bool collapses;  // or expands what is selected, at the next draw
    uint64_t edited; // of the last draw; 0: none
    struct token_cursor cursor;
    enum token_colouring colouring;
    int *shown_tokens;  // of those shown: how many are known
    bool show_selected; // it is to come into sight at the next draw
    struct message_search search;
    struct text_cursor text;
    struct flow flow;
    int pending_lines, pending_pages;
    bool pending_top, pending_bottom;
    unsigned long layouts;
};

// What one draw works on.
struct drawing {
    struct transcript *t;
    struct view_frame *f;
    const struct screen_view *view;
    struct rect area;
};

struct place {
    int message, line;
};

// ---- transcript.c ----

int transcript_find_shown(const struct transcript *t, uint64_t id); // its place among those shown; −1: it is not there
bool transcript_is_open(const struct transcript *t, const struct view_message *m); // its thinking

// ---- transcript_layout.c ----

void transcript_make_room(struct transcript *t, int n);       // for the layouts of so many messages
struct entry *transcript_entry(struct drawing *p, int index); // laid out

// The heights of its parts, from the first one on, and of all of it.
int transcript_heading_rows(const struct view_message *m);
int transcript_thinking_rows(const struct transcript *t, const struct entry *e, const struct view_message *m);
int transcript_rows_before(const struct transcript *t, const struct entry *e, const struct view_message *m); // the text
int transcript_text_rows(const struct entry *e, const struct view_message *m);
int transcript_height(struct drawing *p, int index);

static inline const struct lines *transcript_lines(const struct entry *e) {
    return e->by_token ? &e->tokens.lines : &e->layout.lines;
}

static inline bool transcript_thinks(const struct view_message *m) {
    return m->streaming && m->thinking_size && !m->size;
}

// ---- transcript_scroll.c ----

struct position *transcript_position(struct transcript *t, uint64_t chat);
void transcript_forget_positions(struct transcript *t, const struct screen_view *v); // of chats that are gone
// The place at the top of the pane after all that was asked for since the last draw; *ends: the end is in sight.
struct place transcript_scrolled(struct drawing *p, struct position *at, bool *ends);

// ---- transcript_text.c ----

void transcript_text_apply(struct drawing *p);        // takes the steps, before it is scrolled
struct place transcript_text_line(struct drawing *p); // of the cursor
void transcript_text_begin_rows(struct drawing *p);   // none is drawn yet
// Over a row of a message's text as lines_draw drew it, at (x, y): what is selected of it.
void transcript_text_draw(struct drawing *p, int y, int message, bool thinking, const struct lines *l, int row, int x);

// ---- transcript_draw.c ----

void transcript_draw_from(struct drawing *p, struct place top); // at the top of the pane
// How many rows the head of a table covers there.
int transcript_head_rows(struct drawing *p, struct place top);

#endif
