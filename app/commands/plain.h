// Plain: the chat as lines, for screen readers and terminals that cannot move their cursor. What is typed is sent, the
// answer comes as it is generated, and nothing that was written is drawn again.
#ifndef CONFAB_APP_PLAIN_H
#define CONFAB_APP_PLAIN_H

#include "app/base/settings.h"

bool plain_wanted(const struct settings *s); // asked for, or the terminal is of that kind
// Reads lines of standard input until it ends or "/quit". False: the model or the store cannot be used, or something
// could not be saved.
bool plain_run(const struct settings *s, struct status *st);

#endif
