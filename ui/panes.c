#include "ui/panes.h"

#include "ui/view.h"

const struct pane_info panes[PANE_COUNT] = {
#define X(id, module, title, key, help, side, rows, weight, rank, unasked, presets)                                    \
    [PANE_##id] = {#module, title, side, rows, weight, rank, unasked, presets, &pane_##module},
    PANES(X)
#undef X
};
