// Completion: what the word before the cursor may become, in a list over the message: behind a '/' commands, behind an
// '@' files and folders, from which a file is attached. It has little of its own: what is in it follows from the
// message.
#ifndef CONFAB_UI_COMPLETION_H
#define CONFAB_UI_COMPLETION_H

#include "ui/commands.h"
#include "ui/composer.h"
#include "ui/list.h"
#include "ui/path_list.h"

enum { COMPLETION_ROWS = 200 };

struct completion {
    struct list list;
    int rows[COMPLETION_ROWS]; // commands, from COMMAND_COUNT on settings; or places among the names
    const struct view_setting *settings; // that can be named too
    int n_settings;
    struct path_list *paths;
    char *const *names; // of files; NULL: they are commands and settings
    size_t from, to;    // what a row takes the place of
    char *into;         // the line up to the end of the last folder that was gone into; NULL: none was
    size_t into_from;   // where its path begins there
    bool left;          // by Esc; until nothing can be completed
    bool editing;       // an old message: a '/' is no command there
};

void completion_open(struct completion *c, struct worker *reader); // reader: of folders; NULL: no files are found
void completion_close(struct completion *c);
void completion_update(struct completion *c, const struct composer *message); // after whatever may have changed it
// Before anything else has the key; false: it is not the list's.
bool completion_key(struct completion *c, struct screen *s, struct composer *message, const struct key *k);
void completion_take(struct completion *c, struct screen *s, struct composer *message, int row);
void completion_draw(struct completion *c, struct view_frame *f);

#endif
