#include "app/server/server_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/queue.h"
#include "engine/base/system.h"

#define REPORT_NS (NANOSECONDS / 8) // between two

struct server_thread {
    pthread_t thread;
    int order_fd, report_fd; // eventfds: to the thread, and to the owner
    struct settings settings;
    const struct model_opener *opener;

    // the thread's own
    struct server *server;
    uint64_t next; // clock_ns, not before which it looks at its clients again
    bool behind;   // something may have happened since it looked

    // of both
    pthread_mutex_t lock;
    pthread_cond_t obeyed;      // an order that the owner waits for
    struct server_loan offered; // not taken yet; its path is owned; without an engine: none is
    bool holds, withdraw;       // holds: the thread has taken it
    bool make_room;
    bool stop;
    atomic_bool hurries; // the owner waits, or will for the end
    struct server_report report;

    struct queue cancelled; // numbers of exchanges; has a lock of its own
};

static void notify(int fd) {
    const uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one) panic("eventfd: %s", strerror(errno));
}

static bool notified(int fd) {
    uint64_t times;
    return read(fd, &times, sizeof times) == sizeof times;
}

// ---- orders ----

static void let_go(struct server_thread *t, bool engine, bool room) {
    if (engine) server_model_withdraw(t->server);
    if (room) server_pool_give_back(t->server);
    pthread_mutex_lock(&t->lock);
    if (engine) t->holds = t->withdraw = false;
    if (room) t->make_room = false;
    atomic_store(&t->hurries, t->stop);
    pthread_cond_broadcast(&t->obeyed);
    pthread_mutex_unlock(&t->lock);
}

static char *copy(const char *path) { return path ? xstrdup(path) : NULL; }

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

// What the model is called takes a look at the disk: the loan can still be withdrawn meanwhile.
static void take_loan(struct server_thread *t) {
    struct status st = {0};
    pthread_mutex_lock(&t->lock);
    const bool offered = t->offered.engine;
    char *path = copy(t->offered.path);
    pthread_mutex_unlock(&t->lock);
    if (!offered) return;
    char *name = models_name(path);
    pthread_mutex_lock(&t->lock);
    const struct server_loan loan = t->offered;
    const bool taken = loan.engine && same(loan.path, path); // otherwise there is another order
    if (taken) t->offered = (struct server_loan){0}, t->holds = true;
    pthread_mutex_unlock(&t->lock);
    if (taken && !server_model_lend(t->server, loan.engine, name, path, loan.info, loan.file, &loan.memory, &st))
        log_error("server", "%s: %s", name, st.text);
    if (taken) free((char *)loan.path);
    free(name), free(path);
}

static void take_orders(struct server_thread *t) {
    if (!notified(t->order_fd)) return;
    pthread_mutex_lock(&t->lock);
    const bool withdraw = t->withdraw, make_room = t->make_room, stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    if (withdraw || make_room) let_go(t, withdraw, make_room);
    for (uint64_t number; queue_pop(&t->cancelled, &number);) server_cancel(t->server, number);
    if (stop) server_stop(t->server);
    else take_loan(t);
}

// ---- reports ----

static void report_state(struct server_thread *t, enum server_state state, int port, const struct status *failure) {
    pthread_mutex_lock(&t->lock);
    t->report.state = state;
    t->report.port = port;
    if (failure) t->report.failure = *failure;
    if (state == SERVER_STOPPED) memset(&t->report.clients, 0, sizeof t->report.clients);
    pthread_mutex_unlock(&t->lock);
    notify(t->report_fd);
}

static void report_clients(struct server_thread *t) {
    struct server_snapshot fresh;
    server_snapshot(t->server, &fresh);
    pthread_mutex_lock(&t->lock);
    const bool changed = memcmp(&fresh, &t->report.clients, sizeof fresh);
    if (changed) t->report.clients = fresh;
    pthread_mutex_unlock(&t->lock);
    if (changed) notify(t->report_fd);
}

// ---- the thread ----

static int order_fd(void *context) { return ((const struct server_thread *)context)->order_fd; }

