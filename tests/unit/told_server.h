// Told server: in place of a server's thread, which serves nobody and reports what a test says.
//
// It defines the functions of app/server/server_thread.h, in place of those of the library; so each program includes it
// in one file.
#ifndef CONFAB_TESTS_TOLD_SERVER_H
#define CONFAB_TESTS_TOLD_SERVER_H

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/server/server_thread.h"

static struct {
    int fd, opened, withdrawn, made_room;
    bool stops;          // it was told to, and has not said so yet
    struct engine *lent; // NULL: none is
    const char *problem; // why the next one cannot serve; NULL: it can
    uint64_t cancelled;  // the latest
    struct server_report report;
} told_server = {.fd = -1};

static inline void told_server_notify(void) {
    const uint64_t one = 1;
    const ssize_t ignored = write(told_server.fd, &one, sizeof one);
    (void)ignored;
}

// The clients that there are from now on.
static inline void told_server_clients(const struct server_client *clients, int n_listed, int n_clients) {
    struct server_snapshot *all = &told_server.report.clients;
    memset(all, 0, sizeof *all);
    for (int i = 0; i < n_listed; i++) all->clients[i] = clients[i];
    all->n_listed = n_listed, all->n_clients = n_clients;
    told_server_notify();
}

static inline void told_server_stopped(void) {
    told_server.report = (struct server_report){.state = SERVER_STOPPED};
    told_server.stops = false;
    told_server_notify();
}

struct server_thread *server_thread_open(const struct settings *s, const struct model_opener *opener,
                                         struct status *st) {
    (void)opener, (void)st;
    told_server.report = (struct server_report){.state = SERVER_SERVING, .port = s->port ? s->port : 1};
    if (told_server.problem) {
        told_server.report.state = SERVER_STOPPED;
        status_fail(&told_server.report.failure, STATUS_IO, "%s", told_server.problem);
    }
    told_server.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    told_server.opened++;
    told_server_notify();
    return (struct server_thread *)&told_server;
}

void server_thread_stop(struct server_thread *t) { (void)t, told_server.stops = true; }

void server_thread_close(struct server_thread *t) {
    if (!t) return;
    close(told_server.fd);
    told_server.fd = -1;
    told_server.lent = NULL;
    told_server.stops = false;
}

int server_thread_fd(const struct server_thread *t) { return (void)t, told_server.fd; }

bool server_thread_look(struct server_thread *t, struct server_report *out) {
    uint64_t times;
    (void)t;
    if (read(told_server.fd, &times, sizeof times) != sizeof times) return false;
    *out = told_server.report;
    return true;
}

void server_thread_lend(struct server_thread *t, const struct server_loan *loan) {
    (void)t, told_server.lent = loan->engine;
}

void server_thread_withdraw(struct server_thread *t) {
    (void)t;
    told_server.withdrawn += told_server.lent != NULL;
    told_server.lent = NULL;
}

void server_thread_make_room(struct server_thread *t) {
    (void)t;
    told_server.made_room++;
    told_server.report.clients.idle_bytes = 0;
    told_server_notify();
}

void server_thread_cancel(struct server_thread *t, uint64_t number) { (void)t, told_server.cancelled = number; }

#endif
