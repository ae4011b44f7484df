// History: the messages written before, one a line in a file ("\n" and "\\" stand for newlines and backslashes).
// readline holds the list itself.
#ifndef CONFAB_UI_HISTORY_H
#define CONFAB_UI_HISTORY_H

#include "engine/base/worker.h"

void history_load(const char *path); // into readline's list; a missing file is an empty history
// To the list and the file (when path is not NULL), which the worker writes. Of a very long message the file has
// nothing, the list its line with the pastes folded.
void history_append(const char *path, struct worker *worker, const char *message, const char *folded);

#endif
