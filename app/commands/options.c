#include "app/commands/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"

#define OPTION_HELP SETTING_COUNT
#define OPTION_BASE 256 // getopt_long returns OPTION_BASE + setting for a long option

struct option_list {
    struct option options[2 * SETTING_COUNT + 2];
    char letters[2 * SETTING_COUNT + 4];
};

static void option_list_fill(struct option_list *list, unsigned place) {
    int n = 0;
    char *letter = list->letters;
    *letter++ = ':'; // getopt then distinguishes a missing argument from an unknown option
    *letter++ = 'h';
    for (int id = 0; id < SETTING_COUNT; id++) {
        const struct setting_info *info = &setting_table[id];
        if (!(info->places & place)) continue;
        int argument = info->argument ? required_argument : no_argument;
        list->options[n++] = (struct option){info->key, argument, NULL, OPTION_BASE + id};
        if (setting_old_key(id))
            list->options[n++] = (struct option){setting_old_key(id), argument, NULL, OPTION_BASE + id};
        if (!info->letter) continue;
        *letter++ = info->letter;
        if (info->argument) *letter++ = ':';
    }
    list->options[n++] = (struct option){"help", no_argument, NULL, OPTION_BASE + OPTION_HELP};
    list->options[n] = (struct option){0};
    *letter = 0;
}

static int option_id(int code) {
    if (code >= OPTION_BASE) return code - OPTION_BASE;
    if (code == 'h') return OPTION_HELP;
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].letter == code) return id;
    return -1;
}

bool options_read(struct settings *s, const struct command *command, int argc, char **argv, int *first, bool *help,
                  struct status *st) {
    struct option_list list;
    option_list_fill(&list, command->place);
    *help = false;
    opterr = 0;
    optind = 0; // start over, even if called before
    for (;;) {
        int code = getopt_long(argc, argv, list.letters, list.options, NULL);
        if (code < 0) break;
        const char *seen = optind > 0 && optind <= argc ? argv[optind - 1] : "";
        if (code == ':') return status_fail(st, STATUS_USAGE, "option '%s' requires a value", seen);
        if (code == '?' && optopt && optopt < OPTION_BASE)
            return status_fail(st, STATUS_USAGE, "unknown option '-%c'", optopt);
        if (code == '?' && optopt)
            return status_fail(st, STATUS_USAGE, "option '--%s' takes no value",
                               optopt == OPTION_BASE + OPTION_HELP ? "help" : setting_table[optopt - OPTION_BASE].key);
        if (code == '?') return status_fail(st, STATUS_USAGE, "unknown option '%s'", seen);
        int id = option_id(code);
        if (id == OPTION_HELP) {
            *help = true;
            return true;
        }
        if (!setting_parse(s, id, setting_table[id].argument ? optarg : "yes", st)) return false;
        if (id == SETTING_model) s->model_saved = false;
    }
    *first = optind;
    return true;
}

// ---- help ----

static void print_option(FILE *out, int id) {
    const struct setting_info *info = &setting_table[id];
    char *left =
        xasprintf("%c%c%s --%s%s%s", info->letter ? '-' : ' ', info->letter ? info->letter : ' ',
                  info->letter ? "," : " ", info->key, info->argument ? " " : "", info->argument ? info->argument : "");
    char *help = setting_help(id);
    if (strlen(left) > 26) fprintf(out, "  %s\n%29s%s\n", left, "", help);
    else fprintf(out, "  %-26s %s\n", left, help);
    free(help);
    free(left);
}

void options_print(FILE *out, const struct command *command) {
    bool chat = command == commands;
    fprintf(out, "usage: confab %s%s[options]%s%s\n\n%s.\n%s%s\noptions:\n", chat ? "" : command->name,
            chat ? "" : " ", *command->arguments ? " " : "", command->arguments, command->summary,
            *command->details ? "\n" : "", command->details);
    for (int id = 0; id < SETTING_COUNT; id++)
        if (setting_table[id].places & command->place) print_option(out, id);
    fprintf(out, "  %-26s %s\n", "-h, --help", "show this help");
}

void options_print_overview(FILE *out) {
    fprintf(out, "confab %s: chat with language models that run on your own machine\n\n", CONFAB_VERSION);
    for (int i = 0; i < n_commands; i++) {
        char *left = xasprintf("confab %s%s%s", i ? commands[i].name : "[options]", *commands[i].arguments ? " " : "",
                               commands[i].arguments);
        fprintf(out, "  %-34s %s\n", left, commands[i].summary);
        free(left);
    }
    fprintf(out, "\nSee `confab COMMAND --help` for the options of a command.\n");
}
