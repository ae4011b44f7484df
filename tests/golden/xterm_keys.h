// What an xterm sends for what a person does.
#ifndef CONFAB_TESTS_XTERM_KEYS_H
#define CONFAB_TESTS_XTERM_KEYS_H

#include "ui/terminal.h"

#define XTERM_BYTES 64

size_t xterm_key(const struct key *k, char out[XTERM_BYTES]); // 0: it sends nothing
// button: 0 to 2, 64 and 65 for the wheel up and down; + 32: moved while held. x, y: from 0 on.
size_t xterm_mouse(int button, int x, int y, bool release, char out[XTERM_BYTES]);

#endif
