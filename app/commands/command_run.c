// `confab run`: writes one answer to standard output, or several.
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/commands/command.h"
#include "app/commands/run_output.h"
#include "app/models/model.h"
#include "app/session/session.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"
#include "engine/grammar.h"

#define INPUT_LIMIT    (64u << 20)
#define INPUT_PATIENCE 3000 // ms to wait for the first byte of a pipe if there is a prompt already

static volatile sig_atomic_t interrupted;

static void interrupt_signal(int signal) {
    (void)signal;
    interrupted = 1;
}

// Whether to read standard input: with a prompt, a terminal, /dev/null or a closed input is left alone.
static bool input_is_piped(bool have_prompt) {
    struct stat info;
    if (fstat(STDIN_FILENO, &info)) return false;
    if (!have_prompt) return true;
    if (S_ISREG(info.st_mode)) return true;
    if (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) return false;
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&fd, 1, INPUT_PATIENCE) > 0) return true;
    fprintf(stderr, "confab: warning: no data on standard input; ignoring it\n");
    return false;
}

// Returns PROMPT, standard input, or both. The caller frees; NULL on failure.
static char *run_prompt(const char *prompt, bool raw, struct status *st) {
    if (!prompt && isatty(STDIN_FILENO)) {
        status_fail(st, STATUS_USAGE, "run: no prompt (give PROMPT, or text on standard input)");
        return NULL;
    }
    if (!input_is_piped(prompt)) return xstrdup(prompt ? prompt : "");
    size_t size;
    char *input = file_read("-", INPUT_LIMIT, &size, st);
    if (!input) return NULL;
    if (memchr(input, 0, size)) {
        status_fail(st, STATUS_FORMAT, "standard input: not text: contains a NUL byte");
        free(input);
        return NULL;
    }
    if (!prompt) return input;
    char *joined = xasprintf("%s%s%s", prompt, raw || !*input ? "" : "\n\n", input);
    free(input);
    return joined;
}

// ---- grammars ----

// The choices as a JSON array.
static char *choices_text(const struct text_list *choices) {
    json_t *array = json_array();
    for (int i = 0; i < choices->count; i++) json_array_append_new(array, json_string(choices->texts[i]));
    char *text = json_dumps(array, 0);
    json_decref(array);
    return text;
}

static struct grammar *compile_file(enum grammar_kind kind, const char *path, struct status *st) {
    size_t size;
    char *text = file_read(path, INPUT_LIMIT, &size, st);
    struct grammar *g = text ? grammar_compile(kind, text, size, st) : NULL;
    if (text && !g) status_prefix(st, "%s", path);
    free(text);
    return g;
}

static struct grammar *compile_text(enum grammar_kind kind, const char *option, const char *text, struct status *st) {
    struct grammar *g = grammar_compile(kind, text, strlen(text), st);
    if (!g) status_prefix(st, "%s", option);
    return g;
}

// What the settings hold the answers to; *out is NULL where that is nothing.
static bool run_grammar(const struct settings *s, struct grammar **out, struct status *st) {
    const int given = !!s->json_schema + !!s->grammar + !!s->regex + (s->choices.count > 0);
    *out = NULL;
    if (!given) return true;
    if (given > 1)
        return status_fail(st, STATUS_USAGE,
                           "run: only one of --json-schema, --grammar, --regex and --choice is possible");
    char *choices = s->choices.count ? choices_text(&s->choices) : NULL;
    if (s->json_schema) *out = compile_file(GRAMMAR_SCHEMA, s->json_schema, st);
    if (s->grammar) *out = compile_file(GRAMMAR_GBNF, s->grammar, st);
    if (s->regex) *out = compile_text(GRAMMAR_REGEX, "--regex", s->regex, st);
    if (choices) *out = compile_text(GRAMMAR_CHOICE, "--choice", choices, st);
    free(choices);
    return *out;
}

static uint64_t run_submit(struct engine_client *client, const struct settings *s, const char *prompt,
                           struct grammar *grammar) {
    struct engine_message messages[2];
    int n = 0;
    if (s->system) messages[n++] = (struct engine_message){.role = "system", .text = s->system};
    messages[n++] = (struct engine_message){.role = "user", .text = prompt};
    struct request_params params = session_request_params(s);
    params.conversation = 1;
    params.n_answers = s->answers;
    params.grammar = grammar;
    if (settings_raw(s)) params.raw = prompt;
    else params.messages = messages, params.n_messages = n;
    return engine_submit(client, &params);
}

// Takes events until all answers have ended. Ctrl+C and a closed output cancel them.
static void run_stream(struct engine_client *client, uint64_t request, struct run_output *output) {
    struct engine_event event;
    while (!run_output_ended(output)) {
        if ((interrupted || output->error) && !output->silent) {
            engine_cancel(client, request);
            output->silent = true;
        }
        if (engine_wait(client, &event, 100)) run_output_take(output, &event);
    }
}

static int run_answers(struct engine_client *client, const struct settings *s, const char *prompt,
                       struct grammar *grammar) {
    struct sigaction action = {.sa_handler = interrupt_signal}, before;
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL); // background jobs ignore it
    signal(SIGPIPE, SIG_IGN);
    struct run_output output;
    run_output_open(&output, s->answers, s->json, s->thinking);
    run_stream(client, run_submit(client, s, prompt, grammar), &output);
    sigaction(SIGINT, &before, NULL);
    if (s->json && !interrupted) run_output_write_json(&output);
    const bool done = !interrupted && !output.error && !output.failed;
    if (output.error) clearerr(stdout); // reported here
    if (output.error && !interrupted && output.error != EPIPE)
        fprintf(stderr, "confab: standard output: %s\n", strerror(output.error));
    run_output_close(&output);
    return done ? EXIT_DONE : EXIT_FAILED;
}

int command_run(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct loaded_model m;
    struct grammar *grammar;
    if (!run_grammar(s, &grammar, &st)) return command_fail(&st);
    char *prompt = run_prompt(n_arguments ? arguments[0] : NULL, settings_raw(s), &st);
    if (prompt && !settings_raw(s) && !prompt[strspn(prompt, " \t\r\n")])
        status_fail(&st, STATUS_USAGE, "the prompt is empty");
    if (st.code) free(prompt), prompt = NULL;
    if (!prompt) {
        grammar_drop(grammar);
        return command_fail(&st);
    }
    int result = EXIT_FAILED;
    struct settings own = settings_copy(s);
    char *lost;
    const bool started = model_start_or_built_in(&m, &own, &lost, &st);
    if (lost) fprintf(stderr, "confab: warning: %s\n", lost);
    free(lost);
    if (started) {
        settings_follow_model(&own, m.info);
        if (!reasoning_fits(m.info, (enum reasoning)s->reasoning))
            fprintf(stderr, "confab: warning: --reasoning ignored: not supported by the model's chat template\n");
        result = run_answers(m.client, &own, prompt, grammar);
        model_unload(&m);
    } else {
        result = command_fail(&st);
    }
    settings_free(&own);
    grammar_drop(grammar);
    free(prompt);
    if (interrupted) { // so that a shell loop ends too
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    return result;
}
