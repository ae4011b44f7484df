// Dialog: a question that takes the composer's place until it is answered; the answer goes out with its command.
#ifndef CONFAB_UI_PANE_DIALOG_H
#define CONFAB_UI_PANE_DIALOG_H

#include <stdint.h>

#include "ui/commands.h"

struct screen;

void dialog_ask(struct screen *s, enum ui_command_id command, const char *label, const char *hint, const char *initial);
void dialog_ask_name(struct screen *s, uint64_t message, const char *initial); // of the branch that begins there
void dialog_ask_tags(struct screen *s, const char *initial); // of the chat
// A setting's value; number: as of COMMAND_SETTINGS.
void dialog_ask_setting(struct screen *s, int number, const char *key, const char *hint, const char *initial);
void dialog_confirm(struct screen *s, enum ui_command_id command, const char *label); // yes or no

#endif
