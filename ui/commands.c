#include "ui/commands.h"

#include <stddef.h>

const struct ui_command_info ui_commands[COMMAND_COUNT] = {
#define X(id, command_name, default_key, command_group, command_help)                                                  \
    [id] = {.name = command_name, .key = default_key, .group = command_group, .help = command_help},
#define PANE(id, module, title, default_key, command_help, ...)                                                        \
    X(COMMAND_TOGGLE_##id, "toggle-" #module, default_key, "Screen", command_help)
    UI_COMMANDS(X, PANE)
#undef X
#undef PANE
};

const char *ui_command_old_name(enum ui_command_id id) { return id == COMMAND_PANES ? "boxes" : NULL; }
