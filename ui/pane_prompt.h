// The pane of the prompt, token by token, below the transcript.
#ifndef CONFAB_UI_PANE_PROMPT_H
#define CONFAB_UI_PANE_PROMPT_H

#include "ui/layout.h"

// The transcript gives it room; where it is short it lies over it. NULL: the prompt is not known.
void prompt_make_room(struct layout *l, const struct view_prompt *prompt);

#endif
