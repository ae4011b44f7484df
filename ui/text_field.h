// Text field: one short line of text being typed, for dialogs and the palette's filter. (The message itself is
// readline's.)
#ifndef CONFAB_UI_TEXT_FIELD_H
#define CONFAB_UI_TEXT_FIELD_H

#include "ui/terminal.h"
#include "ui/view.h"

#define TEXT_FIELD_BYTES 500

// A zeroed struct text_field is empty.
struct text_field {
    char text[TEXT_FIELD_BYTES]; // NUL-terminated, valid UTF-8, no newlines
    size_t size, cursor;        // the cursor stands at a grapheme cluster
    bool selected;              // typing replaces all of it; moving the cursor keeps it
};

// The text is selected, as a value to be typed over; cut at a character when too long.
void text_field_set(struct text_field *e, const char *text);
bool text_field_key(struct text_field *e, const struct key *k); // false: the key means nothing here
// Draws the end of it that fits, with the cursor in sight; returns the cursor's column.
int text_field_draw(const struct text_field *e, struct canvas *c, struct rect line, struct style s);
// As the filter in the first line of a pane, which has the cursor; the hint shows while it is empty.
void text_field_draw_filter(const struct text_field *e, struct view_frame *f, struct rect in, const char *hint);

#endif
