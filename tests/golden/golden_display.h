// Golden display: the terminal that a script's chat runs on. Input goes through a pseudo-terminal, output through a
// pipe into a terminal emulator; every byte that was sent is kept.
#ifndef CONFAB_TESTS_GOLDEN_DISPLAY_H
#define CONFAB_TESTS_GOLDEN_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vterm.h>

struct golden_display {
    int width, height;
    int master, input, output, pipe_end; // the chat has `input` and `output`
    VTerm *vterm;
    VTermScreen *screen;
    bool other_screen, mouse, cursor_visible; // modes as they are now
    char *sent;                               // everything so far
    size_t size, capacity;
    size_t looked_at;      // of it, by golden_display_foreign
    uint32_t changed;      // modes that are not as they were; a bit for each that confab changes
    bool shaped, coloured; // the cursor, and what would be written next
    int titles;            // of the window, that were put aside
};

void golden_display_open(struct golden_display *d, int width, int height);
void golden_display_close(struct golden_display *d);
void golden_display_resize(struct golden_display *d, int width, int height);
void golden_display_read(struct golden_display *d); // what was sent reaches the emulator
// Where in `sent` the first sequence begins that is not one of confab's own; −1: there is none.
long golden_display_foreign(struct golden_display *d);
// What of the terminal is not as it was before, by the sequences that golden_display_foreign has looked at; NULL: all
// is.
const char *golden_display_left(const struct golden_display *d);
void golden_display_forget(struct golden_display *d); // what was sent and looked at
char *golden_display_row(const struct golden_display *d, int y); // UTF-8 without trailing blanks; the caller frees
// What first cannot be made out against its ground, where both have colours of a theme; NULL: all can. The caller
// frees.
char *golden_display_faint(const struct golden_display *d);
// The whole screen as kept in .screen files: size and cursor, the rows, and with `styles` a letter for each cell's
// colours and attributes with a legend. The caller frees.
char *golden_display_text(const struct golden_display *d, bool styles);

#endif
