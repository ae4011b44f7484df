// The pane of the token cursor: what the model thought of one token of an answer. The transcript has the cursor.
#ifndef CONFAB_UI_PANE_TOKENS_H
#define CONFAB_UI_PANE_TOKENS_H

struct screen;

void tokens_open(
    struct screen *s); // on the selected answer, otherwise the last one in sight; or says that there is none
void tokens_fork(struct screen *s);   // with the alternative that is chosen
void tokens_colour(struct screen *s); // answers, by what comes next in the list

#endif
