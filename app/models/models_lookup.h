// Models lookup: searches for models on a thread of its own; lists names and sizes first, then with what headers say.
#ifndef CONFAB_APP_MODELS_LOOKUP_H
#define CONFAB_APP_MODELS_LOOKUP_H

#include "app/models/models.h"

struct models_lookup;

// notify_fd: an eventfd, written to when there is a list. opener: must stay valid until the process ends.
struct models_lookup *models_lookup_start(const struct model_opener *opener, int notify_fd);
// Moves the latest list to *out. False: it was taken already, or there is none yet.
bool models_lookup_take(struct models_lookup *l, struct model_list *out);
bool models_lookup_done(struct models_lookup *l);  // the last list was taken
void models_lookup_close(struct models_lookup *l); // does not wait

#endif
