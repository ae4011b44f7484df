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

static int serve_model(const struct loaded_model *m, const struct settings *s) {
    struct status st = {0};
    char *name = models_name(s->model);
    server =
        server_open(&(struct server_params){.settings = s, .name = name, .file = m->file, .engine = m->engine}, &st);
    if (server) {
        const char *host = s->host ? s->host : "127.0.0.1", *bracket = strchr(host, ':') ? "[" : "";
        if (!is_this_machine(s->host) && !s->api_keys)
            fprintf(stderr, "confab: warning: whoever reaches %s may use this server (see --api-keys)\n", host);
        printf("%s: http://%s%s%s:%d/v1\n", name, bracket, host, *bracket ? "]" : "", server_port(server));
        fflush(stdout);
        serve();
        server_close(server);
    }
    free(name);
    return server ? EXIT_DONE : command_fail(&st);
}

int command_serve(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct loaded_model m;
    struct settings own = settings_copy(s);
    char *lost;
    int result = EXIT_FAILED;
    (void)n_arguments, (void)arguments;
    signal(SIGPIPE, SIG_IGN);
    const bool started = model_start_or_built_in(&m, &own, &lost, &st);
    if (lost) fprintf(stderr, "confab: warning: %s\n", lost);
    free(lost);
    if (started) {
        settings_follow_model(&own, m.info);
        result = serve_model(&m, &own);
        model_unload(&m);
    } else {
        result = command_fail(&st);
    }
    settings_free(&own);
    return result;
}
