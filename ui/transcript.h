// Transcript: the messages of the chat on screen, laid out and scrolled.
//
// A message is laid out when it comes into sight and again only when its revision, role or the width changes; the one
// that streams goes on where it stopped (markdown.h, thoughts.h). What a model thought is one line until it is opened;
// messages and code may be collapsed (collapse.h). A table that began above what is in sight keeps its head at the top.
// The position of every chat is kept as a message and a line in it, so that text which arrives below, or a resize,
// moves nothing; only a chat at its end follows its end. A message may be selected: it is marked, comes into sight, and
// stays there whatever arrives.
#ifndef CONFAB_UI_TRANSCRIPT_H
#define CONFAB_UI_TRANSCRIPT_H

#include "ui/token_cursor.h"
#include "ui/token_layout.h"
#include "ui/view.h"

struct transcript;

struct transcript *transcript_open(void);
void transcript_close(struct transcript *t);

// All of these take effect at the next draw, for the chat that it shows.
void transcript_scroll(struct transcript *t, int lines); // < 0: up
void transcript_pages(struct transcript *t, int pages);
void transcript_top(struct transcript *t);
void transcript_bottom(struct transcript *t);

// Opens or folds the thinking of the last message in sight that has some; false when none has.
bool transcript_open_thinking(struct transcript *t);
void transcript_click_thinking(struct transcript *t, int message); // of the message with this index at the last draw

// Selects the message with this id of a view (0: none), or one before or after the selected one; where none is, the
// last one in sight. False: there is no other in this direction. Notices are passed over.
void transcript_select(struct transcript *t, uint64_t id);
bool transcript_select_step(struct transcript *t, int step);
uint64_t transcript_selected(const struct transcript *t);             // 0: none
const char *transcript_selected_name(const struct transcript *t);     // of its branch, at the last draw; "": none
uint64_t transcript_message(const struct transcript *t, int message); // id of the one with this index at the last draw

// The block cursor: on one of the selected message's blocks (message_blocks.h), the first or the last one. A step
// beyond its ends leads to the message before or after it; false: there is none.
void transcript_block_begin(struct transcript *t, bool last);
void transcript_block_end(struct transcript *t);
bool transcript_block_step(struct transcript *t, int step);
int transcript_block(const struct transcript *t); // from 1 on; 0: the whole message is selected

// Collapses the selected message or the block of code chosen in it to its first rows, or expands it again.
void transcript_collapse(struct transcript *t);
void transcript_click_collapse(struct transcript *t, int part); // of a hit of the last draw

// The token cursor: the answer that it is on is laid out token by token. It begins on the message that is selected,
// otherwise on the last one in sight whose tokens are known; false when there is none.
bool transcript_tokens_begin(struct transcript *t);
void transcript_tokens_end(struct transcript *t);
struct token_cursor *transcript_token_cursor(struct transcript *t);
void transcript_token_click(struct transcript *t, int row, int column); // of the answer's layout at the last draw
// Colours answers in another way, and returns it.
enum token_colouring transcript_colour_tokens(struct transcript *t);

// Looks for a text ("": for none) from the next draw on: goes to the nearest match above what is in sight, and marks
// all of them.
void transcript_search(struct transcript *t, const char *text);
void transcript_search_step(struct transcript *t, int step);        // to another match, round the ends
int transcript_search_count(const struct transcript *t, int *at);   // at the last draw; *at: the one gone to, from 1 on

enum transcript_below {
    TRANSCRIPT_AT_END,
    TRANSCRIPT_MORE_BELOW,
    TRANSCRIPT_NEW_BELOW
}; // new: arrived since the end was left
enum transcript_below transcript_draw(struct transcript *t, struct view_frame *f, struct rect area);

// Messages laid out ever; tests check by it that nothing is done twice.
unsigned long transcript_layouts(const struct transcript *t);

#endif
