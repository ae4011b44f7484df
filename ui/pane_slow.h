// Why tokens were slow, as the latency pane opens it.
#ifndef CONFAB_UI_PANE_SLOW_H
#define CONFAB_UI_PANE_SLOW_H

#include <stdint.h>

struct screen;

void slow_open(struct screen *s, uint64_t sample); // with the cursor on it
// On the slowest one of `span` seconds with this clock_seconds() in the middle; 0: of those in sight.
void slow_open_at(struct screen *s, double middle, double span);

#endif
