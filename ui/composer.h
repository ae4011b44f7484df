// Composer: the message being written. GNU readline edits it, so that a person's inputrc (vi mode, kill ring, undo,
// history search; `$if confab` for settings of its own) works as everywhere else; confab draws it.
//
// readline keeps its state in globals: there is one composer at a time. It reads bytes only from composer_bytes and
// writes nothing. A long paste is one character of the private use area in readline's buffer, drawn as
// "[pasted 120 lines]": it moves, is deleted, undone and yanked as a whole; composer_take puts the text back. The texts
// are kept as long as the composer, for undo and yank may bring a mark back at any time.
#ifndef CONFAB_UI_COMPOSER_H
#define CONFAB_UI_COMPOSER_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/worker.h"
#include "ui/canvas.h"
#include "ui/draft.h"

struct composer;

// The history's file is the worker's to write; NULL: the history is not saved.
struct composer *composer_open(const char *history_path, struct worker *worker);
void composer_close(struct composer *c);

void composer_bytes(struct composer *c, const char *bytes, size_t size); // keys, as the terminal sent them
// A function or cursor key: swallowed when nothing is bound to it (readline would insert its tail).
void composer_sequence(struct composer *c, const char *bytes, size_t size);
void composer_escape(struct composer *c); // Esc by itself
void composer_newline(struct composer *c);
void composer_paste(struct composer *c, const char *text, size_t size); // one edit; never sends
void composer_quote(struct composer *c, const char *text, size_t size); // pasted as a quotation, on lines of its own
// Up or down a line of what is drawn. False when there is none: the key is readline's (the history, or as inputrc
// says).
bool composer_up(struct composer *c);
bool composer_down(struct composer *c);
void composer_clear(struct composer *c); // into the kill ring: readline's yank brings it back
void composer_set(struct composer *c, const char *text); // the message just taken comes back as it was written

void composer_draft(const struct composer *c, struct draft *out); // what is written; the caller frees
// Another draft in place of what is written, which goes neither into the kill ring nor into the history. Undo does not
// lead from one to the other.
void composer_set_draft(struct composer *c, const struct draft *d);

// As it stands there, with a mark for each folded paste; valid until it changes. *point: the cursor's offset.
const char *composer_line(const struct composer *c, size_t *point);
void composer_replace(struct composer *c, size_t from, size_t to, const char *text); // of that line; one edit

// The text in place of what is written, in which the pastes that are left stay folded. Undo does not lead back.
void composer_rewrite(struct composer *c, const char *text);

bool composer_empty(const struct composer *c);
size_t composer_size(const struct composer *c); // bytes of the message, with those of its pastes
bool composer_searching(const struct composer *c); // readline asks for something (history search): Enter ends that
void composer_leave_search(struct composer *c); // what was written before it is there again
bool composer_takes_escape(const struct composer *c); // Esc is a key of readline's own: in vi mode, in a search
void composer_keep_history(struct composer *c, bool keep); // whether the file of the history gets what is taken
// The message, added to the history; the composer is empty afterwards. NULL when there is nothing but blanks, or when
// Enter only ended a search. Valid until the next call.
const char *composer_take(struct composer *c);

int composer_lines(struct composer *c, int columns); // lines that it needs at this width
// Draws it, scrolled so that the cursor is in sight; *x, *y: where the cursor is.
void composer_draw(struct composer *c, struct canvas *canvas, struct rect area, int *x, int *y);

#endif
