// Commands: the table of subcommands, and the program's main function. Options are parsed and arguments counted before
// a command runs.
#ifndef CONFAB_APP_COMMAND_H
#define CONFAB_APP_COMMAND_H

#include "app/base/settings.h"

#define CONFAB_VERSION "0.1"

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *arguments; // as the help shows them, after the options
    const char *summary;   // one line
    const char *details;   // for the man page and --help; "" for none
    enum setting_place place;
    int min_arguments, max_arguments;
    int (*run)(const struct settings *s, int n_arguments, char **arguments); // returns an exit status
};
extern const struct command commands[]; // the first runs when no subcommand is given
extern const int n_commands;

const struct command *command_find(const char *name); // NULL: not found

// The main function: reads the configuration and the options and runs the command. Returns the exit status.
int command_main(int argc, char **argv);

// Prints "confab: MESSAGE" to standard error. Returns EXIT_USAGE for STATUS_USAGE, EXIT_FAILED otherwise.
int command_fail(const struct status *st);

// ---- the commands, one file each ----
int command_chat(const struct settings *s, int n_arguments, char **arguments);
int command_run(const struct settings *s, int n_arguments, char **arguments);
int command_bench(const struct settings *s, int n_arguments, char **arguments);
int command_logits(const struct settings *s, int n_arguments, char **arguments);
int command_tokenize(const struct settings *s, int n_arguments, char **arguments);
int command_detokenize(const struct settings *s, int n_arguments, char **arguments);
int command_template(const struct settings *s, int n_arguments, char **arguments);
int command_show(const struct settings *s, int n_arguments, char **arguments);
int command_quantize(const struct settings *s, int n_arguments, char **arguments);
int command_ls(const struct settings *s, int n_arguments, char **arguments);
int command_help(const struct settings *s, int n_arguments, char **arguments);

#endif
