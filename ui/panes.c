#include "ui/panes.h"

const struct pane_info panes[PANE_COUNT] = {
#define X(id, module, title, key, help, side, rows, weight, rank, unasked, presets)                                    \
    [PANE_##id] = {#module, title, side, rows, weight, rank, unasked, presets},
    PANES(X)
#undef X
#define X(id, module, title, command) [PANE_##id] = {#module, title, 0, 0, 0, 0, 0, 0},
        PANES_OVER(X)
#undef X
};
