// Progress: a bar on standard error for work that takes a while, drawn on a terminal only.
#ifndef CONFAB_APP_PROGRESS_H
#define CONFAB_APP_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool shown;    // standard error is a terminal
    bool drawn;    // a bar is on its last line
    double start, last; // seconds, by the clock
};

struct progress progress_begin(void);
// done: 0 to 1; what: at work on this just now. Draws ten times a second at most.
void progress_draw(struct progress *p, double done, const char *what);
void progress_clear(struct progress *p); // before other lines are written, and at the end

#endif
