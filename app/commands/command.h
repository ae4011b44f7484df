// Commands: the table of subcommands, and the program's main function. Options are parsed and arguments counted before
// a command runs.
#ifndef CONFAB_APP_COMMAND_H
#define CONFAB_APP_COMMAND_H

#include "app/base/settings.h"

#define CONFAB_VERSION "0.1"

enum exit_status { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

// X(name, arguments, summary, details, place of its options, minimum and maximum number of arguments); see struct
// command. A new command needs a row here and a file command_NAME.c. The first one runs when no subcommand is given.
#define COMMANDS(X)                                                                                                    \
    X(chat, "", "Open the chat screen", "", IN_CHAT, 0, 0)                                                             \
    X(run, "[PROMPT]", "Print the answer to a prompt, or several",                                                     \
      "Text piped to standard input is appended to PROMPT, or is the prompt if there is\n"                             \
      "no PROMPT. With --json, the object has `answers`, a list of objects with text,\n"                               \
      "finish_reason (stop, length, context, time or error) and n_tokens, and `usage`.\n",                             \
      IN_RUN, 0, 1)                                                                                                    \
    X(serve, "", "Answer other programs over HTTP, by OpenAI's, Ollama's and Anthropic's APIs",                        \
      "Clients that can be given a base URL take the one that is printed. Answers come\n"                              \
      "from one batch, as those of several chats do; requests are not kept.\n",                                        \
      IN_SERVE, 0, 0)                                                                                                  \
    X(bench, "", "Measure a model's speed, memory use and accuracy",                                                   \
      "Measures, in turn, prompts of 512 tokens and decoding in 1 to 16 conversations\n"                               \
      "at once. Results are the medians of at least three repetitions. The machine's\n"                                \
      "limits are sampled between repetitions, so each result is compared with the\n"                                  \
      "limits at that time. The last columns show the time per stage. Accuracy does\n"                                 \
      "not depend on the number of conversations.\n",                                                                  \
      IN_BENCH, 0, 0)                                                                                                  \
    X(logits, "MODEL IDS OUT", "Write the logits at every position",                                                   \
      "IDS is a text file of token ids. OUT receives a row of 32-bit floats for each.\n", IN_LOGITS, 3, 3)             \
    X(tokenize, "MODEL FILE", "Print the token ids of a text file on one line", "", IN_TOKENIZE, 2, 2)                 \
    X(detokenize, "MODEL IDS", "Print the text of token ids", "", 0, 2, 2)                                             \
    X(template, "TEMPLATE CONTEXT", "Render a chat template (Jinja)",                                                  \
      "CONTEXT is a file with one JSON object, whose members are the template's\n"                                     \
      "variables.\n",                                                                                                  \
      IN_TEMPLATE, 2, 2)                                                                                               \
    X(show, "[MODEL]", "Show what a model file contains and how much memory it needs", "", IN_SHOW, 0, 1)              \
    X(quantize, "IN OUT TYPE", "Convert a model to another weight format, as a GGUF file",                             \
      "IN is a GGUF file, a folder of safetensors, or a name from `confab ls`. TYPE is\n"                              \
      "one of:\n" QUANTIZE_TYPE_LINES                                                                                  \
      "Types that end in _M or _S are mixes, which keep sensitive tensors in finer\n"                                  \
      "formats. Vectors stay in 32-bit floats. The error shown for each tensor is the\n"                               \
      "mean squared error of its weights divided by their mean square.\n",                                             \
      IN_QUANTIZE, 3, 3)                                                                                               \
    X(ls, "", "List the models on this machine, including other programs' downloads",                                  \
      "The names in the first column are what -m accepts; a unique part of one will do.\n", IN_LIST, 0, 0)             \
    X(devices, "", "List the devices that models can be computed on",                                                  \
      "The names in the first column are what --device accepts. Its default, auto, takes\n"                            \
      "all GPUs, and the CPU for the layers that do not fit. Devices that the processor\n"                             \
      "emulates are used only if named.\n",                                                                            \
      IN_LIST, 0, 0)                                                                                                   \
    X(export, "[CHAT]", "Write a chat as Markdown, JSON or HTML",                                                      \
      "CHAT is its title, a unique part of it, or its number; default: the one used last.\n"                           \
      "Without --output it is printed. JSON holds all versions of all messages, an\n"                                  \
      "object for each chat, which `confab import` reads; Markdown and HTML hold the\n"                                \
      "versions that the chat shows.\n",                                                                               \
      IN_EXPORT, 0, 1)                                                                                                 \
    X(import, "FILE...", "Add chats from JSON files",                                                                  \
      "Reads what `confab export` wrote, lists of OpenAI messages (also JSON Lines), and\n"                            \
      "the exports of Open WebUI and LibreChat. FILE may be - for standard input.\n",                                  \
      0, 1, 10000)                                                                                                     \
    X(log, "[LINES]", "Print the last lines of the log",                                                               \
      "LINES: how many to print (default 40). chat, run, bench and serve write it; see\n"                              \
      "--log-level.\n",                                                                                                \
      IN_LOG, 0, 1)                                                                                                    \
    X(complete, "[WORD...]", "Complete a command line, for shells",                                                    \
      "Prints what the last WORD may become, a candidate on each line, with a tab and a\n"                             \
      "description behind it; a line with no candidate stands for file names. Put --\n"                                \
      "before the words. The completions of bash, zsh and fish ask it.\n",                                             \
      0, 0, 10000)                                                                                                     \
    X(help, "[COMMAND]", "Show the commands, or the options of one", "", IN_HELP, 0, 1)

struct command {
    const char *name;
    const char *arguments; // as the help shows them, after the options
    const char *summary;   // one line
    const char *details;   // for the man page and --help; "" for none
    enum setting_place place;
    int min_arguments, max_arguments;
    int (*run)(const struct settings *s, int n_arguments, char **arguments); // returns an exit status
};
extern const struct command commands[];
extern const int n_commands;

const struct command *command_find(const char *name); // NULL: not found

// The main function: reads the configuration and the options and runs the command. Returns the exit status. commit:
// that the program was built from; "": unknown.
int command_main(int argc, char **argv, const char *commit);

// Prints "confab: MESSAGE" to standard error. Returns EXIT_USAGE for STATUS_USAGE, EXIT_FAILED otherwise.
int command_fail(const struct status *st);

// ---- the commands, one file each ----
#define X(name, ...) int command_##name(const struct settings *s, int n_arguments, char **arguments);
COMMANDS(X)
#undef X

#endif
