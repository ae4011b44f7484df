#include "app/commands/command.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/base/config.h"
#include "app/commands/options.h"
#include "app/models/model.h"
#include "engine/base/log.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/device.h"
#include "engine/quantize.h"
#include "ui/keys.h"

#define TYPE_LINE(name, format, file_type, mix, help) name ": " help ".\n"
#define QUANTIZE_TYPE_LINES                           QUANTIZE_TYPES(TYPE_LINE)
const struct command commands[] = {
#define X(name, arguments, summary, details, place, least, most)                                                       \
    {#name, arguments, summary, details, place, least, most, command_##name},
    COMMANDS(X)
#undef X
};
const int n_commands = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name) {
    for (int i = 0; i < n_commands; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

int command_fail(const struct status *st) {
    fprintf(stderr, "confab: %s\n", st->text);
    log_error("confab", "%s", st->text);
    return st->code == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int usage(const struct command *command, const struct status *st) {
    fprintf(stderr, "confab: %s (see `confab %s --help`)\n", st->text, command->name);
    return EXIT_USAGE;
}

static void warn(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "confab: warning: %s\n", message);
    log_warning("config", "%s", message);
}

// Commands that load models write a log file.
static void open_log(const struct settings *s, const struct command *command) {
    log_set_level((enum log_level)s->log_level);
    if (!(command->place & setting_table[SETTING_log_level].places) || !s->log_level) return;
    log_info("confab", "confab %s %s begins", CONFAB_VERSION, command->name);
    char *path = path_state("log");
    if (path) log_open(path);
    free(path);
}

static int command_start(const struct command *command, struct settings *s, int argc, char **argv) {
    struct status st = {0};
    char *path = path_config("config");
    if (path) config_load(s, path, warn, NULL);
    s->model_saved = s->model;
    if (command->place == IN_BENCH) setting_parse(s, SETTING_draft, "off", NULL); // unless it is asked
    free(path);
    keys_bind((const char *const *)s->keys.texts, s->keys.count, NULL); // for the guide; the chat says what is wrong
    int first = 0;
    bool help;
    if (!options_read(s, command, argc, argv, &first, &help, &st)) return usage(command, &st);
    if (help) {
        options_print(stdout, command);
        return EXIT_DONE;
    }
    int n = argc - first;
    if (n < command->min_arguments || n > command->max_arguments) {
        const char *expected = *command->arguments ? command->arguments : "no arguments";
        status_fail(&st, STATUS_USAGE, "%s: expected %s, got %d argument%s", command->name, expected, n,
                    n == 1 ? "" : "s");
        return usage(command, &st);
    }
    if (command->place & setting_table[SETTING_draft].places && !model_resolve_draft(s, &st)) return command_fail(&st);
    open_log(s, command);
    int result = command->run(s, n, argv + first);
    log_close();
    return result;
}

// If a standard stream is closed, a model file opened later could take its descriptor and receive our output. The modes
// make reading and writing fail, as on a closed descriptor.
static void open_standard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// With what whoever reads a report of a fault asks for.
static void print_version(const char *commit) {
    struct device devices[DEVICE_MOST];
    const int n = device_list(devices);
    printf("confab %s%s%s%s\n", CONFAB_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
    for (const struct device *d = devices; d < devices + n; d++)
        printf("%s: %s%s\n", d->name, d->description, d->emulated ? ", emulated by the processor" : "");
}

int command_main(int argc, char **argv, const char *commit) {
    open_standard_streams();
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); // a decimal point in files, options and JSON
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version")) {
        print_version(commit);
        return EXIT_DONE;
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
        options_print_overview(stdout);
        return EXIT_DONE;
    }
    const struct command *command = commands;
    if (*word && *word != '-') {
        command = command_find(word);
        if (!command) {
            struct status st = {0};
            status_fail(&st, STATUS_USAGE, "unknown command '%s' (see `confab help`)", word);
            return command_fail(&st);
        }
        argc--, argv++;
    }
    struct settings s = settings_default();
    int result = command_start(command, &s, argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        perror("confab: standard output");
        result = EXIT_FAILED;
    }
    settings_free(&s);
    return result;
}
