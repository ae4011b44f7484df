#include "ui/commands.h"

#include <stddef.h>
#include <string.h>

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

const char *ui_command_argument(enum ui_command_id id) {
    static const char *const arguments[COMMAND_COUNT] = {
        [COMMAND_ATTACH] = "PATH", [COMMAND_INSERT] = "COMMAND", [COMMAND_RENAME] = "NAME",
        [COMMAND_FAN_OUT] = "N",   [COMMAND_KNOB_SET] = "VALUE", [COMMAND_MODEL] = "NAME",
        [COMMAND_TAG] = "WORDS",   [COMMAND_EXPORT] = "PATH",    [COMMAND_IMPORT] = "PATH",
        [COMMAND_SETTINGS] = "KEY VALUE", [COMMAND_PRESET] = "NAME", [COMMAND_SAVE_PRESET] = "NAME",
        [COMMAND_SAVE_PROMPT] = "NAME", [COMMAND_SAVE] = "PATH",
    };
    return arguments[id];
}

int ui_command_find(const char *name, size_t size) {
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const char *names[] = {ui_commands[c].name, ui_command_old_name((enum ui_command_id)c)};
        for (int i = 0; i < 2; i++)
            if (names[i] && strlen(names[i]) == size && !memcmp(names[i], name, size)) return c;
    }
    return -1;
}
