// Dialog: a question that takes the composer's place until it is answered.
#ifndef CONFAB_UI_DIALOG_H
#define CONFAB_UI_DIALOG_H

#include "ui/commands.h"
#include "ui/line_edit.h"

enum dialog_state { DIALOG_CLOSED, DIALOG_OPEN, DIALOG_ACCEPTED };

// A zeroed struct dialog is closed.
struct dialog {
    enum dialog_state state;
    enum ui_command_id command; // that it completes
    bool asks;                  // yes or no; otherwise a text is typed
    char label[160], hint[160];
    struct line_edit edit;
};

void dialog_text(struct dialog *d, enum ui_command_id command, const char *label, const char *hint,
                 const char *initial);
void dialog_confirm(struct dialog *d, enum ui_command_id command, const char *label);
void dialog_close(struct dialog *d);
// Every key is the dialog's while it is open; afterwards its state is OPEN, ACCEPTED (edit.text is the answer) or
// CLOSED.
void dialog_key(struct dialog *d, const struct key *k);
// *x is the cursor's column.
void dialog_draw(const struct dialog *d, struct canvas *c, struct rect area, int *x, int *y);

#endif
