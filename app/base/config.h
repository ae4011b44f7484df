// Configuration: the file $XDG_CONFIG_HOME/confab/config. Lines are `key = value`, a comment begins with '#'; the keys are
// the settings that have IN_FILE among their places.
//
// The file belongs to the person: saving a value changes that one line, and everything else, comments and lines that
// confab does not understand included, stays as it was.
#ifndef CONFAB_APP_CONFIG_H
#define CONFAB_APP_CONFIG_H

#include "app/base/settings.h"

// Reads the file into s. A file that is not there is an empty one. For every line that cannot be used `warn` is called with
// a message that names file and line, and reading goes on.
typedef void config_warning(void *context, const char *message);
void config_load(struct settings *s, const char *path, config_warning *warn, void *context);

// Writes one setting of s into the file: atomically (a temporary file beside it, then a rename), over what is there now,
// so that two confabs do not undo each other's changes. Folders are made when missing.
bool config_save(const struct settings *s, int id, const char *path, struct status *st);

#endif
