#include "ui/commands.h"

#include <string.h>

const struct ui_command_info ui_commands[COMMAND_COUNT] = {
#define X(id, command_name, default_key, command_group, command_help)                                                  \
    [id] = {.name = command_name, .key = default_key, .group = command_group, .help = command_help},
    UI_COMMANDS(X)
#undef X
};

int ui_command_find(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(ui_commands[i].name, name) == 0) return i;
    return -1;
}
