// Clipboard: text to the clipboard by whatever way there is, and the truth about which it was.
#ifndef CONFAB_UI_CLIPBOARD_H
#define CONFAB_UI_CLIPBOARD_H

#include "ui/terminal.h"

// A tool of the desktop (wl-copy, xclip, xsel, pbcopy) that reports success, else OSC 52 to the terminal, of which
// nobody can know what came of it. `how` is a phrase for people; false: no way worked.
bool clipboard_copy(struct terminal *t, const char *text, size_t size, char how[128]);

#endif
