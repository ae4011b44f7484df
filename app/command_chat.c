#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/chat.h"
#include "app/command.h"
#include "app/config.h"
#include "app/model.h"
#include "app/paths.h"
#include "engine/base/panic.h"

static void keep_first(void *context, const char *message) {
    char **notice = context;
    if (!*notice) *notice = xstrdup(message);
}

// What is wrong in the configuration is said again on the screen, where the warnings on standard error are gone.
static char *config_notice(const char *path) {
    char *notice = NULL;
    struct settings unused = settings_default();
    if (path) config_load(&unused, path, keep_first, &notice);
    settings_free(&unused);
    return notice;
}

static int chat_run(struct loaded_model *m, struct settings *s) {
    struct status st = {0};
    char *config = path_config("config"), *store = path_data("confab.db"), *history = path_data("history");
    char *notice = config_notice(config);
    struct chat_params params = {
        .engine = m->engine,
        .info = m->info,
        .settings = s,
        .config_path = config,
        .store_path = store,
        .notice = notice,
        .screen = {.input_fd = STDIN_FILENO, .output_fd = STDOUT_FILENO, .history_path = history},
    };
    struct chat *c = chat_open(&params, &st);
    bool done = c;
    if (c) {
        while (chat_step(c, -1)) continue;
        done = chat_close(c, &st);
    }
    free(notice), free(history), free(store), free(config);
    return done ? EXIT_DONE : command_fail(&st);
}

int command_chat(const struct settings *given, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    struct loaded_model m;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        status_fail(&st, STATUS_USAGE, "the chat screen needs a terminal (see `confab run --help` for scripts)");
        return command_fail(&st);
    }
    if (!model_load(&m, given, &st)) return command_fail(&st);
    struct settings s = settings_copy(given);
    int result = chat_run(&m, &s);
    settings_free(&s);
    model_unload(&m);
    return result;
}
