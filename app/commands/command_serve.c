// `confab serve`: answers other programs over HTTP until it is stopped.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands/command.h"
#include "app/models/model.h"
#include "app/models/models.h"
#include "app/server/server.h"

static struct server *server;

static void stop_signal(int signal) {
    (void)signal;
    server_stop(server);
}

static void serve(void) {
    struct sigaction action = {.sa_handler = stop_signal}, before[2];
    sigaction(SIGINT, &action, &before[0]);
    sigaction(SIGTERM, &action, &before[1]);
    server_run(server);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
}

static void announce(const struct settings *s, const char *name) {
    char *address = server_address(s, server_port(server)), *warning = server_warning(s);
    if (warning) fprintf(stderr, "confab: warning: %s\n", warning);
    printf("%s: http://%s/v1\n", name, address);
    free(address), free(warning);
    fflush(stdout);
}

// Returns the model's name, which the caller frees; NULL: it cannot be loaded.
static char *load(const struct settings *s, struct status *st) {
    char *name = models_name(s->model);
    if (server_load(server, name, st)) return name;
    free(name);
    return NULL;
}

int command_serve(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct settings own = settings_copy(s);
    (void)n_arguments, (void)arguments;
    signal(SIGPIPE, SIG_IGN);
    server = server_open(&(struct server_params){.settings = &own, .opener = &local_models}, &st);
    char *name = server ? load(&own, &st) : NULL;
    char *lost = server && !name ? model_give_up_saved(&own, &st) : NULL;
    if (lost) fprintf(stderr, "confab: warning: %s\n", lost);
    if (lost) name = load(&own, &st);
    if (name) {
        announce(&own, name);
        serve();
    }
    if (server) server_close(server);
    const bool done = name;
    free(name), free(lost);
    settings_free(&own);
    return done ? EXIT_DONE : command_fail(&st);
}
