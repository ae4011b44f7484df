// Why tokens were slow, as the latency pane opens it.
#ifndef CONFAB_UI_PANE_SLOW_H
#define CONFAB_UI_PANE_SLOW_H

#include <stdint.h>

struct screen;

void slow_open(struct screen *s, uint64_t sample); // with the cursor on it
void slow_open_at(struct screen *s, double seconds); // or on the one nearest to this clock_seconds(); 0: the slowest

#endif
