// `confab run`: one answer, streamed to standard output.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/clean.h"
#include "app/command.h"
#include "app/model.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

#define INPUT_LIMIT    (64u << 20)
#define INPUT_PATIENCE 3000 // ms that a prompt waits for the first byte of a pipe that nobody may ever write to

static volatile sig_atomic_t interrupted;

static void interrupt_signal(int signal) {
    (void)signal;
    interrupted = 1;
}

// A terminal, /dev/null or a closed input has nothing to add to a prompt.
static bool input_is_piped(bool have_prompt) {
    struct stat info;
    if (fstat(STDIN_FILENO, &info)) return false;
    if (!have_prompt) return true;
    if (S_ISREG(info.st_mode)) return true;
    if (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) return false;
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&fd, 1, INPUT_PATIENCE) > 0) return true;
    fprintf(stderr, "confab: nothing came on standard input; going on without it\n");
    return false;
}

static char *join(const char *prompt, const char *separator, const char *input) {
    if (!prompt) return xstrdup(input);
    return *input ? xasprintf("%s%s%s", prompt, separator, input) : xstrdup(prompt);
}

// PROMPT, standard input, or both. The caller frees; NULL on failure.
static char *run_prompt(const char *prompt, bool raw, struct status *st) {
    if (!prompt && isatty(STDIN_FILENO)) {
        status_fail(st, STATUS_USAGE, "run needs a PROMPT, or text on standard input");
        return NULL;
    }
    if (!input_is_piped(prompt)) return xstrdup(prompt ? prompt : "");
    size_t size;
    char *input = file_read("-", INPUT_LIMIT, &size, st);
    if (!input) return NULL;
    if (memchr(input, 0, size)) {
        status_fail(st, STATUS_FORMAT, "standard input is not text: it contains a NUL byte");
        free(input);
        return NULL;
    }
    char *whole = join(prompt, raw ? "" : "\n\n", input);
    free(input);
    return whole;
}

static uint64_t run_submit(struct engine *engine, const struct settings *s, const char *prompt) {
    struct engine_message messages[2];
    int n = 0;
    if (s->system) messages[n++] = (struct engine_message){.role = "system", .text = s->system};
    messages[n++] = (struct engine_message){.role = "user", .text = prompt};
    return engine_submit(engine, &(struct request_params){
                                     .conversation = 1,
                                     .messages = s->raw ? NULL : messages,
                                     .n_messages = s->raw ? 0 : n,
                                     .raw = s->raw ? prompt : NULL,
                                     .sampling = s->sampling,
                                     .max_tokens = s->max_tokens,
                                     .time_limit = s->time_limit,
                                 });
}

static bool is_end(const struct engine_event *event) {
    return event->kind == EVENT_STATE &&
           (event->state == REQUEST_FINISHED || event->state == REQUEST_FAILED || event->state == REQUEST_CANCELLED);
}

// Writes the answer until the request ends, which it leaves in *event. The reader going away, or Ctrl-C, ends it early.
// Returns 0, or the error that standard output failed with.
static int run_stream(struct engine *engine, uint64_t request, struct engine_event *event) {
    bool cancelled = false;
    int error = 0;
    char last = '\n';
    for (;;) {
        if ((interrupted || error) && !cancelled) {
            engine_cancel(engine, request);
            cancelled = true;
        }
        if (!engine_wait(engine, event, 100)) continue;
        if (is_end(event)) break;
        if (event->kind != EVENT_TEXT || !event->size || cancelled) continue;
        clean_write(stdout, event->text, event->size);
        if (fflush(stdout)) error = errno;
        last = event->text[event->size - 1];
    }
    if (last != '\n' && !error) {
        putchar('\n');
        if (fflush(stdout)) error = errno;
    }
    return error;
}

static int run_answer(struct engine *engine, const struct settings *s, const char *prompt) {
    struct engine_event event;
    struct sigaction action = {.sa_handler = interrupt_signal}, before;
    sigaction(SIGINT, &action, &before);
    signal(SIGPIPE, SIG_IGN);
    int error = run_stream(engine, run_submit(engine, s, prompt), &event);
    sigaction(SIGINT, &before, NULL);
    if (error) {
        clearerr(stdout); // said here
        if (error != EPIPE) fprintf(stderr, "confab: standard output: %s\n", strerror(error));
        return EXIT_FAILED;
    }
    if (interrupted) return EXIT_FAILED;
    if (event.state == REQUEST_FAILED) {
        fprintf(stderr, "confab: %s\n", event.text);
        return EXIT_FAILED;
    }
    if (event.reason == FINISH_CONTEXT)
        fprintf(stderr, "confab: the answer was cut: the context is full (see --context)\n");
    if (event.reason == FINISH_TIME) fprintf(stderr, "confab: the answer was cut: the time limit was reached\n");
    return EXIT_DONE;
}

int command_run(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct loaded_model m;
    char *prompt = run_prompt(n_arguments ? arguments[0] : NULL, s->raw, &st);
    if (prompt && !s->raw && !prompt[strspn(prompt, " \t\r\n")]) status_fail(&st, STATUS_USAGE, "the prompt is empty");
    if (st.code) free(prompt), prompt = NULL;
    if (!prompt) return command_fail(&st);
    int result = EXIT_FAILED;
    if (model_load(&m, s, &st)) {
        result = run_answer(m.engine, s, prompt);
        model_unload(&m);
    } else {
        result = command_fail(&st);
    }
    free(prompt);
    return result;
}
