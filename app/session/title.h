// Title: what of a model's words can be the title of a chat.
#ifndef CONFAB_APP_TITLE_H
#define CONFAB_APP_TITLE_H

#include <stdbool.h>
#include <stddef.h>

// The first line that says something short, without markup, quotation marks and "Title:" around it, and without control
// characters. `whole`: false where the last line may go on. NULL: there is none. The caller frees.
char *title_of_answer(const char *text, size_t size, bool whole);

#endif
