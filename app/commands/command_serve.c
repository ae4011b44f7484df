// `confab serve`: answers other programs over HTTP until it is stopped.
#include <poll.h>
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

static int serve_model(struct model_host *host, const struct settings *s) {
    struct status st = {0};
    char *name = models_name(s->model);
    server =
        server_open(&(struct server_params){.settings = s, .host = host, .opener = &local_models, .name = name}, &st);
    if (server) {
        const char *address = s->host ? s->host : "127.0.0.1", *bracket = strchr(address, ':') ? "[" : "";
        if (!is_this_machine(s->host) && !s->api_keys)
            fprintf(stderr, "confab: warning: whoever reaches %s may use this server (see --api-keys)\n", address);
        printf("%s: http://%s%s%s:%d/v1\n", name, bracket, address, *bracket ? "]" : "", server_port(server));
        fflush(stdout);
        serve();
        server_close(server);
    }
    free(name);
    return server ? EXIT_DONE : command_fail(&st);
}

// NULL: the model cannot be loaded.
static struct model_host *load(const struct settings *s, struct status *st) {
    struct model_host *host = model_host_open(s, &local_models, st);
    enum model_host_event event = HOST_NOTHING;
    while (host && event != HOST_LOADED && event != HOST_FAILED) {
        struct pollfd fd = {.fd = model_host_fd(host), .events = POLLIN};
        if (event == HOST_NOTHING) poll(&fd, 1, -1);
        event = model_host_poll(host, st);
    }
    if (event == HOST_LOADED) return host;
    model_host_close(host);
    return NULL;
}

int command_serve(const struct settings *s, int n_arguments, char **arguments) {
    struct status st = {0};
    struct settings own = settings_copy(s);
    (void)n_arguments, (void)arguments;
    signal(SIGPIPE, SIG_IGN);
    own.kv_disk = 0; // nothing of a request is kept
    struct model_host *host = load(&own, &st);
    char *lost = host ? NULL : model_give_up_saved(&own, &st);
    if (lost) fprintf(stderr, "confab: warning: %s\n", lost);
    if (lost) host = load(&own, &st);
    const int result = host ? serve_model(host, &own) : command_fail(&st);
    model_host_close(host);
    free(lost);
    settings_free(&own);
    return result;
}
