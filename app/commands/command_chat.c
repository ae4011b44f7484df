// `confab`: the chat screen.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/base/config.h"
#include "app/base/file_fault.h"
#include "app/chat/chat.h"
#include "app/commands/command.h"
#include "app/commands/plain.h"
#include "app/models/model.h"
#include "app/models/model_host.h"
#include "engine/base/clock.h"
#include "engine/base/panic.h"
#include "engine/base/paths.h"

#define QUICK_LOAD_NS 150000000u // models that load faster never show a loading screen

static void keep_first(void *context, const char *message) {
    char **notice = context;
    if (!*notice) *notice = xstrdup(message);
}

// The first configuration warning, to repeat it on the screen, which hides standard error.
static char *config_notice(const char *path) {
    char *notice = NULL;
    struct settings unused = settings_default();
    if (path) config_load(&unused, path, keep_first, &notice);
    settings_free(&unused);
    return notice;
}

// lost: a message if the model in the configuration is gone, or NULL.
static bool chat_run(struct model_host *host, struct settings *s, const char *lost, struct status *st) {
    char *config = path_config("config"), *limits = path_cache("limits");
    char *store = path_data("confab.db"), *history = path_data("history"), *saved = local_engine_saved_folder();
    char *notice = lost ? xstrdup(lost) : config_notice(config);
    if (!store && !notice) notice = xstrdup("chats are not saved: neither XDG_DATA_HOME nor HOME is set");
    struct chat_params params = {
        .host = host,
        .settings = s,
        .config_path = config,
        .store_path = store,
        .kv_folder = saved,
        .limits_path = limits,
        .notice = notice,
        .screen = {.input_fd = STDIN_FILENO, .output_fd = STDOUT_FILENO, .history_path = history},
    };
    struct chat *c = chat_open(&params, st);
    while (c && chat_step(c, -1)) {
    }
    bool done = c && chat_close(c, st);
    free(notice), free(history), free(saved), free(limits), free(store), free(config);
    return done;
}

// Waits briefly for the model. False: loading failed.
static bool load_quickly(struct model_host *host, struct status *st) {
    struct pollfd fd = {.fd = model_host_fd(host), .events = POLLIN};
    uint64_t end = clock_ns() + QUICK_LOAD_NS;
    for (uint64_t now; (now = clock_ns()) < end;) {
        poll(&fd, 1, (int)((end - now) / 1000000) + 1);
        enum model_host_event event = model_host_poll(host, st);
        if (event == HOST_LOADED) return true;
        if (event == HOST_FAILED) return false;
    }
    return true;
}

static struct model_host *host_start(const struct settings *s, struct status *st) {
    struct model_host *host = model_host_open(s, &local_models, st);
    if (host && load_quickly(host, st)) return host;
    model_host_close(host);
    return NULL;
}

int command_chat(const struct settings *given, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    if (plain_wanted(given) && given->serve)
        fprintf(stderr, "confab: warning: the chat in lines does not serve other programs (see `confab serve`)\n");
    if (plain_wanted(given)) return plain_run(given, &st) ? EXIT_DONE : command_fail(&st);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        status_fail(&st, STATUS_USAGE, "the chat screen needs a terminal (see `confab run --help` for scripts)");
        return command_fail(&st);
    }
    file_fault_watch(NULL); // before the screen takes over the terminal
    struct settings s = settings_copy(given);
    struct model_host *host = host_start(&s, &st);
    char *lost = host ? NULL : model_give_up_saved(&s, &st);
    if (lost) host = host_start(&s, &st);
    bool done = host && chat_run(host, &s, lost, &st);
    model_host_close(host);
    free(lost);
    settings_free(&s);
    int result = done ? EXIT_DONE : command_fail(&st);
    if (chat_signal()) raise(chat_signal()); // so that the parent sees the signal
    return result;
}
