#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/chat.h"
#include "app/command.h"
#include "app/config.h"
#include "app/model.h"
#include "app/paths.h"
#include "engine/base/panic.h"

#define QUICK_LOAD 150 // ms: a model that is there by then needs no screen that says it is loading

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

// What the chat works with; an engine that comes later is brought by its loader.
struct backing {
    struct model_file *file;
    struct model_loader *loader; // NULL: done
    struct engine *engine;
};

static bool backing_take(struct backing *b, struct status *st) {
    b->engine = model_loader_take(b->loader, st);
    b->loader = NULL;
    return b->engine;
}

static bool chat_loop(struct chat *c, struct backing *b, struct status *st) {
    while (chat_step(c, -1)) {
        if (!b->loader || !model_loader_done(b->loader, 0)) continue;
        if (!backing_take(b, st)) return false;
        chat_bring_engine(c, b->engine);
    }
    return true;
}

static bool chat_run(struct backing *b, struct settings *s, struct status *st) {
    char *config = path_config("config"), *store = path_data("confab.db"), *history = path_data("history");
    char *notice = config_notice(config);
    if (!store && !notice)
        notice = xstrdup("conversations are not saved: neither XDG_DATA_HOME nor HOME names a folder");
    struct chat_params params = {
        .engine = b->engine,
        .bring_fd = b->loader ? model_loader_fd(b->loader) : -1,
        .info = model_file_info(b->file),
        .settings = s,
        .config_path = config,
        .store_path = store,
        .notice = notice,
        .screen = {.input_fd = STDIN_FILENO, .output_fd = STDOUT_FILENO, .history_path = history},
    };
    struct chat *c = chat_open(&params, st);
    bool done = c && chat_loop(c, b, st);
    if (c && !chat_close(c, done ? st : NULL)) done = false;
    free(notice), free(history), free(store), free(config);
    return done;
}

int command_chat(const struct settings *given, int n_arguments, char **arguments) {
    (void)n_arguments, (void)arguments;
    struct status st = {0};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        status_fail(&st, STATUS_USAGE, "the chat screen needs a terminal (see `confab run --help` for scripts)");
        return command_fail(&st);
    }
    struct backing b = {.file = model_open_file(given->model, &st)};
    if (!b.file) return command_fail(&st);
    b.loader = model_loader_start(b.file, given);
    bool quick = model_loader_done(b.loader, QUICK_LOAD), done = !quick || backing_take(&b, &st);
    struct settings s = settings_copy(given);
    settings_follow_model(&s, model_file_info(b.file));
    if (done) done = chat_run(&b, &s, &st);
    settings_free(&s);
    if (!b.loader) { // otherwise it works on the file until the process ends, which is now
        engine_close(b.engine);
        model_file_close(b.file);
    }
    return done ? EXIT_DONE : command_fail(&st);
}
