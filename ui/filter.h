// Filter: whether a text has every word that was typed, letter case aside.
#ifndef CONFAB_UI_FILTER_H
#define CONFAB_UI_FILTER_H

#include <stdbool.h>

bool filter_matches(const char *filter, const char *text);

#endif
