// Screen text: what a canvas or a layout shows, as plain text that a test can compare.
#ifndef CONFAB_TESTS_SCREEN_TEXT_H
#define CONFAB_TESTS_SCREEN_TEXT_H

#include "ui/canvas.h"
#include "ui/lines.h"

// One line of text for each row, blanks at the ends of rows removed. The caller frees.
char *canvas_as_text(const struct canvas *c);
char *lines_as_text(const struct lines *l, int width);

#endif
