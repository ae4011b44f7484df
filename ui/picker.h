// Picker: a box over the screen with the models to choose from: those that match what is typed, one chosen. It keeps what it
// needs of the list between frames, so that keys that come before the next one find it.
#ifndef CONFAB_UI_PICKER_H
#define CONFAB_UI_PICKER_H

#include "ui/line_edit.h"
#include "ui/view.h"

struct picker_model {
    char *name, *search, *refusal; // search: what is matched
    bool loaded;
};

// A zeroed struct picker is closed.
struct picker {
    bool open;
    struct line_edit filter;
    int chosen; // of the matches
    bool moved; // by a person; otherwise the loaded model is the chosen one
    int scroll, height;
    uint32_t version; // of the list that is kept
    struct picker_model *models;
    int count;
};

void picker_open(struct picker *p, const char *filter);
void picker_close(struct picker *p); // gives back what it keeps too

// Every key is the picker's while it is open. Returns the model that was picked, NULL: none.
const struct picker_model *picker_key(struct picker *p, const struct key *k);
void picker_scroll(struct picker *p, int rows);
const struct picker_model *picker_at(const struct picker *p, int row); // of the matches
void picker_draw(struct picker *p, struct view_frame *f, int *cursor_x, int *cursor_y);

#endif
