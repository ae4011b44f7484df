// Line edit: one short line of text being typed, for dialogs and the palette's filter. (The message itself is
// readline's.)
#ifndef CONFAB_UI_LINE_EDIT_H
#define CONFAB_UI_LINE_EDIT_H

#include "ui/terminal.h"

#define LINE_EDIT_BYTES 200

// A zeroed struct line_edit is empty.
struct line_edit {
    char text[LINE_EDIT_BYTES]; // NUL-terminated, valid UTF-8, no newlines
    size_t size, cursor;        // the cursor stands at a grapheme cluster
    bool selected;              // typing replaces all of it; moving the cursor keeps it
};

// The text is selected, as a value to be typed over; cut at a character when too long.
void line_edit_set(struct line_edit *e, const char *text);
bool line_edit_key(struct line_edit *e, const struct key *k); // false: the key means nothing here
// Draws the end of it that fits, with the cursor in sight; returns the cursor's column.
int line_edit_draw(const struct line_edit *e, struct canvas *c, struct rect line, struct style s);

#endif
