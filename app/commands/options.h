// Options: reads a command's line by the table of settings.
#ifndef CONFAB_APP_OPTIONS_H
#define CONFAB_APP_OPTIONS_H

#include <stdio.h>

#include "app/commands/command.h"

// Reads the options among argv[1..argc) into s; what remains are the arguments, argv[*first..argc). *help: --help was
// among them, nothing else counts then. On failure the message names the option.
bool options_read(struct settings *s, const struct command *command, int argc, char **argv, int *first, bool *help,
                  struct status *st);

void options_print(FILE *out, const struct command *command); // the text of --help
void options_print_overview(FILE *out);                       // the text of `confab help`

#endif