static uint64_t report_due(void *context) {
    const struct server_thread *t = context;
    return t->behind ? t->next : 0;
}

static void turn(void *context, bool ready) {
    struct server_thread *t = context;
    const uint64_t now = clock_ns();
    if (ready) take_orders(t);
    t->behind = now < t->next;
    if (t->behind) return;
    report_clients(t);
    t->next = now + REPORT_NS;
}

static void serve(struct server_thread *t) {
    server_add(t->server, &(struct loop_source){order_fd, POLLIN, report_due, turn, t});
    report_state(t, SERVER_SERVING, server_port(t->server), NULL);
    server_run(t->server);
    let_go(t, true, true); // the rest may take longer
    server_close(t->server);
}

static void *thread_main(void *argument) {
    struct server_thread *t = argument;
    struct status st = {0};
    t->server = server_open(
        &(struct server_params){.settings = &t->settings, .opener = t->opener, .hurries = &t->hurries}, &st);
    if (t->server) serve(t);
    if (st.code) log_error("server", "%s", st.text);
    report_state(t, SERVER_STOPPED, 0, &st);
    return NULL;
}

// ---- the owner ----

static void thread_free(struct server_thread *t) {
    if (t->order_fd >= 0) close(t->order_fd);
    if (t->report_fd >= 0) close(t->report_fd);
    queue_close(&t->cancelled);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->obeyed);
    free((char *)t->offered.path);
    settings_free(&t->settings);
    free(t);
}

struct server_thread *server_thread_open(const struct settings *s, const struct model_opener *opener,
                                         struct status *st) {
    struct server_thread *t = xcalloc(1, sizeof *t);
    *t = (struct server_thread){
        .settings = settings_copy(s), .opener = opener, .order_fd = system_open_eventfd(st), .report_fd = -1};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->obeyed, NULL);
    t->settings.kv_disk = 0; // nothing of a request is kept
    if (t->order_fd >= 0) t->report_fd = system_open_eventfd(st);
    if (t->report_fd >= 0 && queue_open(&t->cancelled, sizeof(uint64_t), st) &&
        system_start_thread(&t->thread, thread_main, t, st))
        return t;
    thread_free(t);
    return NULL;
}

int server_thread_fd(const struct server_thread *t) { return t->report_fd; }

bool server_thread_look(struct server_thread *t, struct server_report *out) {
    if (!notified(t->report_fd)) return false;
    pthread_mutex_lock(&t->lock);
    *out = t->report;
    pthread_mutex_unlock(&t->lock);
    return true;
}

static void offer(struct server_thread *t, const struct server_loan *loan) {
    free((char *)t->offered.path);
    t->offered = *loan;
    t->offered.path = copy(loan->path);
}

void server_thread_lend(struct server_thread *t, const struct server_loan *loan) {
    pthread_mutex_lock(&t->lock);
    offer(t, loan);
    pthread_mutex_unlock(&t->lock);
    notify(t->order_fd);
}

void server_thread_withdraw(struct server_thread *t) {
    pthread_mutex_lock(&t->lock);
    offer(t, &(struct server_loan){0});
    t->withdraw = t->holds;
    if (t->holds) atomic_store(&t->hurries, true), notify(t->order_fd);
    while (t->holds) pthread_cond_wait(&t->obeyed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void server_thread_make_room(struct server_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->make_room = t->report.state == SERVER_SERVING && !t->stop; // otherwise it has no models, or gives up all
    if (t->make_room) atomic_store(&t->hurries, true), notify(t->order_fd);
    while (t->make_room) pthread_cond_wait(&t->obeyed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void server_thread_cancel(struct server_thread *t, uint64_t number) {
    queue_push(&t->cancelled, &number);
    notify(t->order_fd);
}

void server_thread_stop(struct server_thread *t) {
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    atomic_store(&t->hurries, true);
    pthread_mutex_unlock(&t->lock);
    notify(t->order_fd);
}

void server_thread_close(struct server_thread *t) {
    if (!t) return;
    server_thread_stop(t);
    pthread_join(t->thread, NULL);
    thread_free(t);
}
