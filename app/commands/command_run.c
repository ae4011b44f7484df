// `confab run`: streams one answer to standard output.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/base/clean.h"
#include "app/base/word_wrap.h"
#include "app/commands/command.h"
#include "app/models/model.h"
#include "app/session/session.h"
#include "engine/base/panic.h"
#include "engine/base/reader.h"

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

static uint64_t run_submit(struct engine_client *client, const struct settings *s, const char *prompt) {
    struct engine_message messages[2];
    int n = 0;
    if (s->system) messages[n++] = (struct engine_message){.role = "system", .text = s->system};
    messages[n++] = (struct engine_message){.role = "user", .text = prompt};
    struct request_params params = session_request_params(s);
    params.conversation = 1;
    if (s->raw) params.raw = prompt;
    else params.messages = messages, params.n_messages = n;
    return engine_submit(client, &params);
}

static bool is_end(const struct engine_event *event) {
    return event->kind == EVENT_STATE &&
           (event->state == REQUEST_FINISHED || event->state == REQUEST_FAILED || event->state == REQUEST_CANCELLED);
}

// The answer goes to standard output, the model's thinking, dimmed, to standard error if that is a terminal or
// --thinking was given.
struct run_output {
    bool shows_thinking, dims;
    bool thinking; // the last text was thinking
    bool any_thinking, any_answer;
    struct word_wrap answer, thoughts; // of standard output and standard error
    char last;                         // the last character written
    int error;                         // errno of standard output
};

static void write_clean(FILE *out, struct word_wrap *wrap, const struct engine_event *event) {
    char clean[3 * sizeof event->text];
    wrap->columns = word_wrap_columns(out); // the terminal may have been resized
    if (wrap->columns) word_wrap_write(wrap, out, clean, clean_text(event->text, event->size, clean));
    else clean_write(out, event->text, event->size);
}

static void end_thinking(struct run_output *o) {
    if (!o->thinking) return;
    if (o->dims) fputs("\033[22m", stderr);
    if (o->last != '\n') word_wrap_write(&o->thoughts, stderr, "\n", 1);
    o->thinking = false;
    o->last = '\n';
}

static void write_thinking(struct run_output *o, const struct engine_event *event) {
    o->any_thinking = true;
    if (!o->shows_thinking) return;
    if (!o->thinking && o->dims) fputs("\033[2m", stderr);
    o->thinking = true;
    write_clean(stderr, &o->thoughts, event);
    fflush(stderr);
    o->last = event->text[event->size - 1];
}

static void write_text(struct run_output *o, const struct engine_event *event) {
    end_thinking(o);
    o->any_answer = true;
    write_clean(stdout, &o->answer, event);
    if (fflush(stdout)) o->error = errno;
    o->last = event->text[event->size - 1];
}

// Writes the answer until the request ends; *event is then its last one. Ctrl+C and a closed output cancel it.
static void run_stream(struct engine_client *client, uint64_t request, struct run_output *o,
                       struct engine_event *event) {
    bool cancelled = false;
    for (;;) {
        if ((interrupted || o->error) && !cancelled) {
            engine_cancel(client, request);
            cancelled = true;
        }
        if (!engine_wait(client, event, 100)) continue;
        if (is_end(event)) break;
        if (event->kind == EVENT_NOTICE) fprintf(stderr, "confab: %s\n", event->text);
        if (event->kind != EVENT_TEXT || !event->size || cancelled) continue;
        if (event->channel == CHANNEL_THINKING) write_thinking(o, event);
        else write_text(o, event);
    }
    end_thinking(o);
    if (o->last != '\n' && !o->error) {
        putchar('\n');
        if (fflush(stdout)) o->error = errno;
    }
}

static int run_answer(struct engine_client *client, const struct settings *s, const char *prompt) {
    struct engine_event event;
    struct sigaction action = {.sa_handler = interrupt_signal}, before;
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL); // background jobs ignore it
    signal(SIGPIPE, SIG_IGN);
    bool terminal = isatty(STDERR_FILENO);
    struct run_output output = {.shows_thinking = s->thinking || terminal, .dims = terminal, .last = '\n'};
    run_stream(client, run_submit(client, s, prompt), &output, &event);
    sigaction(SIGINT, &before, NULL);
    if (interrupted) return EXIT_FAILED;
    if (output.error) {
        clearerr(stdout); // reported here
        if (output.error != EPIPE) fprintf(stderr, "confab: standard output: %s\n", strerror(output.error));
        return EXIT_FAILED;
    }
    if (event.state == REQUEST_FAILED) {
        fprintf(stderr, "confab: %s\n", event.text);
        return EXIT_FAILED;
    }
    if (event.reason == FINISH_CONTEXT)
        fprintf(stderr, "confab: warning: answer cut off: the context is full (see --context)\n");
    if (event.reason == FINISH_TIME) fprintf(stderr, "confab: warning: answer cut off: time limit reached\n");
    if (output.any_thinking && !output.any_answer)
        fprintf(stderr, "confab: warning: the model gave no answer, only thinking%s\n",
                output.shows_thinking ? "" : " (use --thinking to show it)");
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
    struct settings own = settings_copy(s);
    bool started = model_start(&m, &own, &st);
    char *lost = started ? NULL : model_give_up_saved(&own, &st);
    if (lost) {
        fprintf(stderr, "confab: warning: %s\n", lost);
        started = model_start(&m, &own, &st);
        free(lost);
    }
    if (started) {
        settings_follow_model(&own, m.info);
        if (!reasoning_fits(m.info, (enum reasoning)s->reasoning))
            fprintf(stderr, "confab: warning: --reasoning ignored: not supported by the model's chat template\n");
        result = run_answer(m.client, &own, prompt);
        model_unload(&m);
    } else {
        result = command_fail(&st);
    }
    settings_free(&own);
    free(prompt);
    if (interrupted) { // so that a shell loop ends too
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    return result;
}
