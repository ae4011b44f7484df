// Path list: the names in a folder, for who completes paths. Disks may be slow: a worker reads them.
#ifndef CONFAB_UI_PATH_LIST_H
#define CONFAB_UI_PATH_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/worker.h"

struct path_list;

struct path_list *path_list_open(struct worker *w); // NULL: nothing is ever found
void path_list_close(struct path_list *l);

// The names in the folder, in order, folders with a '/' at their end; hidden ones are left out. None until they are
// read. Valid until the worker is collected.
int path_list_names(struct path_list *l, const char *folder, size_t size, char *const **names);
void path_list_forget(struct path_list *l); // they are read afresh when they are next wanted
bool path_list_news(struct path_list *l);   // they have been read since this was last called

#endif
