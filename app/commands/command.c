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
#include "engine/base/panic.h"
#include "engine/base/paths.h"
#include "engine/quantize.h"
#include "ui/keys.h"

#define X(name, format, file_type, mix, help) name ": " help ".\n"
const struct command commands[] = {
    {"chat", "", "Open the chat screen", "", IN_CHAT, 0, 0, command_chat},
    {"run", "[PROMPT]", "Print one answer to standard output",
     "Text piped to standard input is appended to PROMPT, or is the prompt if there is\n"
     "no PROMPT.\n",
     IN_RUN, 0, 1, command_run},
    {"bench", "", "Measure a model's speed, memory use and accuracy",
     "Measures, in turn, prompts of 512 tokens and decoding in 1 to 16 conversations\n"
     "at once. Results are the medians of at least three repetitions. The machine's\n"
     "limits are sampled between repetitions, so each result is compared with the\n"
     "limits at that time. The last columns show the time per stage. Accuracy does\n"
     "not depend on the number of conversations.\n",
     IN_BENCH, 0, 0, command_bench},
    {"logits", "MODEL IDS OUT", "Write the logits at every position",
     "IDS is a text file of token ids. OUT receives a row of 32-bit floats for each.\n", IN_LOGITS, 3, 3,
     command_logits},
    {"tokenize", "MODEL FILE", "Print the token ids of a text file on one line", "", IN_TOKENIZE, 2, 2,
     command_tokenize},
    {"detokenize", "MODEL IDS", "Print the text of token ids", "", 0, 2, 2, command_detokenize},
    {"template", "TEMPLATE CONTEXT", "Render a chat template (Jinja)",
     "CONTEXT is a file with one JSON object, whose members are the template's\n"
     "variables.\n",
     IN_TEMPLATE, 2, 2, command_template},
    {"show", "[MODEL]", "Show what a model file contains and how much memory it needs", "", IN_SHOW, 0, 1,
     command_show},
    {"quantize", "IN OUT TYPE", "Convert a model to another weight format, as a GGUF file",
     "IN is a GGUF file, a folder of safetensors, or a name from `confab ls`. TYPE is\n"
     "one of:\n" QUANTIZE_TYPES(X) "Types that end in _M or _S are mixes, which keep sensitive tensors in finer\n"
                                   "formats. Vectors stay in 32-bit floats. The error shown for each tensor is the\n"
                                   "mean squared error of its weights divided by their mean square.\n",
     IN_QUANTIZE, 3, 3, command_quantize},
    {"ls", "", "List the models on this machine, including other programs' downloads",
     "The names in the first column are what -m accepts; a unique part of one will do.\n", IN_LS, 0, 0, command_ls},
    {"help", "[COMMAND]", "Show the commands, or the options of one", "", IN_HELP, 0, 1, command_help},
};
#undef X
const int n_commands = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name) {
    for (int i = 0; i < n_commands; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

int command_fail(const struct status *st) {
    fprintf(stderr, "confab: %s\n", st->text);
    return st->code == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int usage(const struct command *command, const struct status *st) {
    fprintf(stderr, "confab: %s (see `confab %s --help`)\n", st->text, command->name);
    return EXIT_USAGE;
}

static void warn(void *context, const char *message) {
    (void)context;
    fprintf(stderr, "confab: warning: %s\n", message);
}

static int command_start(const struct command *command, struct settings *s, int argc, char **argv) {
    struct status st = {0};
    char *path = path_config("config");
    if (path) config_load(s, path, warn, NULL);
    s->model_saved = s->model;
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
    return command->run(s, n, argv + first);
}

// If a standard stream is closed, a model file opened later could take its descriptor and receive our output. The modes
// make reading and writing fail, as on a closed descriptor.
static void open_standard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int command_main(int argc, char **argv) {
    open_standard_streams();
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C"); // a decimal point in files, options and JSON
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--version")) {
        printf("confab %s\n", CONFAB_VERSION);
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
