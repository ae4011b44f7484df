// Clamp: a number kept within bounds; where they cross, the lower one holds.
#ifndef CONFAB_UI_CLAMP_H
#define CONFAB_UI_CLAMP_H

static inline int clamp(int n, int low, int high) {
    if (n > high) n = high;
    return n < low ? low : n;
}

#endif
