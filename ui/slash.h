// Slash: what is typed behind a '/' is a command of the table, with what it is told, and never reaches the model. Two
// slashes send one.
#ifndef CONFAB_UI_SLASH_H
#define CONFAB_UI_SLASH_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/commands.h"

// The bytes of "/name" at the beginning of a message; 0: it is none, such as "/* a comment", "//" or "/ ".
size_t slash_size(const char *message);

struct slash {
    int command;          // −1: there is none of this name
    const char *argument; // what is behind it, without blanks before it; "": nothing
};
struct slash slash_read(const char *message); // of which slash_size is not 0

#endif
