// Keys: which key each command has: the person's own where the configuration names one, otherwise the one of the table
// of commands. They are bound once, at the start, before anything shows or reads a key.
#ifndef CONFAB_UI_KEYS_H
#define CONFAB_UI_KEYS_H

#include <stdbool.h>

#include "engine/base/status.h"
#include "ui/commands.h"
#include "ui/terminal.h"

// Lines "COMMAND KEY", of which the last one about a command counts; the key "none" takes its key from it, and
// so does a line that gives its key of the table to another command. False when some cannot be bound: the message names
// all of them, and those commands keep the keys of the table.
bool keys_bind(const char *const *lines, int count, struct status *st);

const char *keys_name(enum ui_command_id id); // "Ctrl+N"; "": it has none
// The same where there is little room: "^N".
const char *keys_short_name(enum ui_command_id id, char out[KEY_NAME]);

#endif
