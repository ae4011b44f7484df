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

static bool is_this_machine(const char *host) {
    return !host || !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static void announce(const struct settings *s, const char *name) {
    const char *address = s->host ? s->host : "127.0.0.1", *bracket = strchr(address, ':') ? "[" : "";
    if (!is_this_machine(s->host) && !s->api_keys)
        fprintf(stderr, "confab: warning: whoever reaches %s may use this server (see --api-keys)\n", address);
    printf("%s: http://%s%s%s:%d/v1\n", name, bracket, address, *bracket ? "]" : "", server_port(server));
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
