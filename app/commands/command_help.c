// `confab help`: lists the commands, or the options of one; with --json prints the program's tables, for other tools.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/commands/man.h"
#include "app/commands/options.h"
#include "app/guide/guide.h"
#include "engine/engine.h"
#include "ui/commands.h"
#include "ui/theme.h"

static json_t *setting_json(const struct setting_info *info) {
    char letter[2] = {info->letter, 0};
    const int id = (int)(info - setting_table);
    char *initial = setting_default_text(id);
    json_t *row =
        json_pack("{s:s, s:s*, s:s, s:s*, s:s*, s:s}", "name", info->key, "old_name", setting_old_key(id), "letter",
                  letter, "argument", info->argument, "default", *initial ? initial : NULL, "help", info->help);
    free(initial);
    return row;
}

static json_t *settings_json(unsigned place) {
    json_t *list = json_array();
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].places & place) json_array_append_new(list, setting_json(&setting_table[id]));
    return list;
}

static json_t *commands_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < n_commands; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", commands[i].name, "arguments",
                                              commands[i].arguments, "summary", commands[i].summary, "options",
                                              settings_json(commands[i].place)));
    return list;
}

static json_t *keys_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < COMMAND_COUNT; i++)
        json_array_append_new(list, json_pack("{s:s, s:s*, s:s, s:s, s:s}", "name", ui_commands[i].name, "old_name",
                                              ui_command_old_name((enum ui_command_id)i), "key", ui_commands[i].key,
                                              "group", ui_commands[i].group, "help", ui_commands[i].help));
    return list;
}

static json_t *knob_number(const struct sampling_knob *k, double value) {
    return k->kind == SAMPLING_FLOAT ? json_real(value) : json_integer((json_int_t)value);
}

static json_t *knobs_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct sampling_knob *k = &sampling_knobs[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:s}", "name", k->key, "label", k->label, "whole",
                            k->kind != SAMPLING_FLOAT, "low", knob_number(k, k->low), "high", knob_number(k, k->high),
                            "step", knob_number(k, k->step), "default", knob_number(k, k->initial), "help", k->help));
    }
    return list;
}

static json_t *themes_json(void) {
    json_t *list = json_array();
    for (int i = 0; theme_list(i); i++) json_array_append_new(list, json_string(theme_list(i)));
    return list;
}

static json_t *states_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < REQUEST_STATE_COUNT; i++)
        json_array_append_new(list, json_string(request_state_name((enum request_state)i)));
    return list;
}

static json_t *questions_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < GUIDE_QUESTIONS; i++) json_array_append_new(list, json_string(guide_questions[i]));
    return list;
}

static json_t *lacks_json(void) {
    json_t *list = json_array();
    for (int i = 0; i < n_guide_lacks; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", guide_lacks[i].name, "says",
                                              guide_lacks[i].says, "names", guide_lacks[i].names));
    return list;
}

static void help_json(void) {
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "version", CONFAB_VERSION,
                               "commands", commands_json(), "settings", settings_json(IN_FILE), "keys", keys_json(),
                               "knobs", knobs_json(), "states", states_json(), "themes", themes_json(), "default_theme",
                               THEME_DEFAULT, "questions", questions_json(), "lacks", lacks_json());
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

int command_help(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    if (s->json) {
        help_json();
    } else if (s->man) {
        if (!man_write(stdout, s->man, &st)) return command_fail(&st);
    } else if (n_arguments) {
        const struct command *command = command_find(arguments[0]);
        if (!command) {
            status_fail(&st, STATUS_USAGE, "unknown command '%s'", arguments[0]);
            return command_fail(&st);
        }
        options_print(stdout, command);
    } else {
        options_print_overview(stdout);
    }
    return EXIT_DONE;
}
