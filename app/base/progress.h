// Progress: draws a progress bar on standard error, if that is a terminal.
#ifndef CONFAB_APP_PROGRESS_H
#define CONFAB_APP_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool shown;         // standard error is a terminal
    bool drawn;         // a bar is on its last line
    double start, last; // clock_seconds()
};

struct progress progress_begin(void);
// done: 0 to 1; what: the current item. Draws at most ten times a second.
void progress_draw(struct progress *p, double done, const char *what);
void progress_clear(struct progress *p); // call before writing other lines, and at the end

#endif
