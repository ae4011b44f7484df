// Pane sizes: how large a person wants the panes beside the chat, in cells, whatever the screen's size is now; the
// layout gives what fits. Kept as text in the configuration.
#ifndef CONFAB_UI_PANE_SIZES_H
#define CONFAB_UI_PANE_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/panes.h"

// A pane by its id; behind them the areas at the sides of the chat and above it. Of a pane, rows count in a column and
// columns in a row of panes; of an area the one that is not given by the screen.
enum size_id { SIZE_LEFT = PANES_END, SIZE_RIGHT, SIZE_ABOVE, SIZE_COUNT };

struct pane_sizes {
    struct pane_size {
        int16_t columns, rows; // 0: as the layout sees fit
    } of[SIZE_COUNT];
};

struct pane_choice { // what a person has chosen
    uint32_t shown;  // bit p: enum pane_id p is shown beside the conversation; 0: nobody has chosen
    enum pane_arrangement arrangement;
    struct pane_sizes sizes;
};

enum { PANE_SIZE_MOST = 1000, PANE_SIZES_TEXT = 256 };

// "left=30x0 chats=0x12": COLUMNSxROWS of those that are set. False: *bad is the first word, of *size bytes, that
// means nothing.
bool pane_sizes_parse(struct pane_sizes *sizes, const char *text, const char **bad, size_t *size);
const char *pane_sizes_format(const struct pane_sizes *sizes, char out[PANE_SIZES_TEXT]);

#endif
