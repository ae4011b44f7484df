// Model files: what may be done with those in confab's own folder of models: removed, and called by another name.
//
// Files of other programs are theirs: they are never touched. A copy takes no room: it is another link to the same
// file, or a symbolic one where that cannot be. Both may take long, and may be called from any thread.
#ifndef CONFAB_APP_MODEL_FILES_H
#define CONFAB_APP_MODEL_FILES_H

#include "app/models/models.h"

// Whether the model's file lies in confab's own folder, and not behind a link that leads out of it. False: a message
// says where it is.
bool model_files_own(const struct model_entry *e, struct status *st);

// Of all its parts. One that lies elsewhere, or is a folder, is refused with STATUS_USAGE.
bool model_files_delete(const struct model_entry *e, struct status *st);
// A file of this name in confab's own folder. The built-in one and folders are refused with STATUS_USAGE, and so is a
// name that exists, or is not one: letters, digits and "-_.:", a letter or digit first.
bool model_files_copy(const struct model_entry *e, const char *name, struct status *st);

// Of what these functions look at, for use on another thread. The caller frees its path.
struct model_entry model_files_entry_copy(const struct model_entry *e);

#endif
