// The pane of the models to choose from, opened with a filter already typed.
#ifndef CONFAB_UI_PANE_MODELS_H
#define CONFAB_UI_PANE_MODELS_H

struct screen;

void models_open(struct screen *s, const char *filter);

#endif
