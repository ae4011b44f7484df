// Configuration: reads and writes $XDG_CONFIG_HOME/confab/config. Lines are `key = value`; comments begin with '#'; the
// keys are the settings that have IN_FILE among their places.
//
// The file belongs to the user: saving a setting changes that one line and leaves everything else as it was, including
// comments and lines that confab does not understand.
#ifndef CONFAB_APP_CONFIG_H
#define CONFAB_APP_CONFIG_H

#include "app/base/settings.h"

// Reads the file into s. A missing file counts as empty. Calls `warn` for every invalid line, with a message that names
// file and line, and reads on.
typedef void config_warning(void *context, const char *message);
void config_load(struct settings *s, const char *path, config_warning *warn, void *context);

// Saves one setting of s, of a list all its texts. The file is read again and replaced atomically (a temporary file,
// then a rename), so that two processes do not undo each other's changes. Missing folders are created.
bool config_save(const struct settings *s, int id, const char *path, struct status *st);

// Writes the settings that have OF_CONVERSATION among their places as lines, to be stored elsewhere, and reads them
// back, ignoring lines that are invalid or of other settings. The caller frees the lines.
char *config_write_conversation(const struct settings *s);
void config_read_conversation(struct settings *s, const char *lines);

#endif
