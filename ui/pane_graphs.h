// The graphs over time, as others open them.
#ifndef CONFAB_UI_PANE_GRAPHS_H
#define CONFAB_UI_PANE_GRAPHS_H

struct screen;

void graphs_open(struct screen *s, double seconds); // with the cursor at this clock_seconds(); 0: at the end

#endif
