// The tree of a conversation, as a pane that is opened over the others.
#ifndef CONFAB_UI_PANE_TREE_H
#define CONFAB_UI_PANE_TREE_H

struct screen;

void tree_open(struct screen *s); // with the selected message chosen, otherwise the end of the path

#endif
