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

#include "ui/text_motion.h"
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
void transcript_search_step(struct transcript *t, int step);      // to another match, round the ends
int transcript_search_count(const struct transcript *t, int *at); // at the last draw; *at: the one gone to, from 1 on

// The text cursor: on a letter of what is drawn, from which text is selected and copied. It begins at the match gone
// to, in the selected message or block, otherwise in the last row in sight; false: there is no text. Steps are taken,
// and what is copied is there, with the next draw.
enum text_kind { TEXT_NONE, TEXT_LETTERS, TEXT_LINES };
bool transcript_text_begin(struct transcript *t);
void transcript_text_end(struct transcript *t);
void transcript_text_step(struct transcript *t, enum text_step step);
void transcript_text_select(struct transcript *t, enum text_kind kind); // from here on; the same once more: no longer
enum text_kind transcript_text_kind(const struct transcript *t);
// What is selected, otherwise the line: to be had once with the next draw, for the clipboard or as a quotation. NULL:
// nothing was copied. The caller frees.
void transcript_text_copy(struct transcript *t, bool quote);
char *transcript_text_copied(struct transcript *t, size_t *size, bool *quote);
uint64_t transcript_text_message(const struct transcript *t);            // that it is in
bool transcript_text_cursor(const struct transcript *t, int *x, int *y); // at the last draw; false: not in sight
// The mouse at (x, y) of the last draw: a second press in one place selects the word, a third the line, dragging from
// where it was pressed. False: the cursor is as it was.
bool transcript_mouse_press(struct transcript *t, int x, int y, int presses);
bool transcript_mouse_drag(struct transcript *t, int x, int y);
void transcript_mouse_release(struct transcript *t);

enum transcript_below {
    TRANSCRIPT_AT_END,
    TRANSCRIPT_MORE_BELOW,
    TRANSCRIPT_NEW_BELOW
}; // new: arrived since the end was left
enum transcript_below transcript_draw(struct transcript *t, struct view_frame *f, struct rect area);

// Messages laid out ever; tests check by it that nothing is done twice.
unsigned long transcript_layouts(const struct transcript *t);

#endif
