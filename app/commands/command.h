// Commands: the subcommands of the program, one table. Each says what it takes; options are read and arguments counted
// before it runs.
#ifndef CONFAB_APP_COMMAND_H
#define CONFAB_APP_COMMAND_H

#include "app/base/settings.h"

#define CONFAB_VERSION "0.1"

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
    const char *name;
    const char *arguments; // after the options, as the help shows them
    const char *summary;   // one line
    const char *details;   // for the man page and --help; "" for none
    enum setting_place place;
    int min_arguments, max_arguments;
    int (*run)(const struct settings *s, int n_arguments, char **arguments); // returns an exit status
};
extern const struct command commands[]; // the first is what `confab` without a subcommand does
extern const int n_commands;

const struct command *command_find(const char *name); // NULL when there is none

// The whole program: reads the configuration, then the options, runs the command.
int command_main(int argc, char **argv);

// "confab: MESSAGE" on standard error, cleaned for a terminal. Returns EXIT_FAILED, or EXIT_USAGE for STATUS_USAGE.
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
