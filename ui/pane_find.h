// Find: the pane to find a chat in.
#ifndef CONFAB_UI_PANE_FIND_H
#define CONFAB_UI_PANE_FIND_H

#include "ui/panes.h"

const char *find_words(const void *kept, enum find_order *order); // that are looked for: what the pane keeps

#endif
