// Flow: text on its way to being laid out. It collects a paragraph (or a block of code) in pieces of one style each;
// flow_break says what of it goes on the next line, and lines.h has what comes of it. It grows and is never shrunk.
#ifndef CONFAB_UI_FLOW_H
#define CONFAB_UI_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

struct flow_piece {
    uint32_t end; // offset in the text at which it ends; it begins where the one before ends
    struct style style;
};

// A zeroed struct flow is empty and ready for use.
struct flow {
    char *text; // "\n" is a line break; tabs have become blanks, other control bytes are kept for the canvas to show
    size_t size, capacity;
    struct flow_piece *pieces;
    size_t n_pieces, pieces_capacity;
    int column; // characters since the last line break: where tabs stop from
};

void flow_free(struct flow *f);
void flow_clear(struct flow *f);
void flow_add(struct flow *f, struct style style, const char *text, size_t size);
void flow_add_text(struct flow *f, struct style style, const char *text); // NUL-terminated

// Gives the text from the end of the last piece up to `end` a style; flow_restyle first takes all styles away.
void flow_style(struct flow *f, struct style style, size_t end);
void flow_restyle(struct flow *f);

// Where a line of `columns` that begins at text[at] must end, at < size: *end is set to the end of what is shown on it,
// and the start of the next line is returned (the blanks or the newline between are swallowed). Breaks at blanks,
// around wide characters and after hyphens; a word longer than a line is cut between grapheme clusters. Always
// advances.
size_t flow_break(const char *text, size_t size, size_t at, int columns, size_t *end);

// Room for `more` items of `size` bytes behind the `count` that are there.
void *flow_grown(void *items, size_t count, size_t more, size_t *capacity, size_t size);

#endif
