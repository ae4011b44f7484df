// Other programs, which are served while a person chats: a server on a thread of its own has the engine on loan.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat/chat_state.h"
#include "app/models/model.h"
#include "app/server/server.h"
#include "app/server/server_thread.h"
#include "engine/base/panic.h"
#include "ui/keys.h"

struct chat_serve {
    struct server_thread *thread; // NULL: there is none
    bool stopping;                // it has been told to
    struct server_report report;
    char *address; // as the report has it
    struct view_client clients[SNAPSHOT_CLIENTS];
    struct view_serving view;
};

static bool is_serving(const struct chat_serve *s) {
    return s->thread && !s->stopping && s->report.state == SERVER_SERVING;
}

// ---- the engine ----

void chat_serve_lend(struct chat *c) {
    const struct model_host *h = c->p.host;
    if (c->serve->thread && !c->serve->stopping && c->client)
        server_thread_lend(c->serve->thread, &(struct server_loan){.engine = model_host_engine(h),
                                                                   .path = model_host_path(h),
                                                                   .info = model_host_info(h),
                                                                   .file = model_host_file(h),
                                                                   .memory = *model_host_memory(h)});
}

void chat_serve_withdraw(struct chat *c) {
    if (c->serve->thread) server_thread_withdraw(c->serve->thread);
}

// Clients' models that nobody uses make room for a person's.
static uint64_t idle_bytes(void *context) {
    const struct chat_serve *s = ((const struct chat *)context)->serve;
    return is_serving(s) ? s->report.clients.idle_bytes : 0;
}

static void give_back(void *context) { server_thread_make_room(((struct chat *)context)->serve->thread); }

// ---- beginning and ending ----

static void stop(struct chat_serve *s) {
    s->stopping = true;
    server_thread_stop(s->thread);
}

// As the setting says; one that is still stopping is waited for first.
static void follow_setting(struct chat *c) {
    struct chat_serve *s = c->serve;
    struct status st = {0};
    if (s->thread && !c->p.settings->serve && !s->stopping) stop(s);
    if (s->thread || !c->p.settings->serve) return;
    s->thread = server_thread_open(c->p.settings, &local_models, &st);
    if (!s->thread) chat_say(c, true, "not serving: %s", st.text);
    else chat_serve_lend(c);
}

void chat_serve_open(struct chat *c) {
    c->serve = xcalloc(1, sizeof *c->serve);
    model_host_share(c->p.host, &(struct model_host_others){idle_bytes, give_back, c});
    follow_setting(c);
}

void chat_serve_stop(struct chat *c) {
    if (c->serve->thread) stop(c->serve);
}

static void forget(struct chat_serve *s) {
    server_thread_close(s->thread);
    s->thread = NULL;
    s->stopping = false;
    s->report = (struct server_report){0};
}

void chat_serve_close(struct chat *c) {
    model_host_share(c->p.host, &(struct model_host_others){0});
    forget(c->serve);
    free(c->serve->address);
    free(c->serve);
}

void chat_serve_set(struct chat *c, int id) {
    switch (id) {
    case SETTING_serve: follow_setting(c); break;
    case SETTING_host:
    case SETTING_port:
    case SETTING_keep_alive:
    case SETTING_api_keys:
    case SETTING_allow_hosts:
    case SETTING_allow_origins: chat_serve_stop(c); break; // and begins afresh
    default: break;
    }
}

void chat_serve(struct chat *c, const struct ui_command *command) {
    (void)command;
    c->p.settings->serve = !c->p.settings->serve;
    chat_save_setting(c, SETTING_serve);
    chat_say(c, false, c->p.settings->serve ? "serving begins" : "other programs are no longer served");
    follow_setting(c);
}

// ---- what it reports ----

int chat_serve_fd(const struct chat *c) { return c->serve->thread ? server_thread_fd(c->serve->thread) : -1; }

static void began(struct chat *c) {
    struct chat_serve *s = c->serve;
    free(s->address);
    s->address = server_address(c->p.settings, s->report.port);
    char *warning = server_warning(c->p.settings);
    const char *key = keys_name(COMMAND_CLIENTS);
    if (warning) chat_say(c, true, "serving http://%s/v1: %s", s->address, warning);
    else
        chat_say(c, false, "serving http://%s/v1%s%s%s", s->address, *key ? " (" : "", key,
                 *key ? " shows who asks)" : "");
    free(warning);
}

static void ended(struct chat *c) {
    struct chat_serve *s = c->serve;
    const struct status failure = s->report.failure;
    forget(s);
    if (failure.code) {
        c->p.settings->serve = false; // until it is wanted again
        chat_say(c, true, "not serving: %s", failure.text);
    }
    follow_setting(c); // which may want it again by now
}

bool chat_serve_turn(struct chat *c) {
    struct chat_serve *s = c->serve;
    const enum server_state before = s->report.state;
    if (!s->thread || !server_thread_look(s->thread, &s->report)) return false;
    c->stale = true;
    if (s->report.state == SERVER_STOPPED) ended(c);
    else if (s->report.state != before && !s->stopping) began(c);
    return chat_serve_clients(c);
}

int chat_serve_clients(const struct chat *c) { return is_serving(c->serve) ? c->serve->report.clients.n_clients : 0; }

void chat_serve_cancel(struct chat *c, const struct ui_command *command) {
    if (!c->serve->thread || !command->text) return;
    server_thread_cancel(c->serve->thread, strtoull(command->text, NULL, 10));
    chat_say(c, false, "the request is cancelled");
}

void chat_serve_show(struct chat *c, struct screen_view *view) {
    struct chat_serve *s = c->serve;
    const struct server_snapshot *all = &s->report.clients;
    if (!is_serving(s)) return;
    for (int i = 0; i < all->n_listed; i++) {
        const struct server_client *from = &all->clients[i];
        s->clients[i] = (struct view_client){.id = from->number,
                                             .name = from->name,
                                             .path = from->path,
                                             .model = from->model,
                                             .state = from->state,
                                             .prefill_done = from->prefill_done,
                                             .prefill_total = from->prefill_total,
                                             .tokens = from->n_tokens,
                                             .tokens_per_second = from->tokens_per_second,
                                             .first_token = (double)from->first_token};
    }
    s->view = (struct view_serving){.address = s->address,
                                    .clients = s->clients,
                                    .n_clients = all->n_listed,
                                    .n_more = all->n_clients - all->n_listed};
    view->serving = &s->view;
}
