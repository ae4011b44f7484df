// Models lookup: looks for models on a thread of its own: names and sizes first, then the same list with what headers tell.
#ifndef CONFAB_APP_MODELS_LOOKUP_H
#define CONFAB_APP_MODELS_LOOKUP_H

#include "app/models/models.h"

struct models_lookup;

struct models_lookup *models_lookup_start(int notify_fd); // an eventfd, written to when there is a list
// The latest list that was not taken yet, the caller's from now on; false when there is none.
bool models_lookup_take(struct models_lookup *l, struct model_list *out);
bool models_lookup_done(struct models_lookup *l); // nothing comes any more
void models_lookup_close(struct models_lookup *l); // never waits
#endif
