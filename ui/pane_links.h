// The pane with the links of a message.
#ifndef CONFAB_UI_PANE_LINKS_H
#define CONFAB_UI_PANE_LINKS_H

#include <stdint.h>

struct screen;

void links_open(struct screen *s, uint64_t message); // 0: of the last answer

#endif
