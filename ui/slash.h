// Slash: what is typed behind a '/' is a command of the table or a setting, with what it is told, and never reaches the
// model. Two slashes send one.
#ifndef CONFAB_UI_SLASH_H
#define CONFAB_UI_SLASH_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/commands.h"

// The bytes of "/name" at the beginning of a message; 0: it is none, such as "/* a comment", "//", "/ " or a path.
size_t slash_size(const char *message);
const char *slash_argument(const char *message); // what is behind it, without blanks before it; "": nothing

struct slash {
    int command, setting; // of this name; −1: there is none
    const char *argument;
};
// Of a message of which slash_size is not 0.
struct slash slash_read(const char *message, const struct view_setting *settings, int n_settings);

#endif
