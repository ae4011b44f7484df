// Window: that the terminal is in: its title, and notices that reach a person who looks elsewhere. Texts are cleaned.
#ifndef CONFAB_UI_WINDOW_H
#define CONFAB_UI_WINDOW_H

#include "ui/terminal.h"

struct window {
    char *title;    // that it was given last; NULL: none
    unsigned taken; // terminal_taken then
};

// "TITLE - confab"; once, unless the terminal was given back meanwhile. What it was called before comes back then.
void window_set_title(struct window *w, struct terminal *t, const char *title);
void window_close(struct window *w);

enum window_notice { WINDOW_NOTICE_NONE, WINDOW_NOTICE_BELL, WINDOW_NOTICE_OSC9, WINDOW_NOTICE_OSC777 };
void window_notify(struct terminal *t, enum window_notice kind, const char *title); // of a chat that has an answer

#endif
