// Comparing: the versions of a message side by side, as a pane in the transcript's place.
#ifndef CONFAB_UI_PANE_COMPARE_H
#define CONFAB_UI_PANE_COMPARE_H

#include <stdbool.h>

bool compare_open_thinking(void *kept); // of the version in focus, or folds it; false: it has none in sight

#endif
