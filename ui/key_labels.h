// Key labels: lines that say what keys do, each a label that can be clicked, in few words where there is little room.
#ifndef CONFAB_UI_KEY_LABELS_H
#define CONFAB_UI_KEY_LABELS_H

#include "ui/view.h"

struct key_label {
    const char *key, *text, *brief;
    int number; // of its HIT_CHOICE; −1: it cannot be clicked
};

// Rows that it takes to show all of them in full, `most` at most.
int key_labels_rows(const struct key_label *labels, int count, int width, int most);
// From the first on as far as there is room.
void key_labels_draw(const struct key_label *labels, int count, struct view_frame *f, struct rect area);

#endif
