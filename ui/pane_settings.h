// The pane of the settings, opened with a filter already typed.
#ifndef CONFAB_UI_PANE_SETTINGS_H
#define CONFAB_UI_PANE_SETTINGS_H

struct screen;

void settings_open(struct screen *s, const char *filter);

#endif
