#include "ui/pane.h"

const struct pane *const pane_actions[PANE_COUNT] = {
#define X(id, module, ...) [PANE_##id] = &pane_##module,
    PANES_FIXED(X) PANES(X) PANES_OVER(X)
#undef X
};
