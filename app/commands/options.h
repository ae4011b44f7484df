// Options: parses a command's options, following the table of settings, and prints its help.
#ifndef CONFAB_APP_OPTIONS_H
#define CONFAB_APP_OPTIONS_H

#include <stdio.h>

#include "app/commands/command.h"

// Parses the options among argv[1..argc) into s; the arguments are then argv[*first..argc). *help: --help was given,
// and the rest was not parsed. On failure the message names the option.
bool options_read(struct settings *s, const struct command *command, int argc, char **argv, int *first, bool *help,
                  struct status *st);

void options_print(FILE *out, const struct command *command); // for --help
void options_print_overview(FILE *out);                       // for `confab help`

#endif
